//! What a shard is made of, and how a directory on this machine makes it.
//!
//! Keeps: the order of opening: identity, journal, store.

use std::path::Path;
use std::sync::Arc;

use contract::Error;
use journal::{EntryLog, SegmentFiles};
use kernel::{Buckets, Kernel};
use kv::Store;
use storage::TreeStore;

use crate::directory::{Directory, FilledBy, Found};
use crate::error::{cannot_open, from_journal, from_kv};
use crate::images::{FolderImages, ImageStore};
use crate::options::Options;
use crate::place::ShardPlace;
use crate::space::fit::fit;
use crate::tenure::Tenure;

/// What a shard is made of.
pub struct Parts {
    /// Which shard it is.
    pub place: ShardPlace,
    /// Where its entries are.
    pub log: Arc<dyn EntryLog>,
    /// Where its state is.
    pub tree: Arc<TreeStore>,
    /// Until when this node may answer for it.
    pub tenure: Arc<Tenure>,
    /// Where its images go, if there are any.
    pub images: Option<Arc<dyn ImageStore>>,
    /// Its folder on this machine. Last, so that the lock is released after everything else.
    pub(crate) directory: Directory,
}

/// The store of a directory that is not in use.
pub struct StoreAtRest {
    tree: TreeStore,
    /// Last, so that the lock is released after the store.
    _directory: Directory,
}

impl std::ops::Deref for StoreAtRest {
    type Target = dyn Store;

    fn deref(&self) -> &(dyn Store + 'static) {
        &self.tree
    }
}

impl Parts {
    /// The parts of the one shard of the directory at `path`, which is created if it does not exist.
    pub fn open(path: &Path, options: &Options) -> Result<Self, Error> {
        let (directory, tree, files) = open_directory(path, ShardPlace::ALONE, options, |directory, is_new| {
            let (path, id) = (directory.journal_path(), directory.identity().id);
            let files = match is_new {
                true => SegmentFiles::create(&path, id, &options.journal_files),
                false => SegmentFiles::open(&path, id, &options.journal_files),
            };
            files.map_err(|error| from_journal(&error))
        })?;
        Self::assemble(ShardPlace::ALONE, Arc::new(files), tree, Tenure::always(), directory, options)
    }

    /// The parts of a shard whose entries are elsewhere, in a log that others may append to. What is in the directory at
    /// `path` can be made again from that log.
    pub fn beside_log(
        path: &Path,
        place: ShardPlace,
        log: Arc<dyn EntryLog>,
        tenure: Tenure,
        options: &Options,
    ) -> Result<Self, Error> {
        let (directory, tree, ()) = open_directory(path, place, options, |_, _| Ok(()))?;
        Self::assemble(place, log, tree, tenure, directory, options)
    }

    fn assemble(
        place: ShardPlace,
        log: Arc<dyn EntryLog>,
        tree: TreeStore,
        tenure: Tenure,
        directory: Directory,
        options: &Options,
    ) -> Result<Self, Error> {
        let folder =
            |folder: &Path| -> Result<Arc<dyn ImageStore>, Error> {
                let images = FolderImages::open(folder);
                Ok(Arc::new(images.map_err(|error| {
                    cannot_open(format!("could not create the folder {}: {error}", folder.display()))
                })?))
            };
        let images = options.images.as_ref().map(|plan| folder(&plan.folder)).transpose()?;
        Ok(Self { place, log, tree: Arc::new(tree), tenure: Arc::new(tenure), images, directory })
    }

    /// Creates a new directory with an initial state written by `fill_store`.
    pub fn create(
        path: &Path,
        options: &Options,
        filled_by: FilledBy,
        fill_store: impl FnOnce(&dyn Store) -> Result<Buckets, Error>,
    ) -> Result<(), Error> {
        let options = &fit(options, path);
        match Directory::open(path, Buckets::default(), filled_by)? {
            Found::Whole(_) => Err(cannot_open(format!("{} already exists", path.display()))),
            Found::New(mut unfinished) => {
                let directory = unfinished.directory();
                let tree = create_store(directory, options)?;
                let buckets = fill_store(&tree)?;
                drop(tree);
                SegmentFiles::create(&directory.journal_path(), directory.identity().id, &options.journal_files)
                    .map_err(|error| from_journal(&error))?;
                unfinished.set_buckets(buckets)?;
                unfinished.finish()?;
                Ok(())
            }
        }
    }
}

impl StoreAtRest {
    /// The store of a whole directory, without what only the journal has: nothing runs, nothing is replayed.
    pub fn open(path: &Path, options: &Options) -> Result<Self, Error> {
        if !path.exists() {
            return Err(cannot_open(format!("{} does not exist", path.display())));
        }
        match Directory::open(path, Buckets::default(), FilledBy::Opener)? {
            Found::New(_) => Err(cannot_open(format!("{} holds no store", path.display()))),
            Found::Whole(directory) => {
                let tree = TreeStore::open(&directory.store_path(), &options.storage);
                Ok(Self { tree: tree.map_err(|error| from_kv(&error))?, _directory: directory })
            }
        }
    }
}

/// Opens or creates a directory, its journal (told whether it is new), and its store, in this order.
fn open_directory<J>(
    path: &Path,
    place: ShardPlace,
    options: &Options,
    journal: impl FnOnce(&Directory, bool) -> Result<J, Error>,
) -> Result<(Directory, TreeStore, J), Error> {
    let buckets = Buckets::new(options.buckets).ok_or_else(|| {
        cannot_open(format!("{} buckets are impossible: use a power of two, at most 4,096", options.buckets))
    })?;
    match Directory::open(path, buckets, FilledBy::Opener)? {
        Found::Whole(directory) => {
            let journal = journal(&directory, false)?;
            let tree = TreeStore::open(&directory.store_path(), &options.storage).map_err(|error| from_kv(&error))?;
            Ok((directory, tree, journal))
        }
        Found::New(unfinished) => {
            let tree = create_store(unfinished.directory(), options)?;
            let empty = tree.view().map_err(|error| from_kv(&error))?;
            let first = Kernel::genesis(empty, place.keys, unfinished.directory().identity().buckets);
            tree.commit(first).map_err(|error| from_kv(&error))?;
            let journal = journal(unfinished.directory(), true)?;
            Ok((unfinished.finish()?, tree, journal))
        }
    }
}

fn create_store(directory: &Directory, options: &Options) -> Result<TreeStore, Error> {
    TreeStore::create(&directory.store_path(), &options.storage).map_err(|error| from_kv(&error))
}
