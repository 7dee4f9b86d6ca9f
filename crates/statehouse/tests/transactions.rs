//! Interactive transactions: isolation (T1), own writes, conflicts by name, limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use statehouse::{
    CellRejection, Clock, Error, Expected, Isolation, ListPage, Options, Rejection, Statehouse, Swapped, Transaction,
};

fn house() -> (Statehouse, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    (Statehouse::open(directory.path().join("house")).expect("open"), directory)
}

fn conflict(result: Result<statehouse::Committed, Error>) -> String {
    match result {
        Err(Error::Rejected(Rejection::Cell(CellRejection::Conflict { cell, .. }))) => cell,
        other => panic!("a conflict was expected, not {other:?}"),
    }
}

fn names(transaction: &mut Transaction, prefix: &str) -> Vec<String> {
    let listed = transaction.list(prefix, ListPage::default()).expect("list");
    listed.cells.into_iter().map(|(cell, _)| cell.name).collect()
}

#[test]
fn a_transaction_reads_its_own_writes_and_others_do_not() {
    let (house, _directory) = house();
    let group = house.group("g");
    group.cells().set("a", 1).expect("set");
    let mut transaction = group.begin().expect("begin");
    transaction.set("a", 2).expect("set");
    transaction.set("g", "the group's own name").expect("set");
    assert_eq!(transaction.delete("never").expect("delete").version, None);
    assert_eq!(transaction.init("b", 3).expect("init").version, 1);
    assert!(!transaction.init("b", 4).expect("init").created);
    assert_eq!(transaction.get("a").expect("get"), Some(2.into()));
    assert_eq!(transaction.get_versioned("a").expect("get").expect("it exists").version, 2);
    assert_eq!(names(&mut transaction, ""), ["a", "b", "g"]);
    assert_eq!(transaction.cas("a", Expected::Version(1), 9).expect("cas"), Swapped::Conflict { current: Some(2) });
    transaction.delete("a").expect("delete");
    assert_eq!(transaction.get("a").expect("get"), None);
    assert_eq!(names(&mut transaction, ""), ["b", "g"]);
    assert_eq!(group.cells().get("a").expect("get"), Some(1.into()), "others see nothing yet");
    transaction.commit().expect("commit");
    assert_eq!(group.cells().get("a").expect("get"), None);
    assert_eq!(group.cells().set("a", 5).expect("set").version, 4, "each write was a version");
    let listed = group.cells().list("", ListPage::default()).expect("list");
    assert_eq!(listed.cells.iter().map(|(cell, _)| cell.name.as_str()).collect::<Vec<_>>(), ["a", "b", "g"]);
}

#[test]
fn a_changed_read_is_a_conflict_that_names_the_cell() {
    let (house, _directory) = house();
    let group = house.group("g");
    for (changed, conflicts) in [("read", true), ("absent", true), ("unread", false)] {
        let mut transaction = group.begin().expect("begin");
        transaction.get("read").expect("get");
        transaction.get("absent").expect("get");
        transaction.set("written", 1).expect("set");
        group.cells().set(changed, 1).expect("set");
        if conflicts {
            assert_eq!(conflict(transaction.commit()), changed);
        } else {
            transaction.commit().expect("commit");
        }
    }
}

#[test]
fn a_change_in_a_range_that_was_read_is_a_conflict() {
    let (house, _directory) = house();
    let group = house.group("job/4");
    for number in [1, 2, 3, 5] {
        group.cells().set(&format!("job/{number}"), number).expect("set");
    }
    let page = ListPage { after: None, limit: 2 };
    // Only the page that was read is guarded, up to its last name; the group's own name is in the range too.
    let cases: [(&str, bool, ListPage); 7] = [
        ("job/3", true, ListPage::default()),
        ("job/4", true, ListPage::default()),
        ("job/9", true, ListPage::default()),
        ("jobs", false, ListPage::default()),
        ("job/15", true, page.clone()),
        ("job/2", true, page.clone()),
        ("job/21", false, page),
    ];
    for (changed, conflicts, page) in cases {
        let mut transaction = group.begin().expect("begin");
        transaction.list("job/", page).expect("list");
        transaction.set("result", 1).expect("set");
        group.cells().set(changed, "changed").expect("set");
        if conflicts {
            assert_eq!(conflict(transaction.commit()), changed);
        } else {
            transaction.commit().unwrap_or_else(|error| panic!("{changed}: {error}"));
        }
        group.cells().delete(changed).expect("delete");
        if ["job/3", "job/2"].contains(&changed) {
            group.cells().set(changed, 0).expect("set");
        }
    }
    let mut transaction = group.begin().expect("begin");
    transaction.list("job/", ListPage::default()).expect("list");
    transaction.set("result", 1).expect("set");
    group.cells().delete("job/5").expect("delete");
    assert_eq!(conflict(transaction.commit()), "job/5", "a deletion is a change");
}

