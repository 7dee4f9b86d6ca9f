//! A store of sorted, immutable tables. Each batch is one table, so there is no log.
//!
//! Touches: one directory, which nobody else may open (the directory lock is taken above). Keeps: S1 (a batch is one
//! version: its table is synced before the manifest that names it) and S2 (a view holds the version that it was taken
//! at). A batch that fails before a sync has failed changes nothing. Never: continues after a failed sync, since nobody
//! knows what the disk holds then; the store is poisoned and must be opened again.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arc_swap::ArcSwap;
use kv::{Batch, Committed, KeyRange, KvError, Sequence, Store, View};

use crate::Options;
use crate::failure::{Damage, Effect, Failure};
use crate::files::Files;
use crate::manifest::{MANIFEST_FILE, Manifest};
use crate::merger::{Merger, sizes_of};
use crate::policy;
use crate::signal::Signal;
use crate::status::{SpaceState, StoreStatus};
use crate::table::Table;
use crate::table_facts::RowCounts;
use crate::table_files::TableFiles;
use crate::table_writer::{ROW_BYTES_MAX, TableWriter, file_name};
use crate::version::{Content, Slice, Stack, Version};

/// A [`Store`] in one directory; durable when [`commit`](Store::commit) returns.
///
/// ```
/// use kv::{Batch, Store, View};
/// use statehouse_storage::{Options, TreeStore};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("store");
/// let store = TreeStore::create(&path, &Options::default())?;
/// store.commit(Batch::new().put(b"k".as_slice(), b"v".as_slice()))?;
/// drop(store);
/// let store = TreeStore::open(&path, &Options::default())?;
/// assert_eq!(store.view()?.get(b"k")?.as_deref(), Some(b"v".as_slice()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TreeStore {
    pub(crate) shared: Arc<Shared>,
    merger: Merger,
}

/// State shared by the committing thread and the merging one.
pub(crate) struct Shared {
    pub(crate) tables: Arc<TableFiles>,
    pub(crate) signal: Arc<Signal>,
    pub(crate) options: Options,
    /// Held while the version changes.
    writer: Mutex<Writer>,
    /// What the newest views read. Replaced under the writer's lock.
    newest: ArcSwap<Content>,
    /// Tables that no manifest names any more and that views may still read.
    dropped: Mutex<Vec<Weak<Table>>>,
    committed: AtomicU64,
    pub(crate) next_table: AtomicU64,
    pub(crate) merges: AtomicU64,
    pub(crate) merge_bytes_read: AtomicU64,
    pub(crate) merge_bytes_written: AtomicU64,
}

pub(crate) struct Writer {
    failure: Option<String>,
}

impl TreeStore {
    /// Creates an empty store at `path`, whose parent must exist. The caller makes the parent's new entry durable.
    pub fn create(path: &Path, options: &Options) -> Result<Self, KvError> {
        let files = Arc::new(Files::new(path));
        files.create_directory()?;
        if std::fs::symlink_metadata(files.path(MANIFEST_FILE)).is_ok() {
            let reason = "cannot create a store here: there is one".into();
            return Err(KvError::Corrupt { place: path.display().to_string(), reason });
        }
        let manifest = Manifest::of(&Version::empty(), random_number(), 1);
        manifest.install(&files, false)?;
        Self::start(files, &manifest, options)
    }

    /// Opens the store at `path`, which must exist.
    pub fn open(path: &Path, options: &Options) -> Result<Self, KvError> {
        let files = Arc::new(Files::new(path));
        if path.is_dir() {
            // A killed process may have left the newest manifest's name in memory only. What that manifest does not
            // name is removed below; after a power failure the previous one could be back, without its tables.
            files.sync_directory()?;
        }
        let read = Manifest::read(&files)?;
        let store = Self::start(files, &read.manifest, options)?;
        if let Some(damage) = read.damage {
            store.shared.tables.notice(&damage);
            store.write_manifest_again()?;
        }
        Ok(store)
    }

    /// Writes the manifest once more, because the one on disk is damaged.
    pub(crate) fn write_manifest_again(&self) -> Result<(), KvError> {
        let mut writer = self.shared.lock();
        writer.refuse_if_failed()?;
        let version = self.shared.newest().version();
        self.shared.install(&mut writer, &version).map_err(KvError::from)
    }

