//! The suite of the contract of state backends, `contract::VersionedStateBackend`: call [`suite`] with a function that creates an
//! empty backend, and [`moves_between`] with backends of two kinds.
//!
//! `damage`: snapshots that are not what was written. `random_run`: thousands of updates beside a naive model.

mod damage;
mod random_run;

use contract::keyed::LogicalTime;
use contract::{BackendError, UpdateOutcome, VersionedStateBackend};

use UpdateOutcome::{Applied, Duplicate, VersionConflict};

/// A backend of the types that the suite uses.
pub trait Tested: VersionedStateBackend<Key = String, Value = i64, Version = LogicalTime> {}

impl<B: VersionedStateBackend<Key = String, Value = i64, Version = LogicalTime>> Tested for B {}

/// Runs every check of the suite, each on its own backend. The randomised one makes so many updates.
///
/// # Panics
/// If the implementation breaks the contract.
pub fn suite<B: Tested + Sync>(make: impl Fn() -> B, random_updates: usize) {
    an_update_counts_once(&make());
    an_older_update_changes_nothing(&make());
    versions_are_compared_as_times(&make());
    another_value_for_a_version_is_an_error_by_name(&make());
    updates_in_any_order_leave_the_newest(&make);
    a_deleted_key_stays_deleted(&make());
    a_seal_ends_what_it_passes(&make());
    a_restored_state_is_that_of_the_snapshot(&make(), &mut make());
    a_replay_after_a_restore_counts_what_the_snapshot_lacks(&make);
    some_keys_move_to_another_backend(&make(), &mut make());
    moved_keys_never_replace_newer_ones(&make(), &mut make());
    moved_keys_arrive_together_or_not_at_all(&make(), &mut make());
    keys_move_below_the_seal(&make(), &mut make());
    keys_are_checked(&make());
    threads_never_see_a_key_go_back(&make());
    damage::no_damaged_snapshot_is_restored(&make(), &mut make());
    random_run::each_update_counts_once(&make, random_updates);
}

/// Checks that a snapshot of one backend is the same as that of another with the same state, and restores into it.
///
/// # Panics
/// If it does not.
pub fn moves_between(from: &impl Tested, to: &mut impl Tested) {
    fill(from);
    put(to, "only-here", 1, time(1));
    let snapshot = from.snapshot().expect("snapshot");
    to.restore(&snapshot).expect("restore");
    assert_eq!(get(to, "only-here"), None);
    assert_eq!(to.snapshot().expect("snapshot"), snapshot, "the same state gives the same bytes");
    put(from, "a", 99, time(99));
    to.restore_keys(&from.snapshot_for_keys(&["a".to_owned()]).expect("snapshot_for_keys")).expect("restore_keys");
    assert_eq!(get(to, "a"), Some((99, time(99))));
}

fn time(round: u64) -> LogicalTime {
    round.into()
}

fn put(backend: &impl Tested, key: &str, value: i64, version: LogicalTime) -> UpdateOutcome {
    backend.put_outcome(key.to_owned(), value, version).expect("put_outcome")
}

fn delete(backend: &impl Tested, key: &str, version: LogicalTime) -> UpdateOutcome {
    backend.delete(key.to_owned(), version).expect("delete")
}

fn get(backend: &impl Tested, key: &str) -> Option<(i64, LogicalTime)> {
    backend.get(&key.to_owned()).expect("get")
}

fn passed(backend: &impl Tested, key: &str) -> Option<LogicalTime> {
    backend.passed(&key.to_owned()).expect("passed")
}

fn stale(current: impl Into<LogicalTime>) -> UpdateOutcome {
    UpdateOutcome::Stale { current: current.into() }
}

/// A state with everything in it: values, a deleted key, versions with epochs, a seal.
fn fill(backend: &impl Tested) {
    put(backend, "a", 1, time(3));
    put(backend, "b/ü", -2, LogicalTime::new(1, 0));
    put(backend, "gone", 3, time(4));
    delete(backend, "gone", time(5));
    put(backend, "forgotten", 4, time(1));
    delete(backend, "forgotten", time(2));
    backend.seal(time(2)).expect("seal");
}

