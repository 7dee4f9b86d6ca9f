//! Records through the library: claims, leases, rescues, TTLs, messages and scans, with a clock that the test holds.

mod held;

use std::sync::Arc;
use std::time::Duration;

use held::{HeldClock, eventually, house};

use statehouse::publish::MemoryBroker;
use statehouse::records::{
    ClaimOptions, FieldSwapped, Filter, IndexKind, Put, RecordType, Retry, ScanOptions, StateStore, Test, Ttl,
};
use statehouse::{Options, RecordRejection, Rejection, Statehouse, Value};

fn text(house: &Statehouse, record: &str, field: &str) -> Option<String> {
    let value = house.records().get_field(record, field).expect("a field")?;
    Some(value.as_text().expect("text").to_owned())
}

const WORKER: &str = "w1";

fn options() -> ClaimOptions {
    ClaimOptions::worker(WORKER)
}

#[test]
fn a_put_replaces_and_a_patch_does_not() {
    let (_directory, _, house) = house();
    let records = house.records();
    assert_eq!(records.put("r", [("a", 1), ("b", 2)], Put::default()).expect("put").version, 1);
    records.set_fields("r", [("a", None), ("c", Some(3.into()))]).expect("patch");
    let record = records.get("r").expect("get").expect("it exists");
    let fields: Vec<_> = record.fields.iter().map(|(name, field)| (name.as_str(), field.version)).collect();
    assert_eq!((record.version, fields), (2, vec![("b", 1), ("c", 2)]));
    records.put("r", [("z", "x")], Put::default()).expect("put");
    assert_eq!(records.get("r").expect("get").expect("it exists").fields.len(), 1);
    assert_eq!(records.increment("r", "n", 5).expect("count"), 5);
    assert_eq!(records.increment("r", "n", -7).expect("count"), -2);
    assert!(records.increment("r", "z", 1).is_err());
    assert_eq!(records.delete("r").expect("delete").version, Some(6));
    assert_eq!(records.get("r").expect("get"), None);
    assert_eq!(records.put("r", [("a", 1)], Put::default()).expect("put").version, 7, "versions go on");
    assert!(records.update_fields("missing", [("a", Some(1.into()))]).is_err());
}

#[test]
fn large_fields_have_rows_of_their_own_and_leave_with_their_record() {
    let (_directory, _, house) = house();
    let records = house.records();
    let large = vec![7_u8; 100_000];
    records.put("r", [("params", Value::from(large.clone())), ("n", 1.into())], Put::default()).expect("put");
    records.set_field("r", "n", 2).expect("patch");
    assert_eq!(records.get_field("r", "params").expect("get"), Some(large.clone().into()));
    let swapped = records.compare_and_swap("r", "params", Some(large.into()), Some("small".into())).expect("swap");
    assert!(matches!(swapped, FieldSwapped::Written(_)));
    assert_eq!(records.get_field("r", "params").expect("get"), Some("small".into()));
    records.delete("r").expect("delete");
    records.put("r", [("params", "new")], Put::default()).expect("put");
    assert_eq!(records.get_field("r", "params").expect("get"), Some("new".into()));
}

#[test]
fn a_record_expires_once_and_never_comes_back() {
    let (_directory, clock, house) = house();
    let records = house.records();
    records.put("r", [("a", 1)], Put::expiring(Duration::from_secs(10))).expect("put");
    records.put("kept", [("a", 1)], Put::expiring(Duration::from_secs(10))).expect("put");
    clock.advance(Duration::from_secs(5));
    assert_eq!(records.set_field("r", "b", 2).expect("patch").version, 2, "a patch leaves the TTL alone");
    let left = records.get("r").expect("get").expect("still there").ttl.expect("bounded");
    assert!(left > Duration::from_secs(4) && left < Duration::from_secs(6), "{left:?}");
    records.touch("kept", Duration::from_secs(100)).expect("touch");
    clock.advance(Duration::from_secs(6));
    eventually("the record expires", || records.get("r").expect("get").is_none());
    let found = records.get("kept").expect("get").expect("it was touched");
    assert!(found.ttl.expect("bounded") > Duration::from_secs(80));
    // The expiry is a separate version, and a late write creates a new record.
    assert_eq!(records.set_field("r", "late", 1).expect("patch").version, 4);
    let late = records.get("r").expect("get").expect("new");
    assert_eq!((late.fields.len(), late.ttl), (1, None));
    records.put("kept", [("a", 2)], Put { ttl: Ttl::Keep, record_type: None }).expect("put");
    assert!(records.get("kept").expect("get").expect("there").ttl.is_some());
    records.persist("kept").expect("persist");
    clock.advance(Duration::from_secs(1_000));
    records.set_field("other", "a", 1).expect("time goes on");
    assert!(records.get("kept").expect("get").expect("for ever").ttl.is_none());
}

