//! A store with something of everything that an export contains.

use std::time::Duration;

use statehouse::records::{ClaimOptions, Claimed, Put, RecordType, Ttl};
use statehouse::runs::{AppendOptions, NewEvent};
use statehouse::sessions::{Command, DecodeError, KvError, Pushes, Reader, UserCall, UserMachine, UserState, Writer};
use statehouse::{DiskReserve, Json, Options, Retention, Statehouse, Value};

/// A user's machine that keeps the last saying of each session, until the session ends.
pub struct Sayings;

pub struct Say(pub Vec<u8>);

impl Command for Say {
    type Response = ();

    fn encode(&self, writer: &mut Writer) {
        writer.raw(&self.0);
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self(Reader::new(bytes).rest().to_vec()))
    }

    fn encode_response(_: &(), _: &mut Writer) {}

    fn decode_response(_: &[u8]) -> Result<(), DecodeError> {
        Ok(())
    }
}

impl UserMachine for Sayings {
    const NUMBER: u16 = 301;
    const VERSION: u16 = 2;
    type Command = Say;

    fn apply(&self, state: &mut UserState, call: &UserCall, said: Say, _: &mut Pushes) -> Result<(), KvError> {
        state.put(&call.session.unwrap_or(0).to_be_bytes(), &said.0);
        Ok(())
    }

    fn on_session_expired(
        &self,
        state: &mut UserState,
        _: &UserCall,
        session: u64,
        _: &mut Pushes,
    ) -> Result<(), KvError> {
        state.delete(&session.to_be_bytes());
        Ok(())
    }
}

pub fn options() -> Options {
    Options::default().machine(Sayings).buckets(16)
}

