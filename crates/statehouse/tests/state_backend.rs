//! Each state backend passes the suite of the contract, and restores what each other has written.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contract::{BackendError, ExactlyOnceStateBackend, UpdateOutcome, VersionedStateBackend};
use kv::{Batch, Committed, KvError, MemoryStore, Store, View};
use statehouse::Statehouse;
use statehouse::keyed::backends::{HashMapStateBackend, HouseStateBackend, KvStateBackend};
use statehouse::keyed::{LogicalTime, MapCommit, MapUpdates, Merge};
use testkit::state_backend::{Tested, moves_between, suite};

const RANDOM_UPDATES: usize = 6_000;
/// Each is synced.
const RANDOM_UPDATES_IN_HOUSE: usize = 2_000;

type InMemory = HashMapStateBackend<String, i64, LogicalTime>;
type InStore = KvStateBackend<String, i64, LogicalTime>;

/// A backend in a house of its own.
struct InHouse {
    backend: HouseStateBackend<String, i64, LogicalTime>,
    _directory: tempfile::TempDir,
}

impl Deref for InHouse {
    type Target = HouseStateBackend<String, i64, LogicalTime>;

    fn deref(&self) -> &Self::Target {
        &self.backend
    }
}

impl DerefMut for InHouse {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.backend
    }
}

impl ExactlyOnceStateBackend for InHouse {
    type Key = String;
    type Value = i64;
    type Version = LogicalTime;

    fn put(&self, key: String, value: i64, version: LogicalTime) -> Result<(), BackendError> {
        self.backend.put(key, value, version)
    }

    fn get(&self, key: &String) -> Result<Option<(i64, LogicalTime)>, BackendError> {
        self.backend.get(key)
    }

    fn snapshot(&self) -> Result<Vec<u8>, BackendError> {
        self.backend.snapshot()
    }

    fn restore(&mut self, data: &[u8]) -> Result<(), BackendError> {
        self.backend.restore(data)
    }
}

impl VersionedStateBackend for InHouse {
    fn put_outcome(&self, key: String, value: i64, version: LogicalTime) -> Result<UpdateOutcome, BackendError> {
        self.backend.put_outcome(key, value, version)
    }

    fn delete(&self, key: String, version: LogicalTime) -> Result<UpdateOutcome, BackendError> {
        self.backend.delete(key, version)
    }

    fn passed(&self, key: &String) -> Result<Option<LogicalTime>, BackendError> {
        self.backend.passed(key)
    }

    fn seal(&self, version: LogicalTime) -> Result<(), BackendError> {
        self.backend.seal(version)
    }

    fn snapshot_for_keys(&self, keys: &[String]) -> Result<Vec<u8>, BackendError> {
        self.backend.snapshot_for_keys(keys)
    }

    fn restore_keys(&mut self, data: &[u8]) -> Result<(), BackendError> {
        self.backend.restore_keys(data)
    }
}

fn in_store() -> InStore {
    InStore::open(Arc::new(MemoryStore::new()), b"state/").expect("a state")
}

fn in_house() -> InHouse {
    let directory = tempfile::tempdir().expect("a directory");
    let house = Statehouse::open(directory.path().join("house")).expect("a house");
    let backend = HouseStateBackend::new(house.group("shop").maps(), "stock").expect("a map");
    InHouse { backend, _directory: directory }
}

#[test]
fn state_in_memory_passes() {
    suite(InMemory::new, RANDOM_UPDATES);
}

#[test]
fn state_in_a_store_of_bytes_passes() {
    suite(in_store, RANDOM_UPDATES);
}

#[test]
fn state_in_a_house_passes() {
    suite(in_house, RANDOM_UPDATES_IN_HOUSE);
}

#[test]
fn each_restores_what_each_has_written() {
    moves_between(&InMemory::new(), &mut in_store());
    moves_between(&in_store(), &mut in_house());
    moves_between(&in_house(), &mut InMemory::new());
}

/// The rows of a store, in order.
fn rows(store: &dyn Store) -> Vec<(kv::Key, kv::Bytes)> {
    let view: Arc<dyn View> = store.view().expect("a view");
    view.scan(&kv::KeyRange::all(), kv::Order::Ascending).collect::<Result<_, _>>().expect("rows")
}