fn an_update_counts_once(backend: &impl Tested) {
    assert_eq!((get(backend, "a"), passed(backend, "a")), (None, None));
    assert_eq!(put(backend, "a", 1, time(7)), Applied);
    assert_eq!(put(backend, "a", 1, time(7)), Duplicate);
    backend.put("a".to_owned(), 1, time(7)).expect("a repeated put is no error");
    assert_eq!((get(backend, "a"), passed(backend, "a")), (Some((1, time(7))), Some(time(7))));
    assert_eq!(put(backend, "b", 2, time(0)), Applied, "the first version may be 0");
    assert_eq!(put(backend, "b", 2, time(0)), Duplicate);
    backend.put("a".to_owned(), 8, time(8)).expect("put");
    assert_eq!((get(backend, "a"), get(backend, "b")), (Some((8, time(8))), Some((2, time(0)))));
}

fn an_older_update_changes_nothing(backend: &impl Tested) {
    put(backend, "a", 7, time(7));
    assert_eq!(put(backend, "a", 6, time(6)), stale(7));
    assert_eq!(put(backend, "a", 7, time(6)), stale(7), "the same value is no exception");
    assert_eq!(delete(backend, "a", time(6)), stale(7));
    backend.put("a".to_owned(), 6, time(6)).expect("an old put is no error");
    assert_eq!(get(backend, "a"), Some((7, time(7))));
}

fn versions_are_compared_as_times(backend: &impl Tested) {
    put(backend, "a", 1, LogicalTime::new(1, 0));
    assert_eq!(put(backend, "a", 2, LogicalTime::new(0, u64::MAX)), stale(LogicalTime::new(1, 0)));
    // By text, 10 would come before 9; by the last bytes of a number, 256 before 255.
    for (version, before) in [(10, 9), (256, 255), (65_536, 65_535)].map(|(new, old)| (time(new), time(old))) {
        let key = format!("key-{version}");
        put(backend, &key, 1, before);
        assert_eq!(put(backend, &key, 2, version), Applied);
        assert_eq!(put(backend, &key, 1, before), stale(version));
    }
    assert_eq!(put(backend, "a", 3, LogicalTime::new(u64::MAX, u64::MAX)), Applied);
    assert_eq!(get(backend, "a"), Some((3, LogicalTime::new(u64::MAX, u64::MAX))));
}

fn another_value_for_a_version_is_an_error_by_name(backend: &impl Tested) {
    put(backend, "a", 1, time(7));
    assert_eq!(put(backend, "a", 2, time(7)), VersionConflict);
    let error = backend.put("a".to_owned(), 2, time(7)).expect_err("a conflict");
    assert!(matches!(error, BackendError::VersionConflict { .. }), "{error:?}");
    assert!(error.to_string().contains("\"a\" has version 7 with another value"), "{error}");
    assert_eq!(delete(backend, "a", time(7)), VersionConflict);
    assert_eq!(get(backend, "a"), Some((1, time(7))), "the first value stays");
    delete(backend, "b", time(7));
    assert_eq!(put(backend, "b", 1, time(7)), VersionConflict);
    assert_eq!(get(backend, "b"), None);
}

fn a_deleted_key_stays_deleted(backend: &impl Tested) {
    put(backend, "a", 1, time(3));
    assert_eq!(delete(backend, "a", time(5)), Applied);
    assert_eq!(delete(backend, "a", time(5)), Duplicate);
    assert_eq!(delete(backend, "a", time(4)), stale(5));
    assert_eq!((get(backend, "a"), passed(backend, "a")), (None, Some(time(5))));
    assert_eq!(put(backend, "a", 4, time(4)), stale(5), "a late put does not bring it back");
    assert_eq!(delete(backend, "never", time(5)), Applied);
    assert_eq!(put(backend, "never", 1, time(4)), stale(5));
    assert_eq!((put(backend, "a", 6, time(6)), get(backend, "a")), (Applied, Some((6, time(6)))));
}

