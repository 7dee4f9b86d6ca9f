//! Interactive transactions over cells, records and runs: what they read of their own writes, and what they conflict with.

use std::time::Duration;

use statehouse::records::{ClaimOptions, Claimed, Put, Record, Ttl};
use statehouse::runs::{AppendOptions, NewEvent, RunSnapshot};
use statehouse::{
    CellRejection, Error, Group, Isolation, Json, ListPage, RecordRejection, Rejection, RunRejection, Statehouse,
    Transaction, Value,
};
use testkit::random::Random;

fn house() -> (Statehouse, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    (Statehouse::open(directory.path().join("house")).expect("open"), directory)
}

fn event(key: u64) -> NewEvent {
    let data = Json::new(format!("{{\"n\":{key}}}")).expect("JSON");
    NewEvent::new("Counted", format!("key-{key}"), "2026-02-11T10:00:00Z", data)
}

/// A thing of each contract, named so that a conflict can be told from others.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Thing {
    Cell,
    Record,
    Run,
}

impl Thing {
    const ALL: [Self; 3] = [Self::Cell, Self::Record, Self::Run];

    /// Changes it from outside.
    fn change(self, group: &Group, key: u64) {
        match self {
            Self::Cell => drop(group.cells().set("cell", key.to_string()).expect("set")),
            Self::Record => drop(group.records().put("record", [("n", key.to_string())], Put::default()).expect("put")),
            Self::Run => drop(group.runs().append("run", &event(key)).expect("appended")),
        }
    }

    fn read(self, transaction: &mut Transaction) {
        match self {
            Self::Cell => drop(transaction.get("cell").expect("read")),
            Self::Record => drop(transaction.records().get("record").expect("read")),
            Self::Run => drop(transaction.runs().snapshot("run").expect("read")),
        }
    }

    /// Writes it; all but a cell are read for that.
    fn write(self, transaction: &mut Transaction, key: u64) {
        match self {
            Self::Cell => transaction.set("cell", "mine").expect("written"),
            Self::Record => {
                transaction.records().set_fields("record", [("n", Some("mine".into()))]).map(|_| ()).expect("written")
            }
            Self::Run => {
                transaction.runs().append("run", &event(key), AppendOptions::default()).map(|_| ()).expect("appended")
            }
        }
    }

    /// Whether this is the thing that a commit conflicted with.
    fn is_named_by(self, error: &Error) -> bool {
        error.retryable()
            && match (self, error) {
                (Self::Cell, Error::Rejected(Rejection::Cell(CellRejection::Conflict { cell, .. }))) => cell == "cell",
                (Self::Record, Error::Rejected(Rejection::Record(RecordRejection::Conflict { record, .. }))) => {
                    record == "record"
                }
                (Self::Run, Error::Rejected(Rejection::Run(RunRejection::SequenceConflict { run, .. }))) => {
                    run == "run"
                }
                _ => false,
            }
    }
}

