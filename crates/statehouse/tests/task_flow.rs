//! The flows of task records through the portable contract: a worker claims, steps and completes; a sweeper finds stuck
//! tasks. The writes are those of existing workers, including two calls for a claim.

mod held;

use std::time::Duration;

use held::{HeldClock, STARTED_MS, eventually, house};
use statehouse::records::{
    Comparison, Filter, IndexKind, PortableRecords, Put, RecordType, ScanFilter, ScanOptions, StateStore, Test,
};

const JOB: &str = "gbe.state.tasks.email-send.job_123";
const STEP_TIMEOUT_MS: u64 = 60_000;
const TERMINAL: [&str; 3] = ["completed", "failed", "cancelled"];

fn enqueue(store: &PortableRecords, clock: &HeldClock, job: &str) {
    let (task_type, task_id) = job.trim_start_matches("gbe.state.tasks.").split_once('.').expect("a task's name");
    let now = clock.now_ms().to_string();
    let fields = [
        ("state", "pending"),
        ("task_type", task_type),
        ("task_id", task_id),
        ("created_at", &now),
        ("updated_at", &now),
    ];
    let fields = fields.map(|(field, value)| (field.to_owned(), value.as_bytes().to_vec()));
    store.put(job, &fields.into(), None).expect("put");
}

fn set<const N: usize>(store: &PortableRecords, job: &str, fields: [(&str, Option<String>); N]) {
    let fields = fields.map(|(field, value)| (field.to_owned(), value.map(String::into_bytes)));
    store.set_fields(job, &fields.into()).expect("set_fields");
}

/// Claims as existing workers do; false if another was faster.
fn claim(store: &PortableRecords, clock: &HeldClock, job: &str, worker: &str) -> bool {
    if !store.compare_and_swap(job, "state", Some(b"pending"), b"claimed").expect("compare_and_swap") {
        return false;
    }
    let now = clock.now_ms();
    let timeout_at = Some((now + STEP_TIMEOUT_MS).to_string());
    let fields =
        [("worker", Some(worker.to_owned())), ("updated_at", Some(now.to_string())), ("timeout_at", timeout_at)];
    set(store, job, fields);
    true
}

fn text(store: &PortableRecords, job: &str, field: &str) -> Option<String> {
    let value = store.get_field(job, field).expect("get_field")?;
    Some(String::from_utf8(value).expect("text"))
}

#[test]
fn a_worker_claims_steps_and_completes() {
    let (_directory, clock, house) = house();
    let store = house.records().portable();
    enqueue(&store, &clock, JOB);
    assert_eq!(text(&store, JOB, "state").as_deref(), Some("pending"));
    let winners = std::thread::scope(|scope| {
        let one = |worker: usize| claim(&store, &clock, JOB, &format!("w{worker}"));
        let workers: Vec<_> = (0..4).map(|worker| scope.spawn(move || one(worker))).collect();
        workers.into_iter().map(|worker| worker.join().expect("no panic")).filter(|won| *won).count()
    });
    assert_eq!(winners, 1, "one worker wins");
    assert!(text(&store, JOB, "worker").is_some_and(|worker| worker.starts_with('w')));
    // Every step moves the end of the lease, so ten steps of 50 s do not time out at 60 s.
    for step in 1..=10 {
        clock.advance(Duration::from_secs(50));
        let now = clock.now_ms();
        let timeout_at = Some((now + STEP_TIMEOUT_MS).to_string());
        let fields = [
            ("state", Some("running".to_owned())),
            ("current_step", Some(step.to_string())),
            ("updated_at", Some(now.to_string())),
            ("timeout_at", timeout_at.clone()),
        ];
        set(&store, JOB, fields);
        assert_eq!(text(&store, JOB, "updated_at"), Some(now.to_string()), "the store's time is the worker's");
        assert_eq!(text(&store, JOB, "timeout_at"), timeout_at);
    }
    assert_eq!(text(&store, JOB, "state").as_deref(), Some("running"));
    let result = Some("s3://bucket/result".to_owned());
    set(&store, JOB, [("state", Some("completed".to_owned())), ("timeout_at", None), ("result_ref", result.clone())]);
    let done = store.get(JOB).expect("get").expect("it exists");
    assert_eq!(done.fields["state"], b"completed");
    assert!(!done.fields.contains_key("timeout_at"), "the lease is over");
    assert_eq!(text(&store, JOB, "result_ref"), result);
    assert_eq!(text(&store, JOB, "created_at"), Some(STARTED_MS.to_string()));
    // A finished job is neither claimed nor moved again.
    assert!(!claim(&store, &clock, JOB, "late"));
    assert!(store.set_field(JOB, "state", b"running").is_err());
    assert_eq!(house.records().get(JOB).expect("get").expect("it exists").attempt, 1);
}