#[test]
fn one_worker_has_a_job_until_its_lease_ends() {
    let (_directory, clock, house) = house();
    house.space("default").declare_type("jobs.", RecordType::task().lease(Duration::from_secs(30))).expect("declare");
    let records = house.records();
    for n in 0..3 {
        records.put(&format!("jobs.{n}"), [("n", n)], Put::default()).expect("put");
        clock.advance(Duration::from_millis(1));
    }
    assert_eq!(records.counts("jobs.").expect("counts").of("pending"), 3);
    let first = records.claim_next("jobs.", 1, &options()).expect("claim").remove(0);
    assert_eq!((first.name.as_str(), first.attempt, first.lease), ("jobs.0", 1, Duration::from_secs(30)));
    assert_eq!(first.record.holder.as_ref().and_then(|holder| holder.worker.as_deref()), Some(WORKER));
    assert!(matches!(
        records.claim("jobs.0", &options()),
        Err(statehouse::Error::Rejected(Rejection::Record(RecordRejection::Held { attempt: 1, .. })))
    ));
    clock.advance(Duration::from_secs(20));
    records.extend(&first, None).expect("extend");
    clock.advance(Duration::from_secs(20));
    records.step(&first, [("state", "running"), ("current_step", "2")]).expect("still ours");
    assert_eq!(records.counts("jobs.").expect("counts").of("running"), 1);
    clock.advance(Duration::from_secs(40));
    eventually("the rescue", || text(&house, "jobs.0", "state").as_deref() == Some("pending"));
    let fenced = records.complete(&first, [("result", "late")]).expect_err("the attempt is over");
    assert_eq!(fenced.code(), "SH-4002", "{fenced}");
    // It waits for its pause; the others are first.
    let next = records.claim_next("jobs.", 5, &options()).expect("claim");
    assert_eq!(next.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["jobs.1", "jobs.2"]);
    clock.advance(Duration::from_secs(2));
    let mut again = Vec::new();
    eventually("it is ready again", || {
        again = records.claim_next("jobs.", 5, &options()).expect("claim");
        !again.is_empty()
    });
    assert_eq!((again[0].name.as_str(), again[0].attempt), ("jobs.0", 2));
    records.complete(&again[0], [("result", "done")]).expect("complete");
    assert_eq!(text(&house, "jobs.0", "state").as_deref(), Some("completed"));
    let left = records.set_fields("jobs.0", [("state", Some("pending".into()))]).expect_err("terminal is terminal");
    assert_eq!(left.code(), "SH-1015");
    assert_eq!(records.counts("jobs.").expect("counts").of("completed"), 1);
}