#[test]
fn what_was_read_or_written_conflicts_with_others_by_its_isolation_and_nothing_else_does() {
    let (house, _directory) = house();
    let mut key = 0;
    let mut next = || {
        key += 1;
        key
    };
    for (number, exists) in [false, true].into_iter().enumerate() {
        for isolation in [Isolation::Serialisable, Isolation::Snapshot] {
            for touched in Thing::ALL {
                for writes in [false, true] {
                    for changed in Thing::ALL {
                        let group = house.group(format!("g{number}.{}", next()));
                        if exists {
                            Thing::ALL.into_iter().for_each(|thing| thing.change(&group, next()));
                        }
                        let mut transaction = group.begin_with(isolation).expect("begin");
                        match writes {
                            false => touched.read(&mut transaction),
                            true => touched.write(&mut transaction, next()),
                        }
                        transaction.set("other", 1).expect("set");
                        changed.change(&group, next());
                        let what =
                            format!("{isolation:?} {touched:?} exists {exists} writes {writes}, {changed:?} changed");
                        let guarded = match isolation {
                            // A cell that is only set is not read.
                            Isolation::Serialisable => !writes || touched != Thing::Cell,
                            Isolation::Snapshot => writes,
                        };
                        match transaction.commit() {
                            Ok(_) => assert!(!guarded || touched != changed, "{what}"),
                            Err(error) => {
                                assert!(
                                    guarded && touched == changed && touched.is_named_by(&error),
                                    "{what}: {error}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What can be compared between a transaction and what it has committed: everything but times and commits.
#[derive(Debug, PartialEq)]
struct State {
    cells: Vec<Option<(Value, u64)>>,
    records: Vec<Option<Record>>,
    runs: Vec<(u64, Option<RunSnapshot>)>,
}

const NAMES: [&str; 3] = ["a", "b", "c"];

fn without_times(record: Record) -> Record {
    let mut bare = Record::empty(record.version, 0, 0, 0);
    let is_time = |name: &str| name.ends_with("_at");
    bare.fields = record.fields.into_iter().filter(|(name, _)| !is_time(name)).collect();
    (bare.record_type, bare.attempt, bare.failures) = (record.record_type, record.attempt, record.failures);
    bare
}

fn seen_by(transaction: &mut Transaction) -> State {
    let cells = NAMES.map(|name| transaction.get_versioned(name).expect("read").map(|cell| (cell.value, cell.version)));
    let records = NAMES.map(|name| transaction.records().get(name).expect("read").map(without_times));
    let runs = NAMES.map(|name| {
        let snapshot = transaction.runs().snapshot(name).expect("read");
        (transaction.runs().last(name).expect("read"), snapshot)
    });
    State { cells: cells.into(), records: records.into(), runs: runs.into() }
}

fn stored(group: &Group) -> State {
    let cells = group.cells();
    let cells = NAMES.map(|name| cells.get_versioned(name).expect("read").map(|cell| (cell.value, cell.version)));
    let records = NAMES.map(|name| group.records().get(name).expect("read").map(without_times));
    let runs = NAMES.map(|name| {
        let snapshot = group.runs().snapshot(name).expect("read");
        (snapshot.as_ref().map_or(0, |snapshot| snapshot.last_event_seq), snapshot)
    });
    State { cells: cells.into(), records: records.into(), runs: runs.into() }
}

/// One random operation; a refusal leaves the transaction as it was.
fn step(random: &mut Random, transaction: &mut Transaction, claims: &[Claimed]) -> Result<(), Error> {
    let name = random.pick(&NAMES);
    let number = i64::try_from(random.below(5)).expect("small");
    let claimed = (!claims.is_empty()).then(|| &claims[random.index(claims.len())]);
    match random.below(16) {
        0 => transaction.set(name, number)?,
        1 => transaction.init(name, number).map(|_| ())?,
        2 => transaction.delete(name).map(|_| ())?,
        3 => transaction.set_versioned(name, number).map(|_| ())?,
        4 => transaction.records().put(name, [("n", number)], Put::typed("task")).map(|_| ())?,
        5 => transaction.records().put(name, [("n", number)], Put::default()).map(|_| ())?,
        6 => transaction.records().set_fields(name, [("n", Some(number.into())), ("gone", None)]).map(|_| ())?,
        7 => transaction.records().increment(name, "n", number).map(|_| ())?,
        8 => transaction.records().delete(name).map(|_| ())?,
        9 => transaction.records().set_ttl(name, Ttl::Persist).map(|_| ())?,
        10..=12 => match (claimed, random.below(3)) {
            (None, _) => {}
            (Some(claimed), 0) => transaction.records().complete(claimed, [("n", number)]).map(|_| ())?,
            (Some(claimed), 1) => transaction.records().release(claimed).map(|_| ())?,
            (Some(claimed), _) => transaction.records().fail(claimed, "it failed").map(|_| ())?,
        },
        _ => {
            let options = AppendOptions::default();
            transaction.runs().append(name, &event(random.below(30)), options).map(|_| ())?;
        }
    }
    Ok(())
}

#[test]
fn a_transaction_reads_what_its_commit_will_leave() {
    let (house, _directory) = house();
    let (mut refused, mut committed) = (0, 0);
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let group = house.group(format!("g{}", random.below(8)));
        let mut claims = Vec::new();
        for name in NAMES {
            // Whatever is claimable, by name.
            claims.extend(group.records().claim(name, &ClaimOptions::worker("w")).ok());
        }
        let mut transaction = group.begin().expect("begin");
        let mut before = seen_by(&mut transaction);
        assert_eq!(before, stored(&group), "seed {seed}: nothing was written");
        for _ in 0..random.below(12) {
            match step(&mut random, &mut transaction, &claims) {
                Ok(()) => before = seen_by(&mut transaction),
                Err(error) => {
                    assert!(matches!(error, Error::Rejected(_)), "seed {seed}: {error}");
                    assert_eq!(before, seen_by(&mut transaction), "seed {seed}: {error}");
                    refused += 1;
                }
            }
        }
        transaction.commit().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(before, stored(&group), "seed {seed}");
        committed += 1;
    }
    assert!(refused > 30 && committed == 150, "{refused} refused");
}

#[test]
fn a_fenced_transaction_of_a_finished_attempt_changes_nothing() {
    let (house, _directory) = house();
    let group = house.group("g");
    group.records().put("job", [("n", 1)], Put::typed("task")).expect("put");
    let job = group.records().claim("job", &ClaimOptions::worker("w")).expect("claimed");
    let mut late = group.begin().expect("begin");
    late.fence(&job).expect("live");
    assert_eq!(late.fence(&job).expect_err("twice").code(), "SH-1012");
    late.set("result", "late").expect("set");
    // The attempt ends in another transaction, and what follows its end there is fenced by it too.
    let mut ends = group.begin().expect("begin");
    ends.fence(&job).expect("live");
    ends.records().complete(&job, [("n", 2)]).expect("completed");
    ends.set("ended", true).expect("set after the end");
    ends.commit().expect("committed");
    assert_eq!(late.commit().expect_err("fenced").code(), "SH-4002");
    let mut again = group.begin().expect("begin");
    assert_eq!(again.fence(&job).expect_err("known at once").code(), "SH-4002");
    again.set("other", 1).expect("set");
    assert_eq!(again.fence(&job).expect_err("too late").code(), "SH-1012");
    assert_eq!(group.cells().get("result").expect("read"), None);
}

#[test]
fn that_there_is_more_than_a_page_is_read_too() {
    let (house, _directory) = house();
    let group = house.group("g");
    for name in ["job/a", "job/b", "job/c"] {
        group.cells().set(name, 1).expect("set");
    }
    for (deleted, conflicts) in [("job/c", false), ("job/b", true)] {
        let mut transaction = group.begin().expect("begin");
        let listed = transaction.list("job/", ListPage { after: None, limit: 1 }).expect("list");
        assert!(listed.next_after.is_some());
        transaction.set("many", true).expect("set");
        group.cells().delete(deleted).expect("deleted");
        assert_eq!(transaction.commit().is_err(), conflicts, "{deleted}");
    }
}

#[test]
fn a_record_that_has_expired_is_gone_for_all_of_a_transaction() {
    let (house, _directory) = house();
    let group = house.group("g");
    let mut transaction = group.begin().expect("begin");
    let put = Put { ttl: Ttl::After(Duration::ZERO), ..Put::default() };
    transaction.records().put("r", [("n", 1)], put).expect("put");
    assert_eq!(transaction.records().get("r").expect("read"), None);
    assert!(!transaction.records().delete("r").expect("nothing to delete"));
    assert_eq!(transaction.records().increment("r", "n", 2).expect("from nothing"), 2);
}