    fn start(files: Arc<Files>, manifest: &Manifest, options: &Options) -> Result<Self, KvError> {
        check_tables(&files, manifest)?;
        let signal = Arc::new(Signal::default());
        let tables = Arc::new(TableFiles::new(files, manifest.store, signal.clone(), options));
        let shared = Arc::new(Shared {
            newest: ArcSwap::from_pointee(Content::new(version_of(manifest, &tables))),
            tables,
            signal,
            options: options.clone(),
            writer: Mutex::new(Writer { failure: None }),
            dropped: Mutex::default(),
            committed: AtomicU64::new(0),
            next_table: AtomicU64::new(manifest.next_table),
            merges: AtomicU64::new(0),
            merge_bytes_read: AtomicU64::new(0),
            merge_bytes_written: AtomicU64::new(0),
        });
        Ok(Self { merger: Merger::spawn(shared.clone())?, shared })
    }

    /// The bytes of all tables on disk.
    pub fn bytes_on_disk(&self) -> u64 {
        self.shared.tables.bytes_on_disk()
    }

    /// Waits until no merge is due, and does what else waits until the store is idle. Fails if merges cannot go on.
    pub fn settle(&self) -> Result<(), KvError> {
        self.shared.signal.settle()?;
        self.shared.lock().refuse_if_failed()
    }

    /// Why the store accepts no more writes, if it does not: a sync failed.
    pub fn failure(&self) -> Option<KvError> {
        self.shared.lock().refuse_if_failed().err()
    }

    /// Ends merging for good: nothing is written any more unless somebody commits.
    pub fn stop_merging(&self) {
        self.merger.stop();
    }

    /// Says how much space merges may take.
    pub fn set_space(&self, space: SpaceState) {
        self.shared.signal.set_space(space);
    }

    /// Bytes that are on disk only because views still read them.
    pub fn held_bytes(&self) -> u64 {
        self.shared.dropped().iter().map(|table| table.facts.file_bytes).sum()
    }

    /// Frees what views still read although it was merged away. They fail with [`ViewEnded`](KvError::ViewEnded) where they
    /// need it; views of the store as it is now do not.
    pub fn end_old_views(&self) {
        self.shared.dropped().iter().for_each(|table| table.end());
    }

    /// The state of the store.
    pub fn status(&self) -> StoreStatus {
        let shared = &self.shared;
        let version = shared.newest().version();
        let waiting = shared.signal.waiting();
        StoreStatus {
            bytes_on_disk: self.bytes_on_disk(),
            bytes_live: sizes_of(&version).iter().map(|stack| policy::bottom_output(stack)).sum(),
            tables: version.tables().len(),
            depth: version.depth(),
            merges: shared.merges.load(Ordering::Relaxed),
            merge_bytes_read: shared.merge_bytes_read.load(Ordering::Relaxed),
            merge_bytes_written: shared.merge_bytes_written.load(Ordering::Relaxed),
            waiting_for_space: match &waiting {
                Some(KvError::NoSpace { bytes_needed, .. }) => Some(*bytes_needed),
                _ => None,
            },
            waiting_reason: waiting.map(|error| error.to_string()),
            damaged_tables: {
                let tables = version.tables();
                tables.into_iter().filter(|(_, table)| table.parts.overlap(&KeyRange::all())).map(|(n, _)| n).collect()
            },
        }
    }

    /// All damage that was met since the store was opened, in files that it still consists of.
    pub fn noticed(&self) -> Vec<Damage> {
        let version = self.shared.newest().version();
        let tables = version.tables();
        let noticed = self.shared.tables.lock_noticed();
        let still_there = noticed.values().filter(|damage| damage.table == 0 || tables.contains_key(&damage.table));
        still_there
            .map(|damage| match damage.effect {
                Effect::Lost if version.table_with(damage.table, &damage.keys).is_none() => {
                    Damage { effect: Effect::Unused, ..damage.clone() }
                }
                _ => damage.clone(),
            })
            .collect()
    }

    /// Rises when [`noticed`](Self::noticed) has something new.
    pub fn noticed_count(&self) -> u64 {
        self.shared.tables.news()
    }

