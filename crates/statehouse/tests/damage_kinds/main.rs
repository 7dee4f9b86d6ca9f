//! Damage in rows of every kind: a store with something of everything, and for each kind the block that has its rows.
//!
//! No answer is wrong: it is the one from before, or `Damaged`. Nothing else stops. A replay says the same.

mod blocks;
mod copies;
mod filled;
#[path = "../export/furnished.rs"]
#[allow(dead_code, reason = "the test of exports uses all of it")]
mod furnished;
#[path = "../held/mod.rs"]
mod held;
mod keyed;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use blocks::{blocks_by_kind, flip};
use copies::{copied, copied_at_rest};
use filled::{Echo, Sound, THINGS, filled, name, options};
use furnished::event;
use held::HeldClock;
use kernel::keys::readable::kinds;
use statehouse::access::Principal;
use statehouse::records::{ClaimOptions, Put, Record};
use statehouse::runs::RunList;
use statehouse::{Change, Error, Followed, ListPage, Rejection, Statehouse, backup};

fn is_damaged<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Rejected(Rejection::Damaged { .. })))
}

const DAMAGED: &str = "damaged";

fn words<T: Debug>(result: Result<T, Error>) -> String {
    match result {
        Ok(answer) => format!("{answer:?}"),
        Err(error) if error.code() == "SH-2023" => DAMAGED.to_owned(),
        Err(error) => panic!("{error}"),
    }
}

/// What does not depend on the time.
fn without_times(mut record: Record) -> impl Debug {
    record.fields.remove("timeout_at");
    (record.version, record.commit, record.attempt, record.fields)
}

/// Answers to questions about everything.
fn answers(house: &Statehouse) -> BTreeMap<String, String> {
    let mut answers = BTreeMap::new();
    let mut ask = |question: String, answer: String| answers.insert(question, answer);
    for number in 0..THINGS {
        let (name, queue) = (name(number), format!("queue.{}.{number:04}", number % 40));
        ask(format!("cell {name}"), words(house.cells().get_versioned(&name)));
        ask(format!("cell in a group {name}"), words(house.group("g").cells().get_versioned(&name)));
        ask(format!("history {name}"), words(house.cells().history(&name, Default::default())));
        ask(format!("record {queue}"), words(house.records().get(&queue).map(|record| record.map(without_times))));
        ask(format!("counts {queue}"), words(house.records().counts(&format!("queue.{}.", number % 40))));
        ask(format!("run {name}"), words(house.runs().snapshot(&name)));
        ask(format!("events {name}"), words(house.runs().fetch(&name, 0, 10).map(|found| found.events)));
    }
    ask("all cells".into(), words(house.cells().list("", ListPage::default())));
    ask("mail".into(), words(house.space("shop").records().counts("mail.")));
    ask("runs".into(), words(house.runs().counts()));
    ask("list of runs".into(), words(house.runs().list(&RunList::default())));
    ask("messages".into(), words(house.waiting_messages(1_000)));
    ask("spaces".into(), words(house.spaces()));
    ask("principals".into(), words(house.principals().list()));
    ask("audit".into(), words(house.audit().events(0, 1_000)));
    ask("head of the audit".into(), words(house.audit().head()));
    keyed::ask(house, &mut |question, answer| drop(ask(question, words(answer))));
    answers
}

/// Rows that something of records, of runs or of sessions needs.
fn concerns(kinds: &BTreeSet<String>, what: &[&str]) -> bool {
    kinds.iter().any(|kind| what.iter().any(|part| kind.contains(part)))
}

const OF_RECORDS: [&str; 7] = ["record", "schedule", "messages", "queues", "own", "session", "machine"];
const OF_KEYED: [&str; 7] = ["map", "record", "schedule", "own", "group", "cell", "name"];
const OF_RUNS: [&str; 2] = ["run", "schedule"];

/// It is a run, whose last event is beside its head.
const OF_THE_AUDIT: [&str; 3] = ["audit", "run", "schedule"];

/// Only a shard beside others has these; the kernel's tests damage them.
const OF_NEIGHBOURS: [&str; 2] = ["messages to other shards", "the numbers of received messages"];