#[test]
fn a_worker_says_that_its_job_failed() {
    let (_directory, clock, house) = house();
    let store = house.records().portable();
    enqueue(&store, &clock, JOB);
    assert!(claim(&store, &clock, JOB, "w1"));
    set(&store, JOB, [("state", Some("failed".to_owned())), ("error", Some("no such user".to_owned()))]);
    assert_eq!(text(&store, JOB, "error").as_deref(), Some("no such user"));
    assert!(!claim(&store, &clock, JOB, "w2"), "failed is for good");
    // An unclaimed job can be cancelled.
    let other = "gbe.state.tasks.email-send.job_124";
    enqueue(&store, &clock, other);
    set(&store, other, [("state", Some("cancelled".to_owned()))]);
    assert!(!claim(&store, &clock, other, "w1"));
}

#[test]
fn the_store_rescues_what_the_sweeper_would_republish() {
    let (_directory, clock, house) = house();
    let store = house.records().portable();
    enqueue(&store, &clock, JOB);
    assert!(claim(&store, &clock, JOB, "w1"));
    clock.advance(Duration::from_millis(STEP_TIMEOUT_MS + 1));
    eventually("the rescue", || text(&store, JOB, "state").as_deref() == Some("pending"));
    assert_eq!(text(&store, JOB, "worker"), None);
    clock.advance(Duration::from_secs(2));
    assert!(claim(&store, &clock, JOB, "w2"), "it can be claimed again");
    let record = house.records().get(JOB).expect("get").expect("it exists");
    assert_eq!((record.attempt, text(&store, JOB, "worker").as_deref()), (2, Some("w2")));
}

#[test]
fn a_sweeper_finds_what_was_not_touched_for_long() {
    let (_directory, clock, house) = house();
    let (records, store) = (house.records(), house.records().portable());
    let job = |number: u32| format!("gbe.state.tasks.email-send.job_{number}");
    let far = Some((STARTED_MS + 1_000_000_000).to_string());
    for number in 0..6 {
        enqueue(&store, &clock, &job(number));
        assert!(claim(&store, &clock, &job(number), "w1"));
        set(&store, &job(number), [("timeout_at", far.clone())]);
    }
    set(&store, &job(1), [("state", Some("completed".to_owned()))]);
    set(&store, &job(2), [("state", Some("cancelled".to_owned()))]);
    clock.advance(Duration::from_secs(600));
    set(&store, &job(3), [("state", Some("running".to_owned()))]);
    let threshold = clock.now_ms() - 300_000;
    let stuck = [job(0), job(4), job(5)];
    // The one comparison of the portable filter, and the rest by hand.
    let old = ScanFilter {
        field: "updated_at".into(),
        op: Comparison::Lt,
        value: threshold.to_string().into_bytes(),
        max_results: None,
    };
    let found = store.scan("gbe.state.tasks.", Some(&old)).collect::<Result<Vec<_>, _>>().expect("scan");
    let live =
        found.iter().filter(|(_, record)| TERMINAL.iter().all(|state| record.fields["state"] != state.as_bytes()));
    assert_eq!(live.map(|(name, _)| name.clone()).collect::<Vec<_>>(), stuck);
    // The same as one question.
    let not_terminal = Test::NotIn(TERMINAL.map(Into::into).into());
    let threshold = i64::try_from(threshold).expect("a time");
    let filter = Filter::all().and("updated_at", Test::Lt(threshold.into())).and("state", not_terminal);
    let page = records.scan("gbe.state.tasks.", &filter, &ScanOptions::default()).expect("scan");
    assert_eq!(page.records.iter().map(|(record, _)| record.name.clone()).collect::<Vec<_>>(), stuck);
    // Any write is a sign of life; `updated_at` itself is the store's.
    store.set_field(&job(0), "updated_at", b"1").expect("set_field");
    let page = records.scan("gbe.state.tasks.", &filter, &ScanOptions::default()).expect("scan");
    assert_eq!(page.records.iter().map(|(record, _)| record.name.clone()).collect::<Vec<_>>(), stuck[1..]);
}