#[test]
fn a_job_that_fails_is_tried_again_until_its_budget_is_used_up() {
    let (_directory, clock, house) = house();
    let task = RecordType::task().attempts_max(2).sweep_to("rescued", "dead");
    house.space("default").declare_type("jobs.", task).expect("declare");
    let records = house.records();
    records.put("jobs.1", [("n", 1)], Put::default()).expect("put");
    let job = records.claim("jobs.1", &options()).expect("claim");
    assert_eq!(records.fail(&job, "oops").expect("fail"), Retry::After(Duration::from_secs(1)));
    assert_eq!(text(&house, "jobs.1", "error").as_deref(), Some("oops"));
    assert!(records.claim("jobs.1", &options()).is_err(), "it pauses");
    clock.advance(Duration::from_secs(2));
    let job = records.claim("jobs.1", &options()).expect("claim");
    let other = records.release(&job).and_then(|_| records.claim("jobs.1", &options())).expect("given back");
    assert_eq!(other.attempt, 3);
    assert_eq!(records.fail(&other, "again").expect("fail"), Retry::Exhausted);
    assert_eq!(text(&house, "jobs.1", "state").as_deref(), Some("failed"));
    assert!(records.claim_next("jobs.", 1, &options()).expect("claim").is_empty());
}

#[test]
fn the_seeds_two_call_claim_is_safe() {
    let (_directory, clock, house) = house();
    let store = house.records().portable();
    let job = "gbe.state.tasks.email-send.job_123";
    let fields = [("state", "pending"), ("task_type", "email-send")];
    let fields = fields.map(|(field, value)| (field.to_owned(), value.as_bytes().to_vec()));
    store.put(job, &fields.into(), None).expect("put");
    assert!(store.compare_and_swap(job, "state", Some(b"pending"), b"claimed").expect("swap"));
    assert!(!store.compare_and_swap(job, "state", Some(b"pending"), b"claimed").expect("swap"));
    // The worker dies between its two calls: the job has a lease nevertheless.
    clock.advance(Duration::from_secs(301));
    eventually("the rescue", || store.get_field(job, "state").expect("get").as_deref() == Some(b"pending"));
    // Late writes of the dead worker do not move the job.
    let late = [("state".to_owned(), Some(b"running".to_vec()))];
    assert!(store.set_fields(job, &late.into()).is_err());
    let late = [("state".to_owned(), Some(b"completed".to_vec()))];
    assert!(store.set_fields(job, &late.into()).is_err());
    assert!(store.compare_and_swap(job, "state", Some(b"pending"), b"claimed").expect("swap"));
    let now_ms = 1_700_000_000_000_u64 + 301_000;
    let step = [("state", "running".to_owned()), ("timeout_at", (now_ms + 1_000_000).to_string())];
    let step = step.map(|(field, value)| (field.to_owned(), Some(value.into_bytes())));
    store.set_fields(job, &step.into()).expect("a step");
    clock.advance(Duration::from_secs(600));
    store.set_field("other", "a", b"1").expect("time goes on");
    assert_eq!(store.get_field(job, "state").expect("get").as_deref(), Some(b"running".as_slice()));
}

#[test]
fn a_commit_is_fenced_guarded_and_sends_messages() {
    let (_directory, clock, house) = house();
    let order = house.group("order-7");
    order.records().put("jobs.charge.7", [("eur", 10)], Put::typed("task")).expect("put");
    let job = house.records().claim_next("jobs.charge.", 1, &options()).expect("claim").remove(0);
    assert_eq!(job.group.as_deref(), Some("order-7"));
    let invoice = house.group("invoice-7").commit().set_cell("state", "open").increment("totals", "eur", 10);
    let reminder = order.commit().set_cell("reminded", true);
    order
        .commit()
        .fence(&job)
        .set_cell("charged", 10)
        .complete(&job, [("result", "ok")])
        .send(invoice)
        .send_after(Duration::from_secs(60), reminder)
        .run()
        .expect("commit");
    let refused = order.commit().fence(&job).set_cell("charged", 20).run().expect_err("the attempt is over");
    assert_eq!(refused.code(), "SH-4002");
    assert_eq!(order.cells().get("charged").expect("get"), Some(10.into()));
    let invoice = house.group("invoice-7");
    eventually("the message arrives", || invoice.cells().get("state").expect("get").is_some());
    assert_eq!(invoice.records().get_field("totals", "eur").expect("get"), Some(10.into()));
    assert_eq!(order.cells().get("reminded").expect("get"), None);
    clock.advance(Duration::from_secs(61));
    eventually("the timer", || order.cells().get("reminded").expect("get").is_some());
    assert_eq!(invoice.records().get_field("totals", "eur").expect("get"), Some(10.into()), "delivered once");
}

