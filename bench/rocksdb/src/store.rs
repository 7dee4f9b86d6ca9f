//! A `kv::Store` on RocksDB without its log: each batch is one sorted run, durable when the commit returns.
//!
//! Keeps: S1 (a batch is one edit of the manifest, which is synced after the file that it names) and S2 (a view is a
//! snapshot, which keeps its database open). Never: continues after a failed batch.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kv::{Batch, Bytes, Committed, Key, KeyRange, KvError, Order, Rows, Sequence, Store, View, copied};
use rocksdb::{DB, FlushOptions, IngestExternalFileOptions, IteratorMode, Options, ReadOptions, Snapshot};
use rocksdb::{SstFileWriter, WriteBatch, WriteOptions, properties};
use self_cell::self_cell;

use crate::settings::{Settings, Way};

/// How often to look for merges.
const POLL: Duration = Duration::from_millis(20);

/// Looks that must find nothing in a row: a merge is scheduled a moment after the one before it ends. RocksDB also says
/// whether merges are pending, but the universal style says so for ever when no merge suits its rules.
const QUIET_LOOKS: u32 = 10;

/// The file that a batch is written to before it is linked into the store.
const INCOMING_FILE: &str = "incoming.sst";

/// A store in one directory.
pub struct RocksStore {
    db: Arc<DB>,
    options: Options,
    way: Way,
    incoming: PathBuf,
    writer: Mutex<Writer>,
}

#[derive(Default)]
struct Writer {
    committed: Sequence,
    failure: Option<String>,
}

impl RocksStore {
    /// Opens the store in an existing directory; an empty directory is an empty store.
    pub fn open(path: &Path, settings: &Settings) -> Result<Self, KvError> {
        let options = settings.options();
        let db = DB::open(&options, path).map_err(|error| rocks_error("open the store", &error))?;
        if db.latest_sequence_number() == 0 {
            // A snapshot of sequence 0 is not kept by merges, and an ingestion into an empty store does not count. So
            // something is deleted that is not there.
            let deleted = db.delete_opt(b"", &without_log());
            deleted.map_err(|error| rocks_error("count the first write", &error))?;
        }
        let incoming = path.join(INCOMING_FILE);
        Ok(Self { db: Arc::new(db), options, way: settings.way, incoming, writer: Mutex::default() })
    }

    /// Waits until no merge runs and none is started.
    pub fn settle(&self) -> Result<(), KvError> {
        wait_until_quiet(&self.db).map_err(|error| rocks_error("ask for merges", &error))
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, batch: Batch) -> Result<(), rocksdb::Error> {
        match self.way {
            Way::Ingest => self.ingest(batch),
            Way::Batch => self.write_and_flush(batch),
        }
    }

    fn ingest(&self, batch: Batch) -> Result<(), rocksdb::Error> {
        let mut file = SstFileWriter::create(&self.options);
        file.open(&self.incoming)?;
        for (key, value) in batch.into_writes() {
            match value {
                Some(value) => file.put(&*key, &*value)?,
                None => file.delete(&*key)?,
            }
        }
        file.finish()?;
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        self.db.ingest_external_file_opts(&options, vec![&self.incoming])
    }

    fn write_and_flush(&self, batch: Batch) -> Result<(), rocksdb::Error> {
        let mut writes = WriteBatch::default();
        for (key, value) in batch.into_writes() {
            match value {
                Some(value) => writes.put(&*key, &*value),
                None => writes.delete(&*key),
            }
        }
        self.db.write_opt(writes, &without_log())?;
        let mut flush = FlushOptions::default();
        flush.set_wait(true);
        self.db.flush_opt(&flush)
    }
}

fn without_log() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.disable_wal(true);
    options
}

impl Store for RocksStore {
    fn view(&self) -> Result<Arc<dyn View>, KvError> {
        // Under the lock: a batch is visible before it is durable if it goes through a memtable.
        let _writer = self.lock();
        Ok(Arc::new(RocksView::new(self.db.clone(), |db| db.snapshot())))
    }