pub fn event(event_type: &str, key: &str, step: Option<&str>) -> NewEvent {
    let data = Json::new(r#"{"error": {"code": "c", "message": "m\n"}, "n": 1.50}"#).expect("JSON");
    let mut event = NewEvent::new(event_type, key, "2026-01-02T03:04:05Z", data);
    event.step_id = step.map(str::to_owned);
    event
}

/// What the caller continues with.
pub struct Held {
    /// A claim without a session.
    pub claimed: Claimed,
    /// A session that holds a job, and with which a record ends.
    pub session: statehouse::Session,
}

pub fn furnish(house: &Statehouse) -> Held {
    // First, since everything that is deleted is forgotten then.
    forget_a_cell(house);
    catalogue(house);
    cells(house);
    let held = records(house);
    runs(house);
    messages(house);
    held
}

fn catalogue(house: &Statehouse) {
    let mut limits = house.limits().expect("limits");
    limits.tick_steps_max = 77;
    house.set_limits(limits).expect("set");
    let shop = house.create_space("shop").expect("a space");
    shop.set_retention(Retention::versions(3)).expect("set");
    for branch in ["what-if", "gone"] {
        shop.create_branch(branch).expect("a branch").cells().set("c", branch).expect("written");
    }
    shop.delete_branch("gone").expect("deleted");
    let mut mail = RecordType::task().named("mail").index("to", statehouse::records::IndexKind::Text);
    mail.ready_order = statehouse::records::ReadyOrder::Field("priority".into());
    mail.backoff.first = Duration::from_secs(1_800);
    mail.backoff.max = Duration::from_secs(3_600);
    mail.terminal_ttl = Some(Duration::from_secs(3_600));
    shop.declare_type("mail.", mail.sweep_to("rescued", "exhausted")).expect("declared");
}

fn cells(house: &Statehouse) {
    let cells = house.cells();
    let values = [
        Value::Null,
        Value::Boolean(true),
        Value::Integer(i64::MIN),
        Value::from("5"),
        Value::from("a\"\n\0ä"),
        Value::json("{\"b\": 1,\n \"a\": [1.50]}").expect("JSON"),
        Value::json("\"5\"").expect("JSON"),
        Value::Bytes(vec![0, 255, 10]),
    ];
    for value in values {
        cells.set("every/kind", value).expect("written");
    }
    cells.set("deleted", 1).expect("written");
    cells.delete("deleted").expect("deleted");
    let shop = house.space("shop");
    for number in 0..6 {
        shop.cells().set("trimmed", number).expect("written");
    }
    shop.group("order-7").cells().set("state", "packed").expect("written");
    shop.group("order-7").cells().set("order-7", "itself").expect("written");
}

fn records(house: &Statehouse) -> Held {
    let shop = house.space("shop");
    let records = shop.records();
    let put = |name: &str, priority: i64| {
        let fields = [("to", Value::from("ann")), ("priority", priority.into()), ("body", "x".repeat(5_000).into())];
        records.put(name, fields, Put::default()).expect("put");
    };
    (1..=6).for_each(|number| put(&format!("mail.{number}"), 10 - number));
    let long = ClaimOptions::worker("w1").lease(Duration::from_secs(3_600));
    let first = records.claim("mail.1", &long).expect("claimed");
    records.complete(&first, [("result", "sent")]).expect("completed");
    let failed = records.claim("mail.2", &long).expect("claimed");
    records.fail(&failed, "no route").expect("failed: it waits for its next attempt");
    let claimed = records.claim("mail.3", &long).expect("claimed");
    records.extend(&claimed, Some(Duration::from_secs(7_200))).expect("extended");
    records.delete("mail.4").expect("deleted");

    let session = house.sessions().open().expect("a session");
    let own = session.space("shop").records();
    own.claim("mail.5", &long).expect("claimed in a session");
    let ending = Put { ttl: Ttl::WithSession, ..Put::default() };
    own.put("presence/ann", [("at", "desk")], ending).expect("ends with the session");
    session.machine::<Sayings>().group("talk").send(&Say(b"hello\0".to_vec())).expect("said");
    house.machine::<Sayings>().group("talk").send(&Say(b"nobody".to_vec())).expect("said");

    let plain = house.records();
    plain.put("config", [("a", 1)], Put::expiring(Duration::from_secs(86_400))).expect("put");
    plain.set_field("config", "b", 2).expect("set");
    plain.touch("config", Duration::from_secs(172_800)).expect("touched");
    house.group("g").records().put("in-a-group", [("a", 1)], Put::default()).expect("put");
    forget_one(house);
    Held { claimed, session }
}

/// A cell whose rows are gone, so that only the floor of its branch remembers it.
fn forget_a_cell(house: &Statehouse) {
    let cells = house.cells();
    cells.set("forgotten", 1).expect("written");
    cells.delete("forgotten").expect("deleted");
    house.set_disk_reserve(Some(DiskReserve { percent: 100, bytes: u64::MAX }));
    while !cells.history("forgotten", Default::default()).expect("history").versions.is_empty() {
        std::thread::sleep(Duration::from_millis(20)); // The walk that removes the rows.
    }
    house.set_disk_reserve(None);
}

/// A record whose row is gone, so that only the floor of its bucket remembers it.
fn forget_one(house: &Statehouse) {
    let limits = house.limits().expect("limits");
    let mut short = limits;
    short.tombstone_age_us = 0;
    house.set_limits(short).expect("set");
    for _ in 0..3 {
        house.records().put("forgotten", [("a", 1)], Put::default()).expect("put");
    }
    house.records().delete("forgotten").expect("deleted");
    house.set_limits(limits).expect("set");
    std::thread::sleep(Duration::from_millis(300)); // The tick that removes the row.
}

fn runs(house: &Statehouse) {
    let runs = house.runs();
    let flow = AppendOptions::run_type("flow");
    let mut first = event("RunStarted", "started", None);
    first.event_id = Some("0198c2f0-0000-7000-8000-000000000001".into());
    runs.append_with("r1", &first, &flow).expect("appended");
    for (kind, key) in [("StepStarted", "s1"), ("StepFailed", "s1f"), ("Custom", "x")] {
        runs.append("r1", &event(kind, key, Some("step-1"))).expect("appended");
    }
    let group = house.group("workflow");
    let shared = group.runs();
    for number in 0..5 {
        shared.append("original", &event("StepStarted", &format!("k{number}"), Some("s"))).expect("appended");
    }
    shared.fork("original", 3, "a-fork").expect("forked");
    shared.append("a-fork", &event("RunCompleted", "done", None)).expect("appended");
    shared.delete("original").expect("deleted; its events stay for the fork");
    runs.append("closed", &event("RunCompleted", "done", None)).expect("appended");
    runs.close("closed").expect("closed");
    runs.append("archived", &event("RunStarted", "s", None)).expect("appended");
    runs.delete("archived").expect("deleted");
}

fn messages(house: &Statehouse) {
    let group = house.space("shop").group("order-7");
    let hour = Duration::from_secs(3_600);
    let reminder = house.space("shop").group("order-8").commit().set_cell("reminded", true);
    let commit = group.commit().set_cell("asked", 1).publish("topic", vec![0, 1, 255]);
    commit.publish_after(hour, "later", b"x".to_vec()).send_after(hour, reminder).run().expect("sent");
}