#[test]
fn a_scan_is_served_by_an_index_and_agrees_with_one_that_is_not() {
    let (_directory, clock, house) = house();
    let mail = RecordType::task().named("mail").index("size", IndexKind::Signed).index("to", IndexKind::Text);
    house.space("default").declare_type("mail.", mail).expect("declare");
    let records = house.records();
    for n in 0..300_i64 {
        let fields = [("size", Value::from((n * 37) % 300 - 150)), ("to", Value::from(format!("user-{}", n % 7)))];
        records.put(&format!("mail.{n:03}"), fields, Put::default()).expect("put");
    }
    for n in (0..300).step_by(3) {
        records.set_field(&format!("mail.{n:03}"), "size", 1_000).expect("patch");
    }
    records.delete("mail.001").expect("delete");
    clock.advance(Duration::from_secs(1));
    let filters = [
        Filter::all().and("size", Test::Lt((-100).into())),
        Filter::all().and("size", Test::Eq(1_000.into())).and("to", Test::Eq("user-3".into())),
        Filter::all().and("to", Test::Gte("user-5".into())).and("state", Test::Eq("pending".into())),
        Filter::all().and("size", Test::Gt(100.into())).and("size", Test::Lte(140.into())),
    ];
    for filter in filters {
        let all = |options: ScanOptions| {
            let (mut names, mut looked_at, mut cursor) = (Vec::new(), 0, None);
            loop {
                let page = records.scan("mail.", &filter, &options.clone().limit(7).after(cursor)).expect("a scan");
                names.extend(page.records.into_iter().map(|(name, _)| name));
                looked_at += page.looked_at;
                cursor = page.cursor;
                if cursor.is_none() {
                    return (names, looked_at);
                }
            }
        };
        let (by_name, looked_at_all) = all(ScanOptions::default());
        let (mut by_index, looked_at_few) = all(ScanOptions::of_type("mail"));
        by_index.sort_unstable();
        assert_eq!(by_index, by_name, "{filter:?}");
        assert!(!by_name.is_empty() && looked_at_all >= 299 && looked_at_few < 150, "{looked_at_few} {filter:?}");
    }
}

#[test]
fn an_index_that_is_declared_later_is_filled_and_used_and_a_reopened_house_goes_on_with_it() {
    let (directory, clock, house) = house();
    let space = house.space("default");
    let mail = || RecordType::task().named("mail");
    space.declare_type("mail.", mail()).expect("declare");
    let records = house.records();
    let put = |n: i64| records.put_later(&format!("mail.{n:04}"), [("n", n)], Put::default());
    let puts: Vec<_> = (0..2_000).map(put).collect();
    for put in puts {
        put.wait().expect("put");
    }
    records.put("mail.last", [("n", 7)], Put::default()).expect("put");
    let by_n = Filter::all().and("n", Test::Eq(7.into()));
    let scan = |house: &Statehouse| {
        let page = house.records().scan("mail.", &by_n, &ScanOptions::of_type("mail")).expect("a scan");
        assert_eq!(page.records.len(), 2, "whether it is filled or not");
        page.looked_at
    };
    assert_eq!(scan(&house), 2_001);
    space.declare_type("mail.", mail().index("n", IndexKind::Signed)).expect("declare");
    house.close().expect("close");
    drop((records, space, house));
    let house = Options::default().clock(clock).open(directory.path().join("house")).expect("a house");
    eventually("it is filled", || scan(&house) == 2);
    let updated = Filter::all().and("updated_at", Test::Gt(0.into()));
    let page = house.records().scan("mail.", &updated, &ScanOptions::of_type("mail").limit(3)).expect("a scan");
    assert_eq!((page.records.len(), page.looked_at), (3, 3));
}

