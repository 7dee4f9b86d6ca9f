//! Counters of a directory: every number moves exactly when the thing it counts happens.

mod held;

use std::time::Duration;

use held::{eventually, house};
use statehouse::records::{ClaimOptions, Put, RecordType, Ttl};
use statehouse::runs::{AppendOptions, NewEvent, RunStatus};
use statehouse::sessions::SessionOptions;
use statehouse::{Expected, Json, Statehouse};

const NO_FIELDS: [(&str, i64); 0] = [];

fn event(key: &str) -> NewEvent {
    NewEvent::new("RunStarted", key, "2026-02-11T10:00:00Z", Json::new("{}").expect("JSON"))
}

fn put(house: &Statehouse, name: &str) {
    house.records().put(name, [("n", 1)], Put::typed("task")).expect("put");
}

#[test]
fn what_happens_to_records_is_counted() {
    let (_directory, clock, house) = house();
    let records = house.records();
    let options = ClaimOptions::worker("w").lease(Duration::from_secs(5));
    for name in ["jobs.1", "jobs.2", "jobs.3"] {
        put(&house, name);
    }
    let claimed = records.claim_next("jobs.", 3, &options).expect("claims");
    assert_eq!(house.counters().claims["task"].count, 3);
    records.complete(&claimed[0], NO_FIELDS).expect("complete");
    records.release(&claimed[1]).expect("release");
    let counters = house.counters();
    assert_eq!((counters.records_finished, counters.records_released, counters.records_rescued), (1, 1, 0));
    // The third worker dies.
    clock.advance(Duration::from_secs(6));
    eventually("the third is rescued", || house.counters().records_rescued == 1);
    records.put("short", [("n", 1)], Put { ttl: Ttl::After(Duration::from_secs(1)), ..Put::default() }).expect("put");
    clock.advance(Duration::from_secs(2));
    eventually("its time is over", || house.counters().records_expired == 1);
    // An attempt that ends the last one that the type allows.
    let once = RecordType { attempts_max: 1, ..RecordType::task().named("once") };
    house.space("default").declare_type("once.", once).expect("declare");
    records.put("once.1", [("n", 1)], Put::default()).expect("put");
    let only = records.claim("once.1", &options).expect("claim");
    records.fail(&only, "broken").expect("fail");
    let counters = house.counters();
    assert_eq!((counters.records_exhausted, counters.claims["once"].count), (1, 1));
    assert_eq!(counters.claims["task"].count, 3, "a claim counts once");
}

#[test]
fn conflicts_are_counted_by_contract_and_type_and_a_refused_command_counts_as_nothing_else() {
    let (_directory, _, house) = house();
    let cells = house.cells();
    cells.set("a", 1).expect("set");
    cells.cas("a", Expected::Version(9), 2).expect("answered");
    put(&house, "jobs.1");
    let records = house.records();
    let claimed = records.claim("jobs.1", &ClaimOptions::worker("w")).expect("claim");
    records.release(&claimed).expect("release");
    records.complete(&claimed, NO_FIELDS).expect_err("it is over");
    let stale = house.group("jobs.1").commit().if_record_version("jobs.1", 1).delete_record("jobs.1").run();
    stale.expect_err("it is at version 3");
    house.runs().append("run-1", &event("k1")).expect("append");
    let mut wrong = AppendOptions::default();
    wrong.expected_last = Some(7);
    house.runs().append_with("run-1", &event("k2"), &wrong).expect_err("it is at 1");
    let counters = house.counters();
    let conflicts: Vec<_> = counters.conflicts.iter().map(|((on, name), count)| (*on, name.as_str(), *count)).collect();
    let kind = house.runs().counts().expect("counts").into_keys().next().expect("one").0;
    assert_eq!(conflicts, [("cells", "", 1), ("records", "task", 2), ("runs", kind.as_str(), 1)]);
    assert_eq!(counters.records_finished, 0, "the refused completion left nothing");
    let repeated = house.runs().append("run-1", &event("k1")).expect("answered");
    assert!(repeated.idempotent);
    assert_eq!(house.counters().repeated_appends, 1);
}

