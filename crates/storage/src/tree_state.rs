//! The newest version of the tree, and how the next one takes its place: a table is written, the manifest names it, and
//! then views see it.
//!
//! Touches: tables of batches, and the manifest. Keeps: S1, and a failure in doubt refuses every later write. Never: removes
//! a table that a manifest may still name.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arc_swap::ArcSwap;
use kv::{Batch, KvError};

use crate::Options;
use crate::failure::Failure;
use crate::manifest::Manifest;
use crate::signal::Signal;
use crate::table::Table;
use crate::table_facts::RowCounts;
use crate::table_files::TableFiles;
use crate::table_writer::{ROW_BYTES_MAX, TableWriter};
use crate::version::{Content, Version};

/// State shared by the committing thread and the merging one.
pub(crate) struct TreeState {
    pub(crate) tables: Arc<TableFiles>,
    pub(crate) signal: Arc<Signal>,
    pub(crate) options: Options,
    /// Held while the version changes.
    writer: Mutex<Writer>,
    /// What the newest views read. Replaced under the writer's lock.
    newest: ArcSwap<Content>,
    /// Tables that no manifest names any more and that views may still read.
    dropped: Mutex<Vec<Weak<Table>>>,
    pub(crate) committed: AtomicU64,
    pub(crate) next_table: AtomicU64,
    pub(crate) merges: AtomicU64,
    pub(crate) merge_bytes_read: AtomicU64,
    pub(crate) merge_bytes_written: AtomicU64,
}

/// Held by whoever changes the version.
pub(crate) struct Writer {
    failure: Option<String>,
}

impl TreeState {
    /// The state of a store that consists of `version`.
    pub(crate) fn new(
        tables: Arc<TableFiles>,
        signal: Arc<Signal>,
        options: &Options,
        version: Version,
        next_table: u64,
    ) -> Self {
        Self {
            newest: ArcSwap::from_pointee(Content::new(version)),
            tables,
            signal,
            options: options.clone(),
            writer: Mutex::new(Writer { failure: None }),
            dropped: Mutex::default(),
            committed: AtomicU64::new(0),
            next_table: AtomicU64::new(next_table),
            merges: AtomicU64::new(0),
            merge_bytes_read: AtomicU64::new(0),
            merge_bytes_written: AtomicU64::new(0),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn newest(&self) -> Arc<Content> {
        self.newest.load_full()
    }

    /// Writes a batch as a table and puts it on top of every stack.
    pub(crate) fn flush(&self, writer: &mut Writer, batch: &Batch) -> Result<(), Failure> {
        let version = self.newest().version();
        let flushed = self.write_flush(&version, batch).and_then(|(table, rows)| {
            let next = version.with_flush(&table, &rows);
            self.install(writer, &next)?;
            Ok(next)
        });
        match flushed {
            Ok(next) => {
                self.newest.store(Arc::new(Content::new(next)));
                Ok(())
            }
            Err(failure) => {
                if let Failure::InDoubt(error) = &failure {
                    writer.fail(error);
                }
                Err(failure)
            }
        }
    }

    /// The table of a batch, with its rows in each stack.
    fn write_flush(&self, version: &Version, batch: &Batch) -> Result<(Arc<Table>, Vec<RowCounts>), Failure> {
        let number = self.next_table.fetch_add(1, Ordering::Relaxed);
        let mut table = TableWriter::create(&self.tables.files, self.tables.store, number)?;
        let mut rows = vec![RowCounts::default(); version.stacks.len()];
        let mut stack = 0;
        for (key, value) in batch.writes() {
            let value = value.map(|value| &**value);
            let bytes = key.len() + value.map_or(0, <[u8]>::len);
            if bytes > ROW_BYTES_MAX {
                let reason = format!("a row of {bytes} bytes; the limit is {ROW_BYTES_MAX}");
                return Err(Failure::Retry(KvError::Corrupt { place: "a batch".into(), reason }));
            }
            while version.end_of(stack).is_some_and(|end| **key >= *end) {
                stack += 1;
            }
            rows[stack].add_row(key, value);
            table.add(key, value)?;
        }
        Ok((Table::new(table.finish()?, self.tables.clone()), rows))
    }

    fn lock_dropped(&self) -> MutexGuard<'_, Vec<Weak<Table>>> {
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tables that are on disk only because views still read them.
    pub(crate) fn dropped(&self) -> Vec<Arc<Table>> {
        self.lock_dropped().iter().filter_map(Weak::upgrade).collect()
    }

    /// Makes a version the one that opening finds. The caller publishes it.
    pub(crate) fn install(&self, writer: &mut Writer, next: &Version) -> Result<(), Failure> {
        if let Some(first) = &writer.failure {
            return Err(Failure::InDoubt(KvError::Poisoned { first: first.clone() }));
        }
        let before = self.newest().version();
        let (old, new) = (before.tables(), next.tables());
        let added: Vec<_> = new.iter().filter(|(number, _)| !old.contains_key(number)).collect();
        let manifest = Manifest::of(next, self.tables.store, self.next_table.load(Ordering::Relaxed));
        // From here on the disk may name them. After a failure in doubt they must stay.
        added.iter().for_each(|(_, table)| table.set_named(true));
        let installed = manifest.install(&self.tables.files, !added.is_empty());
        match &installed {
            Ok(()) => {
                let dropped = old.iter().filter(|(number, _)| !new.contains_key(number));
                let dropped = dropped.map(|(_, table)| table).inspect(|table| table.set_named(false));
                let mut known = self.lock_dropped();
                known.retain(|table| table.strong_count() > 0);
                known.extend(dropped.map(|table| Arc::downgrade(table)));
            }
            Err(Failure::InDoubt(error)) => writer.fail(error),
            Err(_) => added.iter().for_each(|(_, table)| table.set_named(false)),
        }
        installed
    }
}

impl Writer {
    pub(crate) fn refuse_if_failed(&self) -> Result<(), KvError> {
        match &self.failure {
            Some(first) => Err(KvError::Poisoned { first: first.clone() }),
            None => Ok(()),
        }
    }

    /// Refuses every later write.
    pub(crate) fn fail(&mut self, error: &KvError) {
        self.failure.get_or_insert_with(|| error.to_string());
    }
}