#[test]
fn a_store_holds_nothing_that_nobody_needs() {
    let store = Arc::new(MemoryStore::new());
    let mut state = InStore::open(store.clone(), b"state/").expect("a state");
    let key = |at: i64| format!("key-{at}");
    for at in 0..2_500 {
        state.put(key(at), at, LogicalTime::from(1)).expect("put");
        state.delete(key(at), LogicalTime::from(2)).expect("delete");
    }
    state.put("kept".to_owned(), 1, LogicalTime::from(1)).expect("put");
    assert_eq!(rows(&*store).len(), 1 + 1 + 2 * 2_500, "a head, an entry, and two rows for each deletion");
    state.put(key(0), 1, LogicalTime::from(3)).expect("put");
    assert_eq!(rows(&*store).len(), 1 + 2 + 2 * 2_499);
    let snapshot = state.snapshot().expect("snapshot");
    state.seal(LogicalTime::from(2)).expect("seal");
    assert_eq!(rows(&*store).len(), 1 + 2, "what the seal has passed is gone");
    state.restore(&snapshot).expect("restore");
    state.restore(&snapshot).expect("restore");
    drop(state);
    let state = InStore::open(store.clone(), b"state/").expect("a state");
    assert_eq!(rows(&*store).len(), 1 + 2 + 2 * 2_499, "what was replaced is gone");
    assert_eq!(state.snapshot().expect("snapshot"), snapshot);
}

/// A store that ends after so many commits, as if the power failed.
struct EndingStore {
    inner: Arc<MemoryStore>,
    commits_left: AtomicUsize,
}

impl Store for EndingStore {
    fn view(&self) -> Result<Arc<dyn View>, KvError> {
        self.inner.view()
    }

    fn commit(&self, batch: Batch) -> Result<Committed, KvError> {
        let left = self.commits_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        left.map_err(|_| KvError::Closed)?;
        self.inner.commit(batch)
    }

    fn durable(&self) -> kv::Sequence {
        self.inner.durable()
    }

    fn persist(&self) -> Result<kv::Sequence, KvError> {
        self.inner.persist()
    }
}

#[test]
fn a_restore_that_ends_anywhere_leaves_the_one_state_or_the_other() {
    let from = InMemory::new();
    for at in 0..2_500 {
        from.put(at.to_string(), at, LogicalTime::from(1)).expect("put");
        from.delete((at + 2_500).to_string(), LogicalTime::from(1)).expect("delete");
    }
    let after = from.snapshot().expect("snapshot");
    let mut restored = 0;
    for commits in 0.. {
        let inner = Arc::new(MemoryStore::new());
        let state = InStore::open(inner.clone(), b"state/").expect("a state");
        for at in 0..1_500 {
            state.put(format!("before-{at}"), at, LogicalTime::from(2)).expect("put");
        }
        let before = state.snapshot().expect("snapshot");
        let ending = Arc::new(EndingStore { inner: inner.clone(), commits_left: AtomicUsize::new(commits) });
        let mut state = InStore::open(ending, b"state/").expect("a state");
        let result = state.restore(&after);
        let expected = if result.is_ok() { &after } else { &before };
        assert_eq!(state.snapshot().as_ref(), Ok(expected), "after {commits} commits");
        let mut state = InStore::open(inner.clone(), b"state/").expect("a state");
        assert_eq!(state.snapshot().as_ref(), Ok(expected), "after {commits} commits, opened again");
        assert_eq!(rows(&*inner).len(), if result.is_ok() { 1 + 7_500 } else { 1 + 1_500 }, "after {commits} commits");
        state.restore(&after).expect("restore");
        assert_eq!(state.snapshot().as_ref(), Ok(&after), "restored again after {commits} commits");
        restored += usize::from(result.is_ok());
        if restored == 2 {
            assert!(commits > 5, "it took several commits");
            return;
        }
    }
}

#[test]
fn two_states_in_a_store_are_apart() {
    let store = Arc::new(MemoryStore::new());
    let [mut left, right] =
        ["left/", "right/"].map(|prefix| InStore::open(store.clone(), prefix.as_bytes()).expect("a state"));
    right.put("a".to_owned(), 1, LogicalTime::from(1)).expect("put");
    left.restore(&InMemory::new().snapshot().expect("snapshot")).expect("restore");
    left.seal(LogicalTime::from(9)).expect("seal");
    assert_eq!(left.get(&"a".to_owned()), Ok(None));
    assert_eq!(right.get(&"a".to_owned()), Ok(Some((1, LogicalTime::from(1)))));
    let other = KvStateBackend::<Vec<u8>, i64, u64>::open(store, b"left/");
    assert!(matches!(other.err(), Some(BackendError::Unstorable { .. })), "its keys are text");
}