#[test]
fn sessions_are_counted_by_how_they_end_and_what_waits_for_them() {
    let (_directory, clock, house) = house();
    let sessions = house.sessions();
    let closed = sessions.open().expect("open");
    let quiet = sessions.create(SessionOptions::default().timeout(Duration::from_secs(2))).expect("create");
    let living = house.overview().expect("overview").sessions;
    assert_eq!((living.connected, living.pending, living.disconnected), (1, 1, 0));
    let again = || closed.request(1, 1).cells().set("x", 1);
    assert_eq!(again().expect("set"), again().expect("set again"));
    assert_eq!(house.counters().session_replays, 1);
    for _ in 0..3 {
        house.group("g").commit().set_cell("light", true).push(closed.id(), "on").run().expect("push");
    }
    assert_eq!(house.overview().expect("overview").sessions.pushes_waiting, 3);
    sessions.acknowledge(closed.credentials(), 1).expect("acknowledge");
    assert_eq!(house.overview().expect("overview").sessions.pushes_waiting, 2);
    closed.close().expect("close");
    assert_eq!(house.overview().expect("overview").sessions.pushes_waiting, 0);
    clock.advance(Duration::from_secs(3));
    eventually("its time is over", || house.counters().sessions_ended.timed_out == 1);
    let ended = house.counters().sessions_ended;
    assert_eq!((ended.closed, ended.timed_out, ended.overrun), (1, 1, 0), "{} timed out", quiet.session);
}

#[test]
fn what_is_there_is_counted_without_a_scan_and_the_oldest_ready_record_is_known() {
    let (directory, clock, house) = house();
    put(&house, "jobs.mail.1");
    clock.advance(Duration::from_secs(40));
    put(&house, "jobs.mail.2");
    put(&house, "jobs.print.1");
    let other = house.create_space("other").expect("space");
    other.records().put("jobs.3", [("n", 1)], Put::typed("task")).expect("put");
    for run in ["run-1", "run-2"] {
        house.runs().append(run, &event("k1")).expect("append");
        clock.advance(Duration::from_secs(120));
    }
    let overview = house.overview().expect("overview");
    let quiet: Vec<_> =
        overview.runs.quietest.iter().map(|(run, age)| (run.name.as_str(), age.as_secs_f64().round())).collect();
    assert_eq!((quiet, overview.left_out), (vec![("run-1", 240.0)], 0));
    assert_eq!(overview.records.by_state, [(("task".to_owned(), "pending".to_owned()), 4)].into());
    assert_eq!(
        overview.runs.by_status.iter().map(|((_, status), count)| (*status, *count)).collect::<Vec<_>>(),
        [(RunStatus::Running, 2)]
    );
    let oldest: Vec<_> = overview
        .records
        .oldest_ready
        .iter()
        .map(|(oldest, age)| {
            (oldest.queue.as_str(), oldest.record.as_str(), oldest.record_type.as_str(), age.as_secs_f64().round())
        })
        .collect();
    assert_eq!(
        oldest,
        [
            ("jobs.mail.", "jobs.mail.1", "task", 280.0),
            ("jobs.print.", "jobs.print.1", "task", 240.0),
            ("jobs.", "jobs.3", "task", 240.0)
        ]
    );
    house.records().claim_next("jobs.mail.", 2, &ClaimOptions::worker("w")).expect("claims");
    assert_eq!(house.overview().expect("overview").records.oldest_ready.len(), 2, "what is held is not ready");

    let counters = house.counters();
    assert_eq!(counters.journal.durable_index, counters.applied_index);
    assert_eq!(counters.journal.syncs.count(), counters.entries_applied);
    assert!(counters.journal.syncs.sum_ns > 0 && counters.journal.slowest_recent_sync > Duration::ZERO);
    assert_eq!((counters.journal.queue_commands, counters.journal.queue_bytes), (0, 0));
    let applied = counters.applied_index;
    assert_eq!((counters.replayed_entries, house.failure()), (0, None));
    house.close().expect("close");
    drop((house, other));
    let reopened = Statehouse::open(directory.path().join("house")).expect("open");
    let counters = reopened.counters();
    assert!(counters.claims.is_empty(), "what was done before it was opened is not counted");
    assert!(counters.journal.durable_index >= applied, "{counters:?}");
}

#[test]
fn a_worker_that_waits_is_counted() {
    let (_directory, _, house) = house();
    let records = house.records();
    let worker = std::thread::spawn({
        let records = records.clone();
        move || records.claim_next("jobs.", 1, &ClaimOptions::worker("w").wait(Duration::from_secs(60)))
    });
    eventually("it waits", || house.overview().expect("overview").claimers_waiting == 1);
    put(&house, "jobs.1");
    assert_eq!(worker.join().expect("no panic").expect("claims").len(), 1);
    assert_eq!(house.overview().expect("overview").claimers_waiting, 0);
}
