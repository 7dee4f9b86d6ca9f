//! Every file call fails once, in turn. Nothing may be lost, left over or taken for done.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kv::{Batch, KvError, Order, Store};
use rustix::io::Errno;
use testkit::random::Random;
use tracing::{Event, Level, Metadata, Subscriber, span};

use super::directory;
use super::merges::{Model, assert_equal, assert_no_orphans, random_batch, rest};
use crate::files::Call;
use crate::status::SpaceState;
use crate::{Options, TreeStore};

fn options() -> Options {
    Options { table_bytes_target: 8 << 10, unmerged_tables_max: 2, open_files_max: 1, ..Options::default() }
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..12_000 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{what} never happened");
}

/// One history, in which the call with this number fails. False once there are fewer calls.
fn history_with_a_fault(number: u64, errno: Errno) -> bool {
    let mut random = Random::new(7);
    let directory = directory();
    let path = directory.path().join("store");
    let store = TreeStore::create(&path, &options()).expect("created");
    let calls = Arc::new(AtomicU64::new(0));
    let hit = Arc::new(std::sync::Mutex::new(None));
    store.shared.tables.files.faults.set({
        let (calls, hit) = (calls.clone(), hit.clone());
        move |call| {
            let fails = calls.fetch_add(1, Ordering::SeqCst) + 1 == number;
            fails.then(|| *hit.lock().unwrap() = Some(call));
            fails.then_some(errno)
        }
    });
    let mut model = Model::new();
    let mut in_doubt = None;
    let mut attempts = 0;
    for round in 0..14 {
        let mut next = model.clone();
        let batch = random_batch(&mut random, &mut next);
        let what = format!("call {number} ({:?}) fails with {errno:?}, round {round}", hit.lock().unwrap());
        loop {
            match store.commit(batch.clone()) {
                Ok(_) => {
                    model = next;
                    break;
                }
                Err(KvError::Poisoned { .. }) => {
                    in_doubt = Some(next);
                    break;
                }
                Err(error) => {
                    assert!(error.may_retry(), "{what}: {error}");
                    attempts += 1;
                    assert!(attempts < 3, "{what}: one failed call fails one commit: {error}");
                }
            }
        }
        if in_doubt.is_some() {
            break;
        }
        let poisoned = matches!(store.settle(), Err(KvError::Poisoned { .. }));
        // A failed read of the checked view is an error of its own, so the check comes after.
        if poisoned {
            in_doubt = Some(model.clone());
            break;
        }
    }
    let what = format!("call {number} ({:?}) fails with {errno:?}", hit.lock().unwrap());
    store.shared.tables.files.faults.clear();
    let hit = *hit.lock().unwrap();
    let sync = matches!(hit, Some(Call::Sync | Call::SyncDirectory));
    assert_eq!(in_doubt.is_some(), sync, "{what}: a failed sync poisons the store, and nothing else does");
    if in_doubt.is_none() {
        assert_equal(&*store.view().expect("a view"), &model, &mut random, &what);
        wait_until("the retry of a merge", || store.settle().is_ok());
        rest(&store);
        assert_no_orphans(&store, &path, &what);
    } else {
        let refused = store.commit(Batch::new().put(b"k".as_slice(), b"v".as_slice()));
        assert!(matches!(refused, Err(KvError::Poisoned { .. })), "{what}: {refused:?}");
        assert_equal(&*store.view().expect("reads go on"), &model, &mut random, &what);
    }
    drop(store);
    let store = TreeStore::open(&path, &options()).expect("opened");
    let view = store.view().expect("a view");
    let is_next = in_doubt.is_some_and(|next| {
        let rows = view.scan(&kv::KeyRange::all(), Order::Ascending).map(|row| row.expect("a row"));
        rows.eq(next.clone()) && {
            model = next;
            true
        }
    });
    assert_equal(&*view, &model, &mut random, &format!("{what}, opened again (in doubt: {is_next})"));
    drop(view);
    rest(&store);
    assert_no_orphans(&store, &path, &what);
    store.commit(random_batch(&mut random, &mut model)).expect("it goes on");
    hit.is_some()
}

#[test]
fn any_failed_call_leaves_the_store_as_it_was_or_poisoned() {
    for errno in [Errno::NOSPC, Errno::IO] {
        let mut number = 1;
        while history_with_a_fault(number, errno) {
            // The first calls of each kind one by one, later ones with gaps.
            number += 1 + number / 60;
        }
        assert!(number > 150, "the history has {number} calls");
    }
}

#[test]
fn with_too_many_open_files_some_are_closed_and_the_read_goes_on() {
    let directory = directory();
    let store = TreeStore::create(&directory.path().join("store"), &options()).expect("created");
    let mut model = Model::new();
    let mut random = Random::new(3);
    for _ in 0..8 {
        store.commit(random_batch(&mut random, &mut model)).expect("committed");
    }
    rest(&store);
    let mut opens = 0;
    store.shared.tables.files.faults.set(move |call| {
        opens += u64::from(call == Call::Open);
        (call == Call::Open && opens % 2 == 1).then_some(Errno::MFILE)
    });
    assert_equal(&*store.view().expect("a view"), &model, &mut random, "every first open fails");
    store.shared.tables.files.faults.clear();
}

