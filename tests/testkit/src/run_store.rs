//! The suite of `contract::runs::RunStateStore`: call [`suite`] with a function that creates a store, and one that
//! stops a store and restarts it from what it has stored.

use contract::Json;
use contract::runs::{AppendResult, NewEvent, RunSnapshot, RunStateStore, RunStatus, StepStatus, StoredEvent};

const AT: &str = "2026-02-11T10:00:00Z";

/// The types of events that the contract knows.
const CANONICAL: [&str; 13] = [
    "RunApproved",
    "RunStarted",
    "RunPaused",
    "RunResumed",
    "StepStarted",
    "StepCompleted",
    "StepFailed",
    "StepSkipped",
    "SignalAccepted",
    "SignalRejected",
    "RunCompleted",
    "RunFailed",
    "RunCancelled",
];

/// Runs every check of the suite, each on its own store.
///
/// # Panics
/// If the implementation breaks the contract.
pub fn suite<S: RunStateStore + Sync>(make: impl Fn() -> S, restart: impl Fn(S) -> S) {
    sequences_rise_by_one(&make());
    pages_are_in_order_and_bounded(&make());
    runs_do_not_share_anything(&make());
    an_event_is_given_back_as_it_came(&make());
    a_key_that_is_known_gets_the_first_sequence(&make());
    an_id_that_is_known_gets_the_first_sequence(&make());
    another_content_is_told_and_changes_nothing(&make());
    many_at_once_append_each_event_once(&make());
    an_event_that_no_store_may_take_is_refused(&make());
    the_projection_equals_a_replay_after_every_event(&make());
    types_that_are_not_known_only_move_the_position(&make());
    what_is_over_stays_over(&make());
    a_run_that_does_not_exist_has_no_projection(&make());
    a_restart_changes_nothing(make(), restart);
}

fn event(event_type: &str, key: &str) -> NewEvent {
    NewEvent::new(event_type, key, AT, Json::new(format!("{{\"of\":{key:?}}}")).expect("JSON"))
}

fn uuid(number: u64) -> String {
    format!("0190c4d0-7a3b-7def-8000-{number:012x}")
}

fn append(store: &impl RunStateStore, run: &str, event: &NewEvent) -> AppendResult {
    let result = store.append_event(run, event).expect("an append never fails for what is known");
    assert_eq!(result.persisted, !result.idempotent, "written now, or there already");
    result
}

/// All events of a run, by pages of `limit`; the chain is checked.
fn whole(store: &impl RunStateStore, run: &str, limit: usize) -> Vec<StoredEvent> {
    let mut events: Vec<StoredEvent> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.run_seq);
        let page = store.fetch_events(run, after, limit).expect("events");
        assert!(page.len() <= limit, "at most as many as asked for");
        if page.is_empty() {
            break;
        }
        events.extend(page);
    }
    for (place, event) in (1..).zip(&events) {
        assert_eq!((event.run_seq, event.prev_seq), (place, place - 1), "order: rising by one, each names the last");
        assert_eq!(event.run_id, run);
    }
    events
}

fn keys(store: &impl RunStateStore, run: &str) -> Vec<String> {
    whole(store, run, 1_000).into_iter().map(|event| event.event.idempotency_key).collect()
}

fn replay(store: &impl RunStateStore, run: &str) -> RunSnapshot {
    let mut snapshot = RunSnapshot::empty(run);
    whole(store, run, 1_000).iter().for_each(|event| snapshot.apply(event));
    snapshot
}

fn snapshot(store: &impl RunStateStore, run: &str) -> RunSnapshot {
    store.get_snapshot(run).expect("a projection").expect("the run exists")
}

fn sequences_rise_by_one(store: &impl RunStateStore) {
    for seq in 1..=50 {
        let appended = append(store, "r", &event("Progress", &seq.to_string()));
        let expected = AppendResult { run_seq: seq, idempotent: false, persisted: true, payload_mismatch: false };
        assert_eq!(appended, expected, "order: from 1, without a gap");
    }
    let events = whole(store, "r", 1_000);
    assert_eq!(events.len(), 50);
    assert!(events.windows(2).all(|pair| pair[0].persisted_at <= pair[1].persisted_at), "order: by time too");
    assert!(events.windows(2).all(|pair| pair[0].commit < pair[1].commit), "order: by commit too");
}

fn pages_are_in_order_and_bounded(store: &impl RunStateStore) {
    for seq in 1..=20 {
        append(store, "r", &event("Progress", &seq.to_string()));
    }
    let all = whole(store, "r", 1_000);
    for limit in [1, 3, 20, 21] {
        assert_eq!(whole(store, "r", limit), all, "order: pages of {limit}");
    }
    let page = store.fetch_events("r", 7, 2).expect("events");
    assert_eq!(page.iter().map(|event| event.run_seq).collect::<Vec<_>>(), [8, 9], "after, ascending");
    assert_eq!(store.fetch_events("r", 20, 10).expect("a page"), [], "nothing behind the last");
    assert_eq!(store.fetch_events("r", u64::MAX, 10).expect("a page"), []);
}