fn a_seal_ends_what_it_passes(backend: &impl Tested) {
    put(backend, "a", 1, time(3));
    delete(backend, "gone", time(4));
    delete(backend, "later", time(9));
    backend.seal(time(5)).expect("seal");
    backend.seal(time(2)).expect("a lower seal changes nothing");
    assert_eq!((put(backend, "new", 1, time(5)), put(backend, "gone", 1, time(5))), (stale(5), stale(5)));
    assert_eq!(put(backend, "a", 1, time(3)), Duplicate);
    assert_eq!((put(backend, "a", 2, time(2)), put(backend, "a", 2, time(4))), (stale(5), stale(5)));
    assert_eq!(put(backend, "later", 1, time(4)), stale(9));
    assert_eq!(passed(backend, "new"), Some(time(5)));
    assert_eq!((passed(backend, "a"), passed(backend, "later")), (Some(time(5)), Some(time(9))));
    assert_eq!((put(backend, "new", 6, time(6)), put(backend, "gone", 6, time(6))), (Applied, Applied));
    assert_eq!(get(backend, "a"), Some((1, time(3))), "a value below the seal stays");
}

fn a_restored_state_is_that_of_the_snapshot(from: &impl Tested, to: &mut impl Tested) {
    fill(from);
    let snapshot = from.snapshot().expect("snapshot");
    assert_eq!(from.snapshot().expect("snapshot"), snapshot, "the same state gives the same bytes");
    put(to, "only-here", 1, time(100));
    put(to, "a", 100, time(100));
    to.restore(&snapshot).expect("restore");
    assert_eq!(to.snapshot().expect("snapshot"), snapshot);
    assert_eq!((get(to, "a"), get(to, "b/ü")), (Some((1, time(3))), Some((-2, LogicalTime::new(1, 0)))));
    assert_eq!((get(to, "only-here"), get(to, "gone"), get(to, "forgotten")), (None, None, None));
    assert_eq!(put(to, "gone", 1, time(4)), stale(5), "the versions of deleted keys come along");
    assert_eq!(put(to, "forgotten", 1, time(2)), stale(2), "and so does the seal");
    assert_eq!(put(to, "only-here", 2, time(3)), Applied, "nothing is left of the state before");
}

fn some_keys_move_to_another_backend(from: &impl Tested, to: &mut impl Tested) {
    fill(from);
    put(to, "here", 1, time(1));
    let keys = ["a", "gone", "forgotten", "never"].map(str::to_owned);
    let part = from.snapshot_for_keys(&keys).expect("snapshot_for_keys");
    let before = to.snapshot().expect("snapshot");
    let error = to.restore(&part).expect_err("some keys are not the whole state");
    assert!(matches!(error, BackendError::UnsuitableSnapshot { .. }), "{error:?}");
    assert_eq!(to.snapshot().expect("snapshot"), before);
    for _ in 0..2 {
        to.restore_keys(&part).expect("restore_keys, and again");
        assert_eq!((get(to, "a"), get(to, "b/ü"), get(to, "here")), (Some((1, time(3))), None, Some((1, time(1)))));
        assert_eq!((put(to, "gone", 1, time(4)), passed(to, "never")), (stale(5), None));
    }
    to.restore_keys(&from.snapshot().expect("snapshot")).expect("a whole state has keys, too");
    assert_eq!((get(to, "b/ü"), get(to, "here")), (Some((-2, LogicalTime::new(1, 0))), Some((1, time(1)))));
    to.restore_keys(&from.snapshot_for_keys(&[]).expect("no keys")).expect("no keys");
}

fn moved_keys_never_replace_newer_ones(from: &impl Tested, to: &mut impl Tested) {
    for key in ["newer-here", "newer-there", "deleted-here", "deleted-there"] {
        put(from, key, 5, time(5));
        put(to, key, 5, time(5));
    }
    put(to, "newer-here", 6, time(6));
    put(from, "newer-there", 6, time(6));
    delete(to, "deleted-here", time(6));
    delete(from, "deleted-there", time(6));
    to.restore_keys(&from.snapshot().expect("snapshot")).expect("restore_keys");
    assert_eq!((get(to, "newer-here"), get(to, "newer-there")), (Some((6, time(6))), Some((6, time(6)))));
    assert_eq!((get(to, "deleted-here"), get(to, "deleted-there")), (None, None));
    assert_eq!((passed(to, "deleted-here"), passed(to, "deleted-there")), (Some(time(6)), Some(time(6))));
}

fn moved_keys_arrive_together_or_not_at_all(from: &impl Tested, to: &mut impl Tested) {
    put(from, "a", 1, time(1));
    put(from, "m", 1, time(7));
    put(from, "z", 1, time(1));
    put(to, "m", 2, time(7));
    let before = to.snapshot().expect("snapshot");
    let error = to.restore_keys(&from.snapshot().expect("snapshot")).expect_err("a conflict");
    assert!(matches!(&error, BackendError::VersionConflict { key, .. } if key == "m"), "{error:?}");
    assert_eq!(to.snapshot().expect("snapshot"), before);
}

