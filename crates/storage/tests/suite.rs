//! The tree store, alone and below the overlay, passes the suite and keeps its content across a reopen.

use std::collections::BTreeMap;
use std::sync::Arc;

use kv::{Batch, Bytes, Key, KeyRange, KvError, Order, Overlay, OverlayOptions, Store};
use statehouse_storage::{Options, TreeStore};
use testkit::random::Random;

/// A store with the directory that holds it.
struct Kept<S> {
    store: S,
    _directory: tempfile::TempDir,
}

impl<S: Store> Store for Kept<S> {
    fn view(&self) -> Result<Arc<dyn kv::View>, KvError> {
        self.store.view()
    }
    fn commit(&self, batch: Batch) -> Result<kv::Committed, KvError> {
        self.store.commit(batch)
    }
    fn durable(&self) -> kv::Sequence {
        self.store.durable()
    }
    fn persist(&self) -> Result<kv::Sequence, KvError> {
        self.store.persist()
    }
}

/// A directory in memory where there is one: the suite commits thousands of times, and each syncs.
fn directory() -> tempfile::TempDir {
    let memory = std::path::Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a directory")
}

fn new_tree() -> Kept<TreeStore> {
    let directory = directory();
    let store = TreeStore::create(&directory.path().join("store"), &Options::default()).expect("a store");
    Kept { store, _directory: directory }
}

#[test]
fn tree_store_passes() {
    testkit::kv::suite(new_tree);
}

#[test]
fn overlay_above_the_tree_passes() {
    testkit::kv::suite(|| {
        let options = OverlayOptions::default().table_bytes_max(50_000);
        Overlay::new(Arc::new(new_tree()), options).expect("an overlay")
    });
}

#[test]
fn what_was_committed_is_there_after_reopening() {
    let directory = directory();
    let path = directory.path().join("store");
    let mut random = Random::new(7);
    let mut model = BTreeMap::<Key, Bytes>::new();
    let mut store = TreeStore::create(&path, &Options::default()).expect("create");
    for _ in 0..10 {
        for _ in 0..12 {
            let mut batch = Batch::new();
            for _ in 0..200 {
                let key: Key = random.below(1_000).to_be_bytes().into();
                if random.one_in(3) {
                    model.remove(&key);
                    batch = batch.delete(key);
                } else {
                    let value: Bytes = random.bytes(100).into();
                    model.insert(key.clone(), value.clone());
                    batch = batch.put(key, value);
                }
            }
            store.commit(batch).expect("commit");
        }
        drop(store);
        store = TreeStore::open(&path, &Options::default()).expect("open");
        let rows = store.view().expect("view");
        let rows = rows.scan(&KeyRange::all(), Order::Ascending).map(|row| row.expect("row"));
        assert!(rows.eq(model.clone()), "the store holds what was committed");
    }
    store.settle().expect("settle");
    let rows = store.view().expect("view");
    assert!(rows.scan(&KeyRange::all(), Order::Ascending).map(|row| row.expect("row")).eq(model));
}

#[test]
fn a_store_without_its_manifest_is_refused_and_not_started_anew() {
    let directory = directory();
    let path = directory.path().join("store");
    let store = TreeStore::create(&path, &Options::default()).expect("create");
    store.commit(Batch::new().put(b"k".as_slice(), b"v".as_slice())).expect("commit");
    drop(store);
    assert!(matches!(TreeStore::create(&path, &Options::default()), Err(KvError::Corrupt { .. })));
    std::fs::remove_file(path.join("manifest")).expect("remove");
    assert!(matches!(TreeStore::open(&path, &Options::default()), Err(KvError::Corrupt { .. })));
}

/// A process may die with many unmerged tables. The next one must merge them without being woken by a batch, because its
/// first batch waits for just that.
#[test]
fn a_store_that_is_opened_with_too_many_tables_merges_them() {
    let directory = directory();
    let path = directory.path().join("store");
    let mut lazy = Options::default();
    lazy.unmerged_tables_max = 100;
    lazy.unmerged_tables_stall = 100;
    let store = TreeStore::create(&path, &lazy).expect("create");
    let put = || Batch::new().put(b"k".as_slice(), b"v".as_slice());
    for _ in 0..40 {
        store.commit(put()).expect("commit");
    }
    drop(store);
    let store = TreeStore::open(&path, &Options::default()).expect("open");
    let (sender, done) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(store.commit(put()).is_ok()));
    let committed = done.recv_timeout(std::time::Duration::from_secs(20));
    assert_eq!(committed, Ok(true), "the batch does not wait for ever");
}