fn runs_do_not_share_anything(store: &impl RunStateStore) {
    for run in ["a", "a.b", "b"] {
        assert_eq!(append(store, run, &event("RunStarted", "k").with_id(uuid(1))).run_seq, 1, "keys are of a run");
    }
    append(store, "a", &event("RunCompleted", "end"));
    assert_eq!(snapshot(store, "a").status, RunStatus::Completed);
    assert_eq!(snapshot(store, "a.b").status, RunStatus::Running);
    assert_eq!(keys(store, "b"), ["k"]);
}

fn an_event_is_given_back_as_it_came(store: &impl RunStateStore) {
    let mut full = event("StepCompleted", "full").of_step("load", "2").with_id(uuid(7));
    full.engine_attempt_id = Some("e-3".to_owned());
    full.adapter_version = Some("1.2.3".to_owned());
    full.engine_run_ref = Some(Json::new(r#"{"engine":"x"}"#).expect("JSON"));
    full.caused_by_signal_id = Some(uuid(8));
    full.parent_event_id = Some(uuid(9));
    append(store, "r", &full);
    append(store, "r", &event("Progress", "bare"));
    let events = whole(store, "r", 10);
    assert_eq!((&events[0].event, &events[0].event_id), (&full, &uuid(7)));
    assert_eq!(events[1].event, event("Progress", "bare"));
    assert!(!events[1].event_id.is_empty() && events[1].event_id != events[0].event_id, "an id is made");
    assert_eq!(whole(store, "r", 10), events, "and is the same each time");
}

fn a_key_that_is_known_gets_the_first_sequence(store: &impl RunStateStore) {
    for key in ["a", "b", "c"] {
        append(store, "r", &event("Progress", key));
    }
    for _ in 0..3 {
        for (seq, key) in (1..).zip(["a", "b", "c"]) {
            let mut again = event("Progress", key);
            again.emitted_at = Some("2026-02-11T11:11:11Z".to_owned());
            let result = append(store, "r", &again);
            let expected = AppendResult { run_seq: seq, idempotent: true, persisted: false, payload_mismatch: false };
            assert_eq!(result, expected, "duplicates: the first one's sequence, whenever it was emitted again");
        }
    }
    assert_eq!(keys(store, "r"), ["a", "b", "c"]);
}

fn an_id_that_is_known_gets_the_first_sequence(store: &impl RunStateStore) {
    append(store, "r", &event("Progress", "a").with_id(uuid(1)));
    append(store, "r", &event("Progress", "b").with_id(uuid(2)));
    let mut same = event("Progress", "another-key").with_id(uuid(2));
    same.data = event("Progress", "b").data;
    let result = append(store, "r", &same);
    assert_eq!((result.run_seq, result.idempotent, result.payload_mismatch), (2, true, false), "duplicates: by id");
    let crossed = append(store, "r", &event("Progress", "a").with_id(uuid(2)));
    assert_eq!((crossed.run_seq, crossed.idempotent), (1, true), "duplicates: the key comes first");
    assert_eq!(keys(store, "r"), ["a", "b"]);
    assert_eq!(append(store, "r", &event("Progress", "another-key")).run_seq, 3, "that key was never used");
    // So does an id that the store has made.
    append(store, "made", &event("Progress", "a"));
    let made = whole(store, "made", 10)[0].event_id.clone();
    let again = append(store, "made", &event("Progress", "b").with_id(made));
    assert_eq!((again.run_seq, again.idempotent), (1, true));
    assert_eq!(keys(store, "made"), ["a"]);
}

fn another_content_is_told_and_changes_nothing(store: &impl RunStateStore) {
    let first = event("StepStarted", "k").of_step("s", "1");
    append(store, "r", &first);
    let before = (whole(store, "r", 10), snapshot(store, "r"));
    let mut data = first.clone();
    data.data = Json::new("7").expect("JSON");
    let others = [
        data,
        event("StepCompleted", "k").of_step("s", "1"),
        event("StepStarted", "k").of_step("other", "1"),
        event("StepStarted", "k").of_step("s", "2"),
        event("StepStarted", "k"),
    ];
    for other in others {
        let result = append(store, "r", &other);
        assert_eq!((result.run_seq, result.idempotent), (1, true), "mismatch: it does not fail");
        assert!(result.payload_mismatch, "mismatch: it is told of {other:?}");
    }
    assert_eq!((whole(store, "r", 10), snapshot(store, "r")), before, "mismatch: the first one stays");
}

fn many_at_once_append_each_event_once(store: &(impl RunStateStore + Sync)) {
    let answers: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let append_all = || (0..40).map(|n| append(store, "r", &event("Progress", &n.to_string())).run_seq).collect();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(append_all)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(answers.iter().all(|answer| *answer == answers[0]), "duplicates: everybody gets the same sequences");
    assert_eq!(whole(store, "r", 1_000).len(), 40);
}

fn an_event_that_no_store_may_take_is_refused(store: &impl RunStateStore) {
    let mut no_time = event("Progress", "k");
    no_time.emitted_at = Some("yesterday".to_owned());
    for bad in [event("", "k"), event("Progress", ""), event("Progress", "k").with_id("7"), no_time] {
        assert!(store.append_event("r", &bad).is_err(), "{bad:?}");
    }
    assert_eq!(store.get_snapshot("r").expect("a view"), None, "and makes no run");
}

fn the_projection_equals_a_replay_after_every_event(store: &impl RunStateStore) {
    let artifacts = Json::new(r#"{"artifactRefs":[{"uri":"s3://x"},{"uri":"s3://y"}]}"#).expect("JSON");
    let error = Json::new(r#"{"error":{"code":"E","message":"m","retryable":true}}"#).expect("JSON");
    let mut seq = 0;
    for round in 0..3 {
        for event_type in CANONICAL {
            // It is over only in the last round.
            if round < 2 && matches!(event_type, "RunCompleted" | "RunFailed" | "RunCancelled") {
                continue;
            }
            seq += 1;
            let mut event = event(event_type, &seq.to_string());
            event.emitted_at = Some(format!("2026-02-11T10:00:{seq:02}Z"));
            if event_type.starts_with("Step") {
                event = event.of_step(format!("step-{}", seq % 4), round.to_string());
            }
            match event_type {
                "StepCompleted" | "RunCompleted" => event.data = artifacts.clone(),
                "StepFailed" => event.data = error.clone(),
                _ => {}
            }
            append(store, "r", &event);
            let kept = snapshot(store, "r");
            assert_eq!(kept.last_event_seq, seq, "projection: it is not behind");
            assert_eq!(kept, replay(store, "r"), "projection: after {event_type}");
            assert_eq!(kept, store.project_snapshot("r").expect("a projection"), "projection: made anew");
        }
    }
    let last = snapshot(store, "r");
    assert_eq!(last.status, RunStatus::Completed);
    assert_eq!(last.started_at.as_deref(), Some("2026-02-11T10:00:02Z"), "projection: the first start counts");
    assert_eq!(last.artifacts.len(), 2);
    assert!(last.total_duration_ms.is_some_and(|ms| ms > 0));
    assert!(last.steps.iter().any(|step| step.status != StepStatus::Pending));
}

fn types_that_are_not_known_only_move_the_position(store: &impl RunStateStore) {
    append(store, "r", &event("RunStarted", "start"));
    append(store, "r", &event("StepStarted", "step").of_step("s", "1"));
    let before = snapshot(store, "r");
    for (seq, event_type) in (3..).zip(["Progress", "RunOdd", "StepOdd", "runStarted", "SignalAccepted"]) {
        let unknown = event(event_type, event_type).of_step("s", "9");
        assert_eq!(append(store, "r", &unknown).run_seq, seq, "unknown types: they are taken");
        let expected = RunSnapshot { last_event_seq: seq, ..before.clone() };
        assert_eq!(snapshot(store, "r"), expected, "unknown types: {event_type} changes nothing");
    }
}

fn what_is_over_stays_over(store: &impl RunStateStore) {
    append(store, "r", &event("RunStarted", "start"));
    append(store, "r", &event("RunFailed", "end"));
    for event_type in ["RunStarted", "RunResumed", "RunCompleted", "RunCancelled"] {
        append(store, "r", &event(event_type, event_type));
        assert_eq!(snapshot(store, "r").status, RunStatus::Failed, "projection: {event_type} comes too late");
    }
    assert_eq!(snapshot(store, "r").last_event_seq, 6);
}

fn a_run_that_does_not_exist_has_no_projection(store: &impl RunStateStore) {
    assert_eq!(store.get_snapshot("none").expect("a view"), None);
    append(store, "other", &event("RunStarted", "k"));
    assert_eq!(store.get_snapshot("none").expect("a view"), None);
}

fn a_restart_changes_nothing<S: RunStateStore>(store: S, restart: impl Fn(S) -> S) {
    for run in ["a", "b"] {
        for seq in 1..=30 {
            let event_type = CANONICAL[seq % 10];
            append(&store, run, &event(event_type, &seq.to_string()).of_step(format!("s{}", seq % 3), "1"));
        }
    }
    append(&store, "a", &event("Progress", "with-id").with_id(uuid(1)));
    let read = |store: &S| ["a", "b"].map(|run| (whole(store, run, 7), snapshot(store, run), replay(store, run)));
    let before = read(&store);
    let store = restart(store);
    assert_eq!(read(&store), before, "restart: events and projections are the same");
    let again = append(&store, "a", &event("Progress", "with-id"));
    assert_eq!((again.run_seq, again.idempotent), (31, true), "restart: keys are known");
    let again = append(&store, "a", &event("Progress", "other").with_id(uuid(1)));
    assert_eq!((again.run_seq, again.idempotent, again.payload_mismatch), (31, true, true), "restart: and ids");
    assert_eq!(append(&store, "a", &event("Progress", "new")).run_seq, 32, "restart: it goes on");
    assert_eq!(append(&store, "b", &event("Progress", "new")).run_seq, 31);
    assert_eq!(snapshot(&store, "a"), replay(&store, "a"));
}