#[test]
fn types_and_versions_that_do_not_fit_are_refused_and_change_nothing() {
    let from = InMemory::new();
    from.put("a".to_owned(), -1, LogicalTime::new(1, 0)).expect("put");
    let snapshot = from.snapshot().expect("snapshot");
    let mut unsigned = HashMapStateBackend::<String, u64, LogicalTime>::new();
    assert!(matches!(unsigned.restore(&snapshot), Err(BackendError::Unstorable { what: "a value", .. })));
    let mut rounds = HashMapStateBackend::<String, i64, u64>::new();
    rounds.put("b".to_owned(), 1, 1).expect("put");
    assert!(matches!(rounds.restore(&snapshot), Err(BackendError::Unstorable { what: "a version", .. })));
    assert!(matches!(rounds.restore_keys(&snapshot), Err(BackendError::Unstorable { what: "a version", .. })));
    let mut bytes = HashMapStateBackend::<Vec<u8>, i64, LogicalTime>::new();
    assert!(matches!(bytes.restore(&snapshot), Err(BackendError::UnsuitableSnapshot { .. })));
    assert_eq!(rounds.get(&"b".to_owned()), Ok(Some((1, 1))));
}

#[test]
fn a_state_larger_than_a_commit_is_restored_into_a_house() {
    let from = InMemory::new();
    for at in 0..30_000 {
        from.put(at.to_string(), at, LogicalTime::from(1)).expect("put");
    }
    let snapshot = from.snapshot().expect("snapshot");
    let mut state = in_house();
    state.put("a".to_owned(), 1, LogicalTime::from(1)).expect("put");
    state.restore(&snapshot).expect("restore");
    assert_eq!(state.snapshot(), Ok(snapshot));
}

/// A state with these keys, of version 1.
fn filled(keys: std::ops::Range<i64>) -> InMemory {
    let state = InMemory::new();
    keys.for_each(|at| state.put(format!("key-{at:05}"), at, LogicalTime::from(1)).expect("put"));
    state
}

#[test]
fn more_keys_than_a_commit_takes_move_in_one_step() {
    fn check(state: &mut impl Tested) {
        for key in ["key-00007", "other"] {
            state.put(key.to_owned(), -1, LogicalTime::from(2)).expect("put");
        }
        state.delete("key-00008".to_owned(), LogicalTime::from(0)).expect("delete");
        state.put("key-11999".to_owned(), 11_999, LogicalTime::from(1)).expect("put");
        let before = state.snapshot().expect("snapshot");
        let conflicting = filled(0..11_999);
        conflicting.put("key-11999".to_owned(), 0, LogicalTime::from(1)).expect("put");
        let refused =
            state.restore_keys(&conflicting.snapshot().expect("snapshot")).expect_err("the last key conflicts");
        assert!(matches!(refused, BackendError::VersionConflict { .. }), "{refused}");
        assert_eq!(state.snapshot().expect("snapshot"), before);
        let moved = filled(0..12_000).snapshot().expect("snapshot");
        for _ in 0..2 {
            state.restore_keys(&moved).expect("restore_keys, and again");
            let get = |key: &str| state.get(&key.to_owned()).expect("get").map(|(value, _)| value);
            assert_eq!((get("key-00007"), get("key-00008"), get("key-11998")), (Some(-1), Some(8), Some(11_998)));
            assert_eq!(get("other"), Some(-1));
        }
    }
    check(&mut InMemory::new());
    check(&mut in_store());
    check(&mut in_house());
}

#[test]
fn more_bytes_than_a_commit_takes_move_into_a_house() {
    let directory = tempfile::tempdir().expect("a directory");
    let house = Statehouse::open(directory.path().join("house")).expect("a house");
    let from = HashMapStateBackend::<u32, String, u64>::new();
    (0..4).for_each(|key| from.put(key, "x".repeat(900_000), 1).expect("put"));
    let mut state = HouseStateBackend::<u32, String, u64>::new(house.maps(), "large").expect("a map");
    state.restore_keys(&from.snapshot().expect("snapshot")).expect("restore_keys");
    assert_eq!(state.snapshot(), from.snapshot());
}

