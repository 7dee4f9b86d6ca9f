//! Rules of `docs/contracts/records.md`, one by one: moves between states, ends of attempts, order of claims, tokens.

mod held;

use std::time::Duration;

use held::{eventually, house};
use statehouse::records::{
    ClaimOptions, Claimed, FieldSwapped, Filter, IndexKind, Put, ReadyOrder, RecordType, Records, Retry, ScanOptions,
    State, StateKind, Test, Ttl,
};
use statehouse::{Error, Followed, Reason, RecordRejection, Rejection, Statehouse, Subject, Value};

const PENDING: &str = "pending";

fn options() -> ClaimOptions {
    ClaimOptions::worker("w")
}

fn code<T: std::fmt::Debug>(answer: Result<T, Error>) -> &'static str {
    answer.expect_err("refused").code()
}

fn state(records: &Records, record: &str) -> String {
    let value = records.get_field(record, "state").expect("get").expect("a state");
    value.as_text().expect("text").to_owned()
}

/// A record in a state, by the shortest way there.
fn record_in(house: &Statehouse, name: &str, wanted: &str) -> Option<Claimed> {
    let records = house.records();
    records.put(name, [("n", 1)], Put::typed("parcel")).expect("put");
    if [PENDING, "paused"].contains(&wanted) {
        records.set_field(name, "state", wanted).expect("move");
        return None;
    }
    let claimed = records.claim(name, &options()).expect("claim");
    records.step(&claimed, [("state", wanted)]).expect("move");
    Some(claimed)
}

#[test]
fn r3_and_r4_moves_between_states_are_as_the_table_says() {
    let (_directory, _, house) = house();
    let mut parcel = RecordType::task().named("parcel");
    parcel.states.insert(1, State { name: "paused".into(), kind: StateKind::Ready });
    house.space("default").declare_type("parcels.", parcel.clone()).expect("declare");
    let records = house.records();
    for from in &parcel.states {
        for to in &parcel.states {
            for swap in [false, true] {
                let name = format!("{}-{}-{swap}", from.name, to.name);
                record_in(&house, &name, &from.name);
                let attempts = records.get(&name).expect("get").expect("it exists").attempt;
                let moved = match swap {
                    false => records.set_field(&name, "state", to.name.as_str()).map(|_| ()),
                    true => {
                        let (from, to) = (from.name.as_str().into(), to.name.as_str().into());
                        records.compare_and_swap(&name, "state", Some(from), Some(to)).map(|_| ())
                    }
                };
                let allowed = match (from.kind, to.kind) {
                    _ if from == to => true,
                    (StateKind::Terminal, _) => false,
                    (StateKind::Ready, StateKind::Held) => swap,
                    (StateKind::Ready, StateKind::Terminal) => to.name != "completed",
                    _ => true,
                };
                match allowed {
                    true => moved.expect(&name),
                    false => assert_eq!(code(moved), "SH-1015", "{name}"),
                }
                assert_eq!(state(&records, &name), if allowed { &to.name } else { &from.name }.as_str());
                let record = records.get(&name).expect("get").expect("it exists");
                let kind = if allowed { to.kind } else { from.kind };
                assert_eq!(record.holder.is_some(), kind == StateKind::Held, "{name}");
                let claimed = from.kind == StateKind::Ready && kind == StateKind::Held;
                assert_eq!(record.attempt, attempts + u64::from(claimed), "{name}: only a claim begins an attempt");
            }
        }
    }
}