    /// Sets a part of a table apart: its keys count as damaged in that table from now on, even if they can be read, and
    /// merges leave it alone. Returns false, and does nothing, if the store does not need that part any more.
    ///
    /// `keys` must be the keys of damage that was noticed in this table, now or before the store was opened.
    pub fn set_apart(&self, table: u64, offset: u64, keys: &KeyRange) -> bool {
        // No merge can install its result meanwhile.
        let _writer = self.shared.lock();
        let version = self.shared.newest().version();
        let Some(found) = version.table_with(table, keys) else { return false };
        let known = self.shared.tables.lock_noticed().get(&(table, offset)).map(|damage| damage.reason);
        let reason = known.unwrap_or("the block was found damaged before the store was opened");
        let (file, keys, effect) = (file_name(table), keys.clone(), Effect::SetApart);
        let damage = Damage { table, file, offset, reason, keys, effect };
        found.parts.add(damage.clone());
        self.shared.tables.notice(&damage);
        true
    }
}

impl Store for TreeStore {
    fn view(&self) -> Result<Arc<dyn View>, KvError> {
        Ok(self.shared.newest())
    }

    fn commit(&self, batch: Batch) -> Result<Committed, KvError> {
        let shared = &self.shared;
        let deepest = || shared.newest().version().depth();
        shared.signal.wait_for_merges(shared.options.unmerged_tables_stall, deepest)?;
        let mut writer = shared.lock();
        writer.refuse_if_failed()?;
        if !batch.condition_holds(&*shared.newest())? {
            return Ok(Committed::ConditionFailed);
        }
        if !batch.is_empty() {
            shared.flush(&mut writer, &batch)?;
        }
        drop(writer);
        shared.signal.table_added();
        Ok(Committed::Applied(shared.committed.fetch_add(1, Ordering::AcqRel) + 1))
    }

    fn durable(&self) -> Sequence {
        self.shared.committed.load(Ordering::Acquire)
    }

    fn persist(&self) -> Result<Sequence, KvError> {
        self.shared.lock().refuse_if_failed()?;
        Ok(self.durable())
    }
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn newest(&self) -> Arc<Content> {
        self.newest.load_full()
    }

    /// Writes a batch as a table and puts it on top of every stack.
    fn flush(&self, writer: &mut Writer, batch: &Batch) -> Result<(), Failure> {
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

    fn dropped(&self) -> Vec<Arc<Table>> {
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
    fn refuse_if_failed(&self) -> Result<(), KvError> {
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

/// Refuses a store whose tables are missing or of another length, and removes every file that its manifest does not
/// name.
fn check_tables(files: &Files, manifest: &Manifest) -> Result<(), KvError> {
    let mut missing: BTreeSet<u64> = manifest.tables.keys().copied().collect();
    for (name, bytes) in files.list()? {
        let number = name.strip_suffix(".table").and_then(|number| u64::from_str_radix(number, 16).ok());
        let number = number.filter(|number| file_name(*number) == name);
        match number.and_then(|number| manifest.tables.get(&number)) {
            Some(facts) if facts.file_bytes == bytes => {
                missing.remove(&facts.number);
            }
            Some(facts) => {
                let reason = format!("the table has {bytes} bytes, and the manifest says {}", facts.file_bytes);
                return Err(KvError::Corrupt { place: files.path(&name).display().to_string(), reason });
            }
            None if number.is_some() || Manifest::is_unfinished(&name) => files.remove(&name)?,
            None => {}
        }
    }
    match missing.first() {
        None => Ok(()),
        Some(number) => {
            let place = files.path(&file_name(*number)).display().to_string();
            Err(KvError::Corrupt { place, reason: "a table that the manifest names is missing".into() })
        }
    }
}

fn version_of(manifest: &Manifest, shared: &Arc<TableFiles>) -> Version {
    let open = |facts: &crate::table_facts::TableFacts| {
        let table = Table::new(facts.clone(), shared.clone());
        table.set_named(true);
        table
    };
    let tables: std::collections::BTreeMap<u64, Arc<Table>> =
        manifest.tables.values().map(|facts| (facts.number, open(facts))).collect();
    let stacks = manifest.stacks.iter().map(|(start, slices)| {
        let slices = slices.iter().map(|(number, rows)| Slice { table: tables[number].clone(), rows: *rows });
        Stack { start: start.clone(), slices: slices.collect() }
    });
    Version { stacks: stacks.collect() }
}

/// A number that no other store has. It tells stores apart and needs no secrecy.
fn random_number() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}