#[test]
fn snapshot_isolation_by_choice_admits_write_skew_and_no_lost_update() {
    let (house, _directory) = house();
    let group = house.group("g");
    let pair = |isolation| {
        let mut first = group.begin_with(isolation).expect("begin");
        let mut second = group.begin_with(isolation).expect("begin");
        first.get("b").expect("get");
        first.set("a", 1).expect("set");
        second.get("a").expect("get");
        second.set("b", 1).expect("set");
        first.commit().expect("the first goes through");
        second.commit()
    };
    assert!(pair(Isolation::Snapshot).is_ok());
    assert_eq!(conflict(pair(Isolation::Serialisable)), "a");
    let mut first = group.begin_with(Isolation::Snapshot).expect("begin");
    first.set("a", 2).expect("set");
    group.cells().set("a", 3).expect("set");
    assert_eq!(conflict(first.commit()), "a", "an overwritten write is a conflict");
}

#[test]
fn a_transaction_that_only_reads_never_conflicts_and_reads_one_moment() {
    let (house, _directory) = house();
    let group = house.group("g");
    group.cells().set("a", 1).expect("set");
    let mut transaction = group.begin().expect("begin");
    assert_eq!(transaction.get("a").expect("get"), Some(1.into()));
    group.cells().set("a", 2).expect("set");
    group.cells().set("b", 2).expect("set");
    assert_eq!(transaction.get("a").expect("get"), Some(1.into()));
    assert_eq!(transaction.get("b").expect("get"), None);
    assert_eq!(names(&mut transaction, ""), ["a"]);
    transaction.commit().expect("nothing to conflict with");
}

#[test]
fn two_groups_in_one_transaction_are_refused_with_what_to_do() {
    let (house, _directory) = house();
    let mut transaction = house.cells().begin().expect("begin");
    transaction.set("one", 1).expect("set");
    assert_eq!(transaction.get("one").expect("get"), Some(1.into()));
    let refused = transaction.get("other").expect_err("another group");
    assert!(refused.to_string().contains("house.group"), "{refused}");
    assert!(transaction.list("", ListPage::default()).is_err(), "a spread cell has no list of its group");
    transaction.commit().expect("the one cell commits");
    assert_eq!(house.cells().get("one").expect("get"), Some(1.into()));
}

#[test]
fn limits_on_writes_reads_and_age_are_named() {
    struct SetClock(AtomicU64);
    impl Clock for SetClock {
        fn wall_us(&self) -> u64 {
            self.0.load(Ordering::SeqCst)
        }
        fn monotonic_us(&self) -> u64 {
            self.0.load(Ordering::SeqCst)
        }
    }
    let directory = tempfile::tempdir().expect("a directory");
    let clock = Arc::new(SetClock(AtomicU64::new(1_000_000)));
    let house = Options::default().clock(clock.clone()).open(directory.path().join("house")).expect("open");
    let group = house.group("g");
    let limit = |error: Error| match error {
        Error::Rejected(Rejection::LimitExceeded { limit, .. }) => limit,
        other => panic!("a limit was expected, not {other}"),
    };

    let mut transaction = group.begin().expect("begin");
    for number in 0..128 {
        transaction.set(&format!("cell-{number}"), number).expect("within the limit");
    }
    assert_eq!(limit(transaction.set("one more", 1).expect_err("beyond")), "transaction_ops_max");
    transaction.commit().expect("128 operations commit");

    let mut transaction = group.begin().expect("begin");
    for number in 0..1_000 {
        transaction.get(&format!("cell-{number}")).expect("within the limit");
    }
    transaction.get("cell-0").expect("the same cell again costs nothing");
    assert_eq!(limit(transaction.get("one more").expect_err("beyond")), "transaction_guards_max");

    let mut transaction = group.begin().expect("begin");
    let refused = (0..200).find_map(|_| transaction.list("", ListPage::default()).err()).expect("beyond");
    assert_eq!(limit(refused), "transaction_reads_max");

    let mut transaction = group.begin().expect("begin");
    transaction.set("a", vec![0; 1 << 20]).expect("set");
    transaction.set("b", vec![0; 1 << 20]).expect("set");
    assert_eq!(limit(transaction.commit().expect_err("beyond")), "transaction_bytes_max");

    let mut transaction = group.begin().expect("begin");
    transaction.set("a", 1).expect("set");
    clock.0.fetch_add(60_000_001, Ordering::SeqCst);
    let lost = transaction.commit().expect_err("too old");
    assert!(matches!(&lost, Error::Rejected(Rejection::TransactionLost { .. })) && lost.retryable(), "{lost}");
}

#[test]
fn the_helper_tries_again_until_it_commits_and_gives_up_on_other_errors() {
    let (house, _directory) = house();
    let group = house.group("g");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    group
                        .transact(|transaction| {
                            let count = transaction.get("n")?.and_then(|value| value.as_integer()).unwrap_or(0);
                            transaction.set("n", count + 1)
                        })
                        .expect("it commits in the end");
                }
            });
        }
    });
    assert_eq!(group.cells().get("n").expect("get"), Some(160.into()));
    let mut tries = 0;
    let refused = group.transact(|transaction| {
        tries += 1;
        transaction.set("", 1)
    });
    assert!(refused.is_err());
    assert_eq!(tries, 1, "a refusal that cannot change is not tried again");
}