#[test]
fn a_record_that_is_held_or_finished_is_not_replaced_but_may_be_deleted() {
    let (_directory, _, house) = house();
    let group = house.group("g");
    let records = group.records();
    records.put("r", [("n", 1)], Put::typed("task")).expect("put");
    let job = records.claim("r", &options()).expect("claim");
    assert_eq!(code(records.put("r", [("n", 2)], Put::typed("task"))), "SH-1015");
    group.commit().fence(&job).put_record("r", [("n", 3)], Put::typed("task")).run().expect("its own attempt may");
    assert_eq!((state(&records, "r").as_str(), records.get_field("r", "n").expect("get")), ("claimed", Some(3.into())));
    records.complete(&job, [("n", 4)]).expect("complete");
    assert_eq!(code(records.put("r", [("n", 5)], Put::typed("task"))), "SH-1015");
    assert_eq!(code(records.complete(&job, [("n", 6)])), "SH-4002");
    records.delete("r").expect("delete");
    records.put("r", [("n", 7)], Put::typed("task")).expect("put");
    let again = records.claim("r", &options()).expect("claim");
    assert_eq!(again.attempt, 2, "R2: attempts go on");
    records.delete("r").expect("a held record can be deleted");
    match records.step(&again, [("n", 8)]) {
        Err(Error::Rejected(Rejection::Record(RecordRejection::Fenced { state, .. }))) => assert_eq!(state, "gone"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_held_record_expires_and_its_worker_is_fenced() {
    let (_directory, clock, house) = house();
    let records = house.records();
    let put = Put { ttl: Ttl::After(Duration::from_secs(10)), ..Put::typed("task") };
    records.put("r", [("n", 1)], put).expect("put");
    let job = records.claim("r", &options()).expect("claim");
    clock.advance(Duration::from_secs(11));
    assert_eq!(code(records.step(&job, [("n", 2)])), "SH-4002");
    eventually("the expiry", || records.counts("").expect("counts").of("claimed") == 0);
    assert_eq!(records.get("r").expect("get"), None);
    let Followed::Page(page) = house.changes().read(0, 100).expect("the feed") else { panic!("a gap") };
    let reasons: Vec<_> = page.changes.iter().map(|change| (change.version, change.reason)).collect();
    assert_eq!(reasons, [(1, Reason::Written), (2, Reason::Claimed), (3, Reason::Expired)], "R1");
}

#[test]
fn a_lease_without_an_end_in_sight_is_not_over() {
    let (_directory, _, house) = house();
    let records = house.records();
    records.put("q.1", [("n", 1)], Put::typed("task")).expect("put");
    records.claim("q.1", &options().lease(Duration::MAX)).expect("claim");
    let held = records.get("q.1").expect("get").expect("it exists");
    let timeout_at = held.fields.get("timeout_at").map(|field| field.value.clone());
    assert!(matches!(timeout_at, Some(Value::Integer(ms)) if ms > i64::from(u32::MAX)), "{timeout_at:?}");
}

#[test]
fn a_claim_waits_for_the_pause_and_a_swap_does_not() {
    let (_directory, _, house) = house();
    let records = house.records();
    records.put("q.1", [("n", 1)], Put::typed("task")).expect("put");
    let job = records.claim("q.1", &options()).expect("claim");
    assert_eq!(records.fail(&job, "oops").expect("fail"), Retry::After(Duration::from_secs(1)));
    records.put("q.1", [("n", 2)], Put::typed("task")).expect("put");
    assert_eq!(code(records.claim("q.1", &options())), "SH-1015", "a put keeps the pause");
    assert!(records.claim_next("q.", 1, &options()).expect("claim").is_empty());
    let swapped = records.compare_and_swap("q.1", "state", Some(PENDING.into()), Some("claimed".into()));
    assert!(matches!(swapped.expect("swap"), FieldSwapped::Written(_)));
    assert_eq!(records.get("q.1").expect("get").expect("it exists").attempt, 2);
}

#[test]
fn claims_are_in_the_order_of_a_field_then_of_time_over_all_queues_and_groups() {
    let (_directory, clock, house) = house();
    let mut urgent = RecordType::task().named("urgent");
    urgent.ready_order = ReadyOrder::Field("priority".into());
    house.space("default").declare_type("q.", urgent).expect("declare");
    for (group, name, priority) in
        [("a", "q.x.1", 2), ("b", "q.y.1", 1), ("a", "q.x.2", -1), ("c", "q.y.2", 1), ("c", "other", 0)]
    {
        house.group(group).records().put(name, [("priority", priority)], Put::default()).expect("put");
        clock.advance(Duration::from_millis(1));
    }
    assert_eq!(house.records().counts("q.").expect("counts").of(PENDING), 4);
    assert_eq!(house.records().counts("q.y.").expect("counts").of(PENDING), 2);
    let claimed = house.records().claim_next("q.", 3, &options()).expect("claim");
    let order: Vec<_> = claimed.iter().map(|job| (job.group.as_deref().unwrap_or(""), job.name.as_str())).collect();
    assert_eq!(order, [("a", "q.x.2"), ("b", "q.y.1"), ("c", "q.y.2")]);
    assert_eq!(code(house.records().claim_next("q", 3, &options())), "SH-1001", "a prefix of queues");
    let place = format!("#h{:016x}", house.id());
    assert_eq!(claimed[1].token, format!("b#q.y.1#1{place}"), "a token names the group");
}

#[test]
fn a_message_that_is_refused_is_gone_and_the_feed_says_so() {
    let (_directory, _, house) = house();
    let (from, to) = (house.group("from"), house.group("to"));
    to.cells().set("there", 1).expect("set");
    let good = to.commit().set_cell("good", 1);
    let bad = to.commit().if_cell_absent("there").set_cell("bad", 1);
    from.commit().set_cell("sent", 1).send(bad).send(good).run().expect("commit");
    eventually("the second message", || to.cells().get("good").expect("get").is_some());
    assert_eq!(to.cells().get("bad").expect("get"), None);
    let Followed::Page(page) = house.changes().of(Subject::Message).read(0, 100).expect("the feed") else {
        panic!("a gap")
    };
    let seen: Vec<_> = page.changes.iter().map(|change| (change.name.as_str(), change.reason)).collect();
    assert_eq!(seen, [("from", Reason::Refused), ("from", Reason::Delivered)], "R6: once, in order");
}

#[test]
fn an_index_holds_values_of_its_kind_only() {
    let (_directory, _, house) = house();
    let sized = RecordType::task().named("sized").index("size", IndexKind::Unsigned);
    house.space("default").declare_type("s.", sized).expect("declare");
    let records = house.records();
    for (name, size) in [("s.1", Value::from(1)), ("s.2", (-1).into()), ("s.3", "1".into())] {
        records.put(name, [("size", size)], Put::default()).expect("put");
    }
    let small = Filter::all().and("size", Test::Lt(5.into()));
    let names = |options: ScanOptions| {
        let page = records.scan("s.", &small, &options).expect("scan");
        page.records.into_iter().map(|(record, _)| record.name).collect::<Vec<_>>()
    };
    assert_eq!(names(ScanOptions::of_type("sized")), ["s.2", "s.1"], "in the order of the index");
    assert_eq!(names(ScanOptions::default()), ["s.1", "s.2"], "without the index the same, in name order");
}