/// All changes of the feed that can be read.
fn feed(house: &Statehouse) -> Vec<Change> {
    let (mut cursor, mut changes) = (0, Vec::new());
    let newest = house.changes().newest().expect("the newest");
    while cursor < newest {
        cursor = match house.changes().read(cursor, 1_000).expect("a page or a gap") {
            Followed::Page(page) => {
                // Some records expire when the store is opened, at another time in each, and "tail" is a replayed entry.
                let others = ["tail", "entry"];
                let is_other =
                    |change: &Change| !change.name.starts_with("soon.") && !others.contains(&change.name.as_str());
                changes.extend(page.changes.into_iter().filter(is_other));
                page.next
            }
            Followed::Gap { oldest, .. } => {
                assert!(oldest > cursor, "a gap that leads nowhere: {oldest} after {cursor}");
                oldest
            }
        };
    }
    changes
}

/// Writes of everything that does not need the block.
fn write_everything(house: &Statehouse, before: &BTreeMap<String, String>, kinds: &BTreeSet<String>, sessions: &[u64]) {
    let cursor = house.changes().newest().expect("the newest");
    if house.cells().set("followed", 1).is_ok() {
        let Ok(Followed::Page(page)) = house.changes().read(cursor, 1_000) else { panic!("the feed does not go on") };
        assert!(page.changes.iter().any(|change| change.name == "followed"), "{page:?}");
    }
    for number in (0..THINGS).step_by(3) {
        let name = name(number);
        let written = house.cells().set(&name, "new");
        assert_eq!(is_damaged(&written), before[&format!("cell {name}")] == DAMAGED, "{name}: {written:?}");
        let fresh = format!("fresh/{number}");
        let written = house.cells().set(&fresh, "new");
        assert_eq!(is_damaged(&written), is_damaged(&house.cells().get(&fresh)), "{fresh}: {written:?}");
        let put = house.records().put(&format!("fresh.{number}"), [("a", 1)], Put::typed("task"));
        assert!(put.is_ok() || is_damaged(&put) && concerns(kinds, &OF_RECORDS), "{put:?}");
        let run = house.runs().append(&format!("fresh/{number}"), &event("RunStarted", "k", None));
        assert!(run.is_ok() || is_damaged(&run) && concerns(kinds, &OF_RUNS), "{run:?}");
        let published = house.group("topics").commit().publish("topic", vec![2]).run();
        assert!(published.is_ok() || is_damaged(&published) && concerns(kinds, &["messages"]), "{published:?}");
    }
    for number in (1..THINGS).step_by(7) {
        let (cell, record) = (name(number), format!("queue.{}.{number:04}", number % 40));
        let deleted = house.cells().delete(&cell);
        assert_eq!(is_damaged(&deleted), before[&format!("cell {cell}")] == DAMAGED, "{cell}: {deleted:?}");
        let deleted = house.records().delete(&record);
        assert!(deleted.is_ok() || is_damaged(&deleted) && concerns(kinds, &OF_RECORDS), "{record}: {deleted:?}");
    }
    // An act that cannot be recorded is not done.
    let set = house.principals().set(&Principal::new("newcomer"));
    assert!(set.is_ok() || is_damaged(&set) && concerns(kinds, &OF_THE_AUDIT), "{set:?}");
    assert_eq!(house.principals().get("newcomer").is_ok(), set.is_ok(), "{set:?}");
    keyed::write(house, &|_| concerns(kinds, &OF_KEYED));
    let claimed = house.records().claim_next("fresh.", 5, &ClaimOptions::worker("w"));
    assert!(claimed.is_ok() || is_damaged(&claimed) && concerns(kinds, &OF_RECORDS), "{claimed:?}");
    // A new session needs nothing of the others.
    let session = house.sessions().open().expect("a session");
    let written = session.cells().set("of/the/session", 1);
    assert_eq!(is_damaged(&written), is_damaged(&house.cells().get("of/the/session")), "{written:?}");
    let sent = session.machine::<Echo>().group("other").send(&Sound);
    assert!(sent.is_ok() || is_damaged(&sent) && concerns(kinds, &["machine", "own"]), "{sent:?}");
    session.close().expect("closed");
    house.sessions().requests_for_retry(u64::MAX, 1_000).expect("pushes to send again");
    for session in sessions {
        let ended = house.sessions().expire(*session);
        assert!(ended.as_ref().is_ok_and(|ended| *ended) || concerns(kinds, &["session"]), "{ended:?}");
    }
    house.sessions().requests_for_retry(u64::MAX, 1_000).expect("pushes to send again");
    let cells = house.create_space("new").expect("a space").cells();
    assert_eq!(is_damaged(&cells.set("a", 1)), is_damaged(&cells.get("a")));
}

