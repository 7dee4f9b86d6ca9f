//! A store on an `lsm-tree`, without a separate log: each batch is one sorted run.
//!
//! Touches: one directory, which nobody else may open (the directory lock is taken above). Keeps: S1 (a batch is one
//! version of the tree: its tables are synced before the manifest that names them) and S2 (a view holds the version of
//! the tree it was taken at; see `pinned`). Never: continues after a failed batch or compaction. The tree could then
//! overwrite the manifest that the disk names as current, so the store is poisoned and must be reopened.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kv::{Batch, Committed, KvError, Sequence, Store, View};
use lsm_tree::config::PinningPolicy;
use lsm_tree::{AbstractTree, AnyTree, Cache, Config, DescriptorTable, SequenceNumberCounter, Tree};

use crate::Options;
use crate::compactor::Compactor;
use crate::pinned::{Content, Pinned};

/// The file by which `lsm-tree` finds its manifest. Without it the tree would silently start empty.
const CURRENT_FILE: &str = "current";

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
    shared: Arc<Shared>,
    compactor: Compactor,
    options: Options,
}

/// State shared by the committing thread and the compacting one.
pub(crate) struct Shared {
    pub(crate) tree: AnyTree,
    path: PathBuf,
    /// Held while the tree takes a new run, and while `content` is replaced.
    pub(crate) writer: Mutex<Writer>,
    committed: AtomicU64,
}

pub(crate) struct Writer {
    /// The content that the newest views read.
    pub(crate) content: Arc<Content>,
    pub(crate) failure: Option<String>,
}

impl TreeStore {
    /// Creates an empty store at `path`, whose parent must exist. The caller makes the parent's new entry durable.
    pub fn create(path: &Path, options: &Options) -> Result<Self, KvError> {
        let store = Self::open_tree(path, options)?;
        if store.shared.tree.table_count() > 0 {
            return Err(KvError::Corrupt {
                place: path.display().to_string(),
                reason: "cannot create a store here: this one holds data".into(),
            });
        }
        Ok(store)
    }

    /// Opens the store at `path`, which must exist.
    pub fn open(path: &Path, options: &Options) -> Result<Self, KvError> {
        let current = path.join(CURRENT_FILE);
        if !current.exists() {
            return Err(KvError::Corrupt {
                place: current.display().to_string(),
                reason: "the file that names the store's manifest is missing".into(),
            });
        }
        // A killed process may have left the newest manifest's name in memory only. The tree deletes what that manifest
        // does not need; after a power failure the previous name could be back, without the files it needs.
        let synced = std::fs::File::open(path).and_then(|directory| directory.sync_all());
        synced.map_err(|error| KvError::Io { action: "sync the store's directory", reason: error.to_string() })?;
        Self::open_tree(path, options)
    }

    fn open_tree(path: &Path, options: &Options) -> Result<Self, KvError> {
        let next = SequenceNumberCounter::new(1);
        let visible = SequenceNumberCounter::new(1);
        let tree = Config::new(path, next.clone(), visible.clone())
            .use_cache(Arc::new(Cache::with_capacity_bytes(options.cache_bytes_max)))
            .use_descriptor_table(Some(Arc::new(DescriptorTable::new(options.open_files_max))))
            // Filters and indexes are cached in parts, so memory does not grow with the number of keys.
            .index_block_partitioning_policy(PinningPolicy::new([false, false, false, true]))
            .filter_block_partitioning_policy(PinningPolicy::new([false, false, false, true]))
            .index_block_pinning_policy(PinningPolicy::disabled())
            .filter_block_pinning_policy(PinningPolicy::disabled())
            .open()
            .map_err(|error| tree_error("open the tree", path, &error))?;
        // The tree does not restore its counters; a new run must be newer than everything in it.
        let first_free = tree.get_highest_persisted_seqno().map_or(1, |highest| highest + 1);
        next.fetch_max(first_free);
        visible.fetch_max(first_free);

        let content = Arc::new(Content::new(Pinned::newest(&tree)));
        let shared = Arc::new(Shared {
            tree,
            path: path.to_owned(),
            writer: Mutex::new(Writer { content, failure: None }),
            committed: AtomicU64::new(0),
        });
        let compactor = Compactor::spawn(shared.clone(), options)?;
        Ok(Self { shared, compactor, options: options.clone() })
    }

    /// The bytes of all tables on disk.
    pub fn bytes_on_disk(&self) -> u64 {
        self.shared.tree.disk_space()
    }

    /// Waits until no compaction is due.
    pub fn settle(&self) -> Result<(), KvError> {
        self.compactor.settle();
        self.shared.lock().refuse_if_failed()
    }
}

impl Store for TreeStore {
    fn view(&self) -> Result<Arc<dyn View>, KvError> {
        Ok(self.shared.lock().content.clone())
    }

    fn commit(&self, batch: Batch) -> Result<Committed, KvError> {
        // One batch adds one run. The tree counts runs in a byte, so this limit is also a safety measure.
        self.compactor.wait_below(self.options.unmerged_runs_stall);
        let mut writer = self.shared.lock();
        writer.refuse_if_failed()?;
        if !batch.condition_holds(&*writer.content)? {
            return Ok(Committed::ConditionFailed);
        }
        if batch.writes().len() > 0 {
            if let Err(error) = ingest(&self.shared.tree, batch) {
                let error = tree_error("write a run", &self.shared.path, &error);
                writer.failure = Some(error.to_string());
                return Err(error);
            }
            writer.content = Arc::new(Content::new(Pinned::newest(&self.shared.tree)));
        }
        drop(writer);
        self.compactor.wake();
        Ok(Committed::Applied(self.shared.committed.fetch_add(1, Ordering::AcqRel) + 1))
    }

    fn durable(&self) -> Sequence {
        self.shared.committed.load(Ordering::Acquire)
    }

    fn persist(&self) -> Result<Sequence, KvError> {
        self.shared.lock().refuse_if_failed()?;
        Ok(self.durable())
    }
}

fn ingest(tree: &AnyTree, batch: Batch) -> lsm_tree::Result<()> {
    let mut ingestion = tree.ingestion()?;
    for (key, value) in batch.into_writes() {
        match value {
            Some(value) => ingestion.write(&*key, &*value)?,
            None => ingestion.write_tombstone(&*key)?,
        }
    }
    ingestion.finish()
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn standard_tree(&self) -> &Tree {
        standard_tree(&self.tree)
    }
}

pub(crate) fn standard_tree(tree: &AnyTree) -> &Tree {
    match tree {
        AnyTree::Standard(tree) => tree,
        AnyTree::Blob(_) => unreachable!("values are never kept in blob files"),
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

pub(crate) fn tree_error(action: &'static str, path: &Path, error: &lsm_tree::Error) -> KvError {
    let place = path.display().to_string();
    match error {
        lsm_tree::Error::Io(error) => KvError::Io { action, reason: format!("{place}: {error}") },
        other => KvError::Corrupt { place, reason: format!("{other:?} while trying to {action}") },
    }
}