#[test]
fn everything_is_there_after_reopening() {
    let (directory, clock, house) = house();
    let records = house.records();
    records.put("jobs.1", [("n", 1)], Put::typed("task")).expect("put");
    records.put("jobs.2", [("n", 2)], Put::typed("task")).expect("put");
    let job = records.claim_next("jobs.", 1, &options().lease(Duration::from_secs(5))).expect("claim").remove(0);
    house.close().expect("close");
    drop((records, house));
    // Leases stand still while the store is closed; the clock starts over with the process.
    let house = Options::default().clock(clock.clone()).open(directory.path().join("house")).expect("reopen");
    let records = house.records();
    records.step(&job, [("state", "running")]).expect("still held");
    clock.advance(Duration::from_secs(6));
    eventually("the rescue", || text(&house, &job.name, "state").as_deref() == Some("pending"));
    let rest = records.claim_next("", 9, &options()).expect("claim");
    assert_eq!(rest.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["jobs.2"]);
}

#[test]
fn workers_wait_for_jobs_and_each_job_wakes_one() {
    let (_directory, _, house) = house();
    let waiting: Vec<_> = (0..4)
        .map(|worker| {
            let records = house.records();
            let options = ClaimOptions::worker(format!("w{worker}")).wait(Duration::from_secs(30));
            std::thread::spawn(move || records.claim_next("jobs.", 1, &options).expect("claim"))
        })
        .collect();
    for n in 0..4 {
        std::thread::sleep(Duration::from_millis(20));
        house.records().put(&format!("jobs.{n}"), [("n", n)], Put::typed("task")).expect("put");
    }
    let mut names: Vec<_> = waiting.into_iter().map(|worker| worker.join().expect("no panic").remove(0).name).collect();
    names.sort_unstable();
    assert_eq!(names, ["jobs.0", "jobs.1", "jobs.2", "jobs.3"]);
    let before = house.status().expect("status").commit;
    let none = house.records().claim_next("jobs.", 1, &options().wait(Duration::from_millis(1))).expect("claim");
    assert!(none.is_empty() && house.status().expect("status").commit <= before + 3);
}

#[test]
fn messages_for_a_broker_arrive_in_order_once_across_restarts() {
    let directory = tempfile::tempdir().expect("a directory");
    let broker = Arc::new(MemoryBroker::default());
    let clock = Arc::new(HeldClock::default());
    let path = directory.path().join("house");
    {
        // Nobody publishes yet: messages wait, and are counted.
        let house = Options::default().clock(clock.clone()).open(&path).expect("a house");
        for n in 0..10 {
            house.group(format!("g{}", n % 3)).commit().publish("t", format!("{}:{n}", n % 3)).run().expect("commit");
        }
        house.group("g0").commit().publish_after(Duration::from_secs(60), "t", "0:later").run().expect("commit");
        let waiting = house.messages_waiting().expect("counts");
        assert_eq!((waiting.due, waiting.publish), (1, 10));
        let listed = house.waiting_messages(100).expect("a list");
        assert_eq!(listed.iter().filter(|message| message.state == statehouse::MessageState::Publish).count(), 10);
        assert_eq!(listed.last().map(|message| message.source.as_str()), Some("g0"));
    }
    let house = Options::default().clock(clock.clone()).publish_to(broker.clone()).open(&path).expect("a house");
    clock.advance(Duration::from_secs(61));
    let mut by_source = vec![Vec::new(); 3];
    for _ in 0..11 {
        let message = String::from_utf8(broker.take("t", Duration::from_secs(10)).expect("a message")).expect("text");
        let (source, rest) = message.split_once(':').expect("two parts");
        by_source[source.parse::<usize>().expect("a number")].push(rest.to_owned());
    }
    assert_eq!(by_source, [vec!["0", "3", "6", "9", "later"], vec!["1", "4", "7"], vec!["2", "5", "8"]]);
    eventually("none waits", || house.messages_waiting().expect("counts") == statehouse::MessageCounts::default());
    assert_eq!(broker.take("t", Duration::ZERO), None, "what does not wait was published before");
}