#[test]
fn keys_that_move_below_the_seal_leave_the_rest_of_a_map_as_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let house = Statehouse::open(directory.path().join("house")).expect("a house");
    let maps = house.group("shop").maps();
    let mut state = HouseStateBackend::<String, i64, LogicalTime>::new(maps.clone(), "stock").expect("a map");
    let commit = || {
        let updates = |updates: MapUpdates| updates.put(b"here", 1, 2).put(b"key-00003", 9, 0);
        let commit = MapCommit::numbered(1).updates(updates).merge(b"sum", Merge::Add, 5).advance("orders", 7).seal(5);
        maps.commit().commit_map("stock", commit).run_each_later().wait()
    };
    let (answer, _) = commit().expect("the first commit");
    state.restore_keys(&filled(0..10).snapshot().expect("snapshot")).expect("restore_keys");
    let get = |key: &str| state.get(&key.to_owned()).expect("get").map(|(value, _)| value);
    assert_eq!((get("key-00003"), get("key-00004"), get("here")), (Some(3), Some(4), Some(1)));
    assert_eq!(maps.get("stock", b"sum").expect("get").map(|found| found.value), Some(5.into()));
    assert_eq!(maps.position("stock", "orders").expect("position").map(|at| at.position), Some(7));
    let summary = maps.summary("stock").expect("summary").expect("a map");
    assert_eq!((summary.keys, summary.last_number, summary.seal), (12, 1, Some(5.into())));
    assert_eq!(commit().expect("sent again").0, answer, "it has its first answer, and is not applied again");
    assert_eq!(maps.get("stock", b"sum").expect("get").map(|found| found.value), Some(5.into()));
}

#[test]
fn a_value_that_nobody_could_read_is_refused_when_it_is_put() {
    fn check<B: VersionedStateBackend<Key = u32, Value = f64, Version = u64>>(state: &mut B) {
        state.put(1, 1.5, 1).expect("put");
        for value in [f64::NAN, f64::INFINITY] {
            let refused = state.put(1, value, 2).expect_err("JSON has no such number");
            assert!(matches!(refused, BackendError::Unstorable { what: "a value", .. }), "{refused}");
        }
        assert_eq!(state.get(&1).expect("get"), Some((1.5, 1)));
        let snapshot = state.snapshot().expect("snapshot");
        state.restore(&snapshot).expect("restore");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let house = Statehouse::open(directory.path().join("house")).expect("a house");
    check(&mut HashMapStateBackend::<u32, f64, u64>::new());
    check(&mut KvStateBackend::<u32, f64, u64>::open(Arc::new(MemoryStore::new()), b"f/").expect("a state"));
    check(&mut HouseStateBackend::<u32, f64, u64>::new(house.maps(), "floats").expect("a map"));
}

#[test]
fn values_in_a_house_are_values_of_its_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let house = Statehouse::open(directory.path().join("house")).expect("a house");
    let bytes = HouseStateBackend::<Vec<u8>, Vec<u8>, u64>::new(house.maps(), "bytes").expect("a map");
    bytes.put(vec![0, 0xff], vec![1, 2], 1).expect("put");
    let found = house.maps().get("bytes", &[0, 0xff]).expect("get").expect("a value");
    assert_eq!((found.value, found.version), (statehouse::Value::Bytes(vec![1, 2]), Some(1.into())));
    let numbers = HouseStateBackend::<u32, (i64, String), u64>::new(house.maps(), "numbers").expect("a map");
    numbers.put(7, (1, "x".to_owned()), 1).expect("put");
    let found = house.maps().get("numbers", b"7").expect("get").expect("a value");
    assert_eq!(found.value, statehouse::Value::json("[1,\"x\"]").expect("JSON"));
    assert_eq!(numbers.get(&7), Ok(Some(((1, "x".to_owned()), 1))));
    house.maps().create("ordered", statehouse::keyed::Policy::Ordered).expect("a map");
    let ordered = HouseStateBackend::<u32, u32, u64>::new(house.maps(), "ordered");
    assert!(ordered.err().expect("its updates wait").to_string().contains("SH-8011"));
}
