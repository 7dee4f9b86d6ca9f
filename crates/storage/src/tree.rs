//! A store of sorted, immutable tables. Each batch is one table, so there is no log.
//!
//! Touches: one directory, which nobody else may open (the directory lock is taken above). Keeps: S1 (a batch is one
//! version: its table is synced before the manifest that names it) and S2 (a view holds the version that it was taken
//! at). A batch that fails before a sync has failed changes nothing. Never: continues after a failed sync, since nobody
//! knows what the disk holds then; the store is poisoned and must be opened again.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use kv::{Batch, Committed, KeyRange, KvError, Sequence, Store, View};

use crate::Options;
use crate::failure::{Damage, Effect};
use crate::files::Files;
use crate::manifest::{MANIFEST_FILE, Manifest};
use crate::merger::{Merger, sizes_of};
use crate::policy;
use crate::signal::Signal;
use crate::status::{SpaceState, StoreStatus};
use crate::table::Table;
use crate::table_files::TableFiles;
use crate::table_writer::file_name;
use crate::tree_state::TreeState;
use crate::version::{Slice, Stack, Version};

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
    pub(crate) shared: Arc<TreeState>,
    merger: Merger,
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
        let version = version_of(manifest, &tables);
        let shared = Arc::new(TreeState::new(tables, signal, options, version, manifest.next_table));
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