fn keys_move_below_the_seal(from: &impl Tested, to: &mut impl Tested) {
    put(from, "a", 1, time(3));
    put(from, "b", 1, time(7));
    delete(from, "gone", time(4));
    put(to, "here", 1, time(2));
    to.seal(time(5)).expect("seal");
    to.restore_keys(&from.snapshot().expect("snapshot")).expect("restore_keys");
    assert_eq!((get(to, "a"), get(to, "b")), (Some((1, time(3))), Some((1, time(7)))));
    assert_eq!((get(to, "here"), passed(to, "gone")), (Some((1, time(2))), Some(time(5))));
    assert_eq!(put(to, "a", 2, time(4)), stale(5), "the seal stays");
}

fn keys_are_checked(backend: &impl Tested) {
    let longest = "x".repeat(1_024);
    assert_eq!((put(backend, &longest, 1, time(1)), get(backend, &longest)), (Applied, Some((1, time(1)))));
    for key in ["", &"x".repeat(1_025)] {
        assert!(backend.put(key.to_owned(), 1, time(1)).is_err(), "{} bytes", key.len());
        assert!(backend.delete(key.to_owned(), time(1)).is_err(), "{} bytes", key.len());
    }
}

fn updates_in_any_order_leave_the_newest<B: Tested>(make: &impl Fn() -> B) {
    for order in [[1, 2, 3, 4], [4, 3, 2, 1], [2, 4, 1, 3], [3, 1, 4, 2]] {
        let backend = make();
        for version in order.into_iter().chain(order) {
            // The third one deletes.
            match version {
                3 => delete(&backend, "a", time(3)),
                _ => put(&backend, "a", i64::try_from(version).expect("it is small"), time(version)),
            };
        }
        assert_eq!(get(&backend, "a"), Some((4, time(4))), "{order:?}");
        assert_eq!(delete(&backend, "a", time(3)), stale(4));
    }
}

fn a_replay_after_a_restore_counts_what_the_snapshot_lacks<B: Tested>(make: &impl Fn() -> B) {
    let inputs: Vec<(String, i64, u64)> = (1..=30).map(|at| (format!("key-{}", at % 4), at * at, at as u64)).collect();
    let apply = |backend: &B, inputs: &[(String, i64, u64)]| {
        for (key, value, at) in inputs {
            backend.put(key.clone(), *value, time(*at)).expect("put");
        }
    };
    let whole = make();
    apply(&whole, &inputs);
    for crash in [0, 1, 13, 30] {
        let first = make();
        apply(&first, &inputs[..crash]);
        let checkpoint = first.snapshot().expect("snapshot");
        let mut second = make();
        second.restore(&checkpoint).expect("restore");
        // The source begins some inputs before the checkpoint.
        apply(&second, &inputs[crash.saturating_sub(5)..]);
        assert_eq!(second.snapshot().expect("snapshot"), whole.snapshot().expect("snapshot"), "crash at {crash}");
    }
}

fn threads_never_see_a_key_go_back(backend: &(impl Tested + Sync)) {
    let applied = std::thread::scope(|scope| {
        // Two of four threads send each version, one of them in the other direction.
        let writer = |number: u64| {
            let send = |at: u64| {
                let version = if number < 2 { 2 * at + number } else { 2 * (50 - at) + number - 2 };
                put(backend, "a", i64::try_from(version).expect("it is small"), time(version)) == Applied
            };
            (1..50).filter(|at| send(*at)).count()
        };
        let writers: Vec<_> = (0..4).map(|number| scope.spawn(move || writer(number))).collect();
        scope.spawn(|| {
            let mut newest = None;
            for _ in 0..200 {
                let seen = get(backend, "a").map(|(_, version)| version);
                assert!(seen >= newest, "{seen:?} after {newest:?}");
                newest = seen;
            }
        });
        writers.into_iter().map(|writer| writer.join().expect("no panic")).sum::<usize>()
    });
    assert_eq!(get(backend, "a"), Some((99, time(99))));
    assert!((1..=98).contains(&applied), "each version is applied at most once, not {applied} of 98");
}
