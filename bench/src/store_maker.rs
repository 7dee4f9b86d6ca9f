//! How a store is made: the kernel and the overlay above it are the same, whichever store is below.

use std::path::Path;
use std::sync::Arc;

use kv::Store;
use storage::TreeStore;

/// Makes the stores of one kind.
pub trait StoreMaker {
    /// Makes an empty store at `path`, whose parent exists.
    fn create(&self, path: &Path) -> MadeStore;

    /// Opens the store at `path`, which has been closed.
    fn open(&self, path: &Path) -> MadeStore;
}

/// A store, and how to wait for its merges.
#[derive(Clone)]
pub struct MadeStore {
    /// The store; the last reference to it closes it.
    pub store: Arc<dyn Store>,
    /// Returns when the store has nothing to merge.
    pub settle: Arc<dyn Fn() + Send + Sync>,
}

/// Makes the stores that a shard uses.
pub struct TreeMaker;

impl StoreMaker for TreeMaker {
    fn create(&self, path: &Path) -> MadeStore {
        made(TreeStore::create(path, &storage::Options::default()).expect("a store"))
    }

    fn open(&self, path: &Path) -> MadeStore {
        made(TreeStore::open(path, &storage::Options::default()).expect("the store"))
    }
}

fn made(tree: TreeStore) -> MadeStore {
    let tree = Arc::new(tree);
    let settle = {
        let tree = tree.clone();
        Arc::new(move || tree.settle().expect("it settles"))
    };
    MadeStore { store: tree, settle }
}