/// A store whose unneeded files cannot be removed, and the number of attempts.
fn store_that_removes_nothing(path: &Path) -> (TreeStore, Arc<AtomicU64>) {
    let store = TreeStore::create(path, &options()).expect("created");
    let attempts = Arc::new(AtomicU64::new(0));
    store.shared.tables.files.faults.set({
        let attempts = attempts.clone();
        move |call| {
            let removes = call == Call::Remove;
            attempts.fetch_add(u64::from(removes), Ordering::SeqCst);
            removes.then_some(Errno::IO)
        }
    });
    let (mut model, mut random) = (Model::new(), Random::new(5));
    for _ in 0..14 {
        store.commit(random_batch(&mut random, &mut model)).expect("committed");
    }
    rest(&store);
    assert!(attempts.load(Ordering::SeqCst) > 0, "merges left files that nobody needs");
    (store, attempts)
}

#[test]
fn an_idle_store_tries_again_to_remove_what_it_could_not_remove() {
    let directory = directory();
    let path = directory.path().join("store");
    let (store, attempts) = store_that_removes_nothing(&path);
    let before = attempts.load(Ordering::SeqCst);
    wait_until("another attempt", || attempts.load(Ordering::SeqCst) > before);
    store.settle().expect("a file that stays is no merge that is due");
    store.shared.tables.files.faults.clear();
    let files = || store.shared.tables.files.list().expect("a list").len();
    wait_until("removing", || files() == store.status().tables + 1);
    assert_no_orphans(&store, &path, "after the failures");
}

#[test]
fn a_file_that_cannot_be_removed_is_reported_once() {
    let directory = directory();
    let (store, attempts) = store_that_removes_nothing(&directory.path().join("store"));
    store.stop_merging();
    store.shared.tables.add_unneeded(1_000_000, 1);
    let warnings = Warnings::default();
    let before = attempts.load(Ordering::SeqCst);
    tracing::subscriber::with_default(warnings.clone(), || {
        for _ in 0..10 {
            assert!(store.shared.tables.remove_unneeded(), "it stays");
        }
    });
    assert!(attempts.load(Ordering::SeqCst) >= before + 10, "it was tried each time");
    assert_eq!(warnings.0.load(Ordering::SeqCst), 1, "the new one, and none of those that were reported before");
}

/// Counts what is logged.
#[derive(Clone, Default)]
struct Warnings(Arc<AtomicU64>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[test]
fn merges_wait_for_space_say_so_and_go_on() {
    let directory = directory();
    let path = directory.path().join("store");
    let options = Options { unmerged_tables_stall: 12, ..options() };
    let store = TreeStore::create(&path, &options).expect("created");
    let available = |bytes| *store.shared.tables.files.faults.bytes_available.lock().unwrap() = bytes;
    // Less than the smallest merge needs.
    available(Some(8 << 10));
    let mut model = Model::new();
    let mut random = Random::new(5);
    let mut refused = 0;
    for _ in 0..60 {
        let mut next = model.clone();
        match store.commit(random_batch(&mut random, &mut next)) {
            Ok(_) => model = next,
            Err(KvError::NoSpace { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 0, "a store that cannot merge takes no more than its limit");
    wait_until("waiting", || store.status().waiting_for_space.is_some());
    assert!(matches!(store.settle(), Err(KvError::NoSpace { .. })));
    let status = store.status();
    assert!(status.waiting_for_space > Some(0) && status.waiting_reason.is_some(), "{status:?}");
    assert_eq!(status.merges, 0, "nothing was merged without space");
    available(None);
    wait_until("going on", || store.settle().is_ok());
    assert!(store.status().waiting_reason.is_none() && store.status().merges > 0);
    assert_equal(&*store.view().expect("a view"), &model, &mut random, "with space again");
    rest(&store);
    assert_no_orphans(&store, &path, "with space again");
}

#[test]
fn a_full_disk_is_freed_by_deleting() {
    let directory = directory();
    let store = TreeStore::create(&directory.path().join("store"), &options()).expect("created");
    let mut random = Random::new(5);
    let rows: Vec<_> = (0..40_000_u32).map(|key| (key.to_be_bytes().into(), Some(random.bytes(100).into()))).collect();
    for part in rows.chunks(10_000) {
        store.commit(Batch::from_sorted(part.to_vec())).expect("committed");
    }
    rest(&store);
    let full = store.bytes_on_disk();
    assert!(full > 4_000_000);
    // There is room for a fortieth of it, besides what a merge that frees space leaves.
    *store.shared.tables.files.faults.bytes_available.lock().unwrap() =
        Some(options().space_reserve_bytes / 8 + full / 40 + (1 << 20));
    store.set_space(SpaceState::Short { unflushed_bytes: 0 });
    let deleted: Vec<_> = rows.iter().filter(|(key, _)| key[3] % 10 != 0).map(|(key, _)| (key.clone(), None)).collect();
    store.commit(Batch::from_sorted(deleted)).expect("committed");
    wait_until("freeing", || store.settle().is_ok() && store.bytes_on_disk() < full / 7);
    let left = store.view().expect("a view").scan(&kv::KeyRange::all(), Order::Ascending).count();
    assert_eq!(left, rows.iter().filter(|(key, _)| key[3] % 10 == 0).count());
}