    fn commit(&self, batch: Batch) -> Result<Committed, KvError> {
        let mut writer = self.lock();
        writer.refuse_if_failed()?;
        let now = RocksView::new(self.db.clone(), |db| db.snapshot());
        if !batch.condition_holds(&now)? {
            return Ok(Committed::ConditionFailed);
        }
        drop(now);
        if !batch.is_empty()
            && let Err(error) = self.write(batch)
        {
            let error = rocks_error("write a run", &error);
            writer.failure = Some(error.to_string());
            return Err(error);
        }
        writer.committed += 1;
        Ok(Committed::Applied(writer.committed))
    }

    fn durable(&self) -> Sequence {
        self.lock().committed
    }

    fn persist(&self) -> Result<Sequence, KvError> {
        let writer = self.lock();
        writer.refuse_if_failed()?;
        Ok(writer.committed)
    }
}

impl Writer {
    fn refuse_if_failed(&self) -> Result<(), KvError> {
        match &self.failure {
            Some(first) => Err(KvError::Poisoned { first: first.clone() }),
            None => Ok(()),
        }
    }
}

self_cell!(
    /// A snapshot with its database.
    struct RocksView {
        owner: Arc<DB>,
        #[covariant]
        dependent: Snapshot,
    }
);

impl View for RocksView {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        let found = self.borrow_dependent().get_pinned(key).map_err(|error| rocks_error("read a row", &error))?;
        Ok(found.map(|value| copied(&value)))
    }

    fn scan(&self, range: &KeyRange, order: Order) -> Rows<'_> {
        if range.is_empty() {
            return Box::new(std::iter::empty());
        }
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(range.start.as_slice());
        if let Some(end) = &range.end {
            options.set_iterate_upper_bound(end.as_slice());
        }
        let mode = match order {
            Order::Ascending => IteratorMode::Start,
            Order::Descending => IteratorMode::End,
        };
        let rows = self.borrow_dependent().iterator_opt(mode, options);
        Box::new(rows.map(|row| match row {
            Ok((key, value)) => Ok((Key::from(&*key), copied(&value))),
            Err(error) => Err(rocks_error("read rows", &error)),
        }))
    }
}

fn rocks_error(action: &'static str, error: &rocksdb::Error) -> KvError {
    match error.kind() {
        rocksdb::ErrorKind::Corruption => KvError::Corrupt { place: "RocksDB".into(), reason: error.to_string() },
        _ => KvError::Io { action, reason: error.to_string() },
    }
}

/// Waits until a database neither flushes nor merges, and does not start to.
pub fn wait_until_quiet(db: &DB) -> Result<(), rocksdb::Error> {
    let busy =
        [properties::NUM_RUNNING_COMPACTIONS, properties::NUM_RUNNING_FLUSHES, properties::MEM_TABLE_FLUSH_PENDING];
    let mut quiet = 0;
    while quiet < QUIET_LOOKS {
        let mut is_busy = false;
        for property in busy {
            is_busy |= db.property_int_value(property)?.unwrap_or(0) > 0;
        }
        quiet = if is_busy { 0 } else { quiet + 1 };
        std::thread::sleep(POLL);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Every setting keeps the duties of a store.
    #[test]
    fn each_setting_passes_the_suite() {
        for style in ["level", "universal"] {
            for way in ["ingest", "batch"] {
                let settings = Settings::parse(&format!("{style}-lz4-{way}")).expect("a setting");
                let directories = RefCell::new(Vec::new());
                testkit::kv::suite(|| {
                    let directory = tempfile::tempdir().expect("a directory");
                    let store = RocksStore::open(directory.path(), &settings).expect("a store");
                    directories.borrow_mut().push(directory);
                    store
                });
            }
        }
    }

    #[test]
    fn a_reopened_store_has_every_batch() {
        for way in ["ingest", "batch"] {
            let settings = Settings::parse(&format!("level-none-{way}")).expect("a setting");
            let directory = tempfile::tempdir().expect("a directory");
            let store = RocksStore::open(directory.path(), &settings).expect("a store");
            store.commit(Batch::new().put(*b"a", *b"1").put(*b"b", *b"1")).expect("a commit");
            store.commit(Batch::new().put(*b"b", *b"2").delete(*b"a")).expect("a commit");
            drop(store);
            let store = RocksStore::open(directory.path(), &settings).expect("the store");
            let view = store.view().expect("a view");
            assert_eq!(view.get(b"a").expect("a get"), None);
            assert_eq!(view.get(b"b").expect("a get").as_deref(), Some(b"2".as_slice()));
        }
    }
}