/// Opens a copy, in which no time passes: nothing becomes due, so nothing is applied after the replay.
fn check_replay(path: &Path, to: &Path, applied: (u64, u64), after: &BTreeMap<String, String>, kind: &str) {
    copied(path, to);
    let house = options().clock(Arc::new(HeldClock::default())).open(to);
    let house = house.unwrap_or_else(|error| panic!("{kind}: {error}"));
    assert!(answers(&house) == *after, "{kind}: a replay gives other answers");
    let status = house.status().expect("a status");
    assert_eq!((status.applied_index, status.effects_hash), applied, "{kind}: a replay gives another hash");
    drop(house);
    std::fs::remove_dir_all(to).expect("removed");
}

#[test]
fn damaged_rows_of_every_kind_cost_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = folder.path().join("whole");
    let sessions = filled(&folder.path().join("filled"), &whole);
    check_every_kind(&folder, &whole, &sessions);
}

/// Second copies are not in a backup: they are made when the store is opened.
#[test]
fn nor_do_they_in_a_store_that_was_restored() {
    let folder = tempfile::tempdir().expect("a folder");
    let (whole, restored) = (folder.path().join("whole"), folder.path().join("restored"));
    let sessions = filled(&folder.path().join("filled"), &whole);
    let mut bytes = Vec::new();
    let house = options().open(&whole).expect("opened");
    backup::create(&house, &mut bytes, &mut |_| {}).expect("a backup");
    house.close().expect("closed");
    drop(house);
    backup::restore(&restored, &mut bytes.as_slice(), &mut |_| {}).expect("restored");
    options().open(&restored).expect("opened").close().expect("closed");
    check_every_kind(&folder, &restored, &sessions);
}

fn check_every_kind(folder: &tempfile::TempDir, whole: &Path, sessions: &[u64]) {
    let found = blocks_by_kind(&whole.join("store"), &folder.path().join("scratch"));
    let missing: Vec<_> = kinds()
        .filter(|kind| !OF_NEIGHBOURS.contains(kind))
        .filter(|kind| !found.keys().any(|label| label == kind || label.starts_with(&format!("{kind} "))))
        .collect();
    assert!(missing.is_empty(), "no block has rows of {missing:?}");
    assert!(!found.keys().any(|kind| OF_NEIGHBOURS.contains(&kind.as_str())), "a shard that owns all has neighbours");
    for session_rows in 1..=6 {
        assert!(found.contains_key(&format!("sessions {session_rows}")), "no rows of sessions of kind {session_rows}");
    }
    let (reference, whole_feed) = {
        let path = folder.path().join("reference");
        copied(whole, &path);
        let house = options().open(&path).expect("opened");
        (answers(&house), feed(&house))
    };
    for (kind, (block, kinds)) in &found {
        println!("{kind}: {:?} at {}, with {kinds:?}", block.file, block.offset);
        let path = folder.path().join("trial");
        copied(whole, &path);
        flip(&path.join("store"), block);
        let house = options().open(&path).unwrap_or_else(|error| panic!("{kind}: {error}"));
        let before = answers(&house);
        for (question, answer) in &before {
            let expected = &reference[question];
            assert!(answer == expected || answer == DAMAGED, "{kind}: {question}: {answer}, not {expected}");
        }
        // An entry sets apart what the answers have met. It may need it itself.
        let _ = house.cells().set("entry", 1);
        let changes = feed(&house);
        assert!(changes.iter().all(|change| whole_feed.contains(change)), "{kind}: a change that was none");
        let is_whole = changes.len() == whole_feed.len();
        assert!(is_whole || kinds.contains("the change feed") && !changes.is_empty(), "{kind}: changes are missing");
        write_everything(&house, &before, kinds, sessions);
        let again = folder.path().join("again");
        let hash = copied_at_rest(&house, &path, &again);
        let after = answers(&house);
        house.close().unwrap_or_else(|error| panic!("{kind}: {error}"));
        drop(house);
        check_replay(&again, &folder.path().join("replayed"), hash, &after, kind);
        // Without a replay: everything is in tables.
        assert!(answers(&options().open(&path).expect("opened")) == after, "{kind}: other answers after closing");
        [&again, &path].into_iter().for_each(|path| std::fs::remove_dir_all(path).expect("removed"));
    }
}