#[test]
fn an_index_on_updated_at_serves_the_sweeper() {
    let (_directory, clock, house) = house();
    let mail = RecordType::task().named("mail").index("size", IndexKind::Signed);
    house.space("default").declare_type("gbe.state.tasks.mail.", mail).expect("declare");
    let (records, store) = (house.records(), house.records().portable());
    for number in 0..100 {
        clock.advance(Duration::from_secs(60));
        enqueue(&store, &clock, &format!("gbe.state.tasks.mail.{number:02}"));
    }
    for name in ["gbe.state.tasks.mail.00", "gbe.state.tasks.mail.02"] {
        assert!(claim(&store, &clock, name, "w1"));
    }
    let threshold = i64::try_from(STARTED_MS).expect("a time") + 5 * 60_000;
    let not_terminal = Test::NotIn(TERMINAL.map(Into::into).into());
    let filter = Filter::all().and("state", not_terminal).and("updated_at", Test::Lt(threshold.into()));
    let page = records.scan("gbe.state.tasks.", &filter, &ScanOptions::of_type("mail")).expect("scan");
    let names: Vec<_> =
        page.records.iter().map(|(record, _)| record.name.trim_start_matches("gbe.state.tasks.")).collect();
    assert_eq!(names, ["mail.01", "mail.03"]);
    assert!(page.looked_at < 10, "{} were looked at", page.looked_at);
    // A number of a declared field is compared as one by the portable filter too.
    for (number, size) in [(1, "9"), (2, "10"), (3, "-1")] {
        store.set_field(&format!("gbe.state.tasks.mail.{number:02}"), "size", size.as_bytes()).expect("set_field");
    }
    let small = ScanFilter { field: "size".into(), op: Comparison::Lt, value: b"10".to_vec(), max_results: None };
    let found = store.scan("gbe.state.tasks.mail.", Some(&small)).collect::<Result<Vec<_>, _>>().expect("scan");
    let names: Vec<_> = found.iter().map(|(name, _)| name.trim_start_matches("gbe.state.tasks.")).collect();
    assert_eq!(names, ["mail.01", "mail.03"]);
    assert!(store.set_field("gbe.state.tasks.mail.01", "size", b"many").is_err(), "it holds an integer");
}

#[test]
fn a_portable_put_gives_fields_the_kinds_of_the_type_that_it_gives_the_record() {
    let (_directory, _, house) = house();
    let store = house.records().portable();
    house.records().put("plain", [("state", "pending")], Put::typed("task")).expect("put");
    // No type is declared for this name, so the put creates a record without a type.
    store.put("plain", &[("state".to_owned(), b"anything".to_vec())].into(), None).expect("put");
    assert!(store.compare_and_swap("plain", "state", Some(b"anything"), b"more").expect("compare_and_swap"));
}
