//! Commands that differ have digests that differ, and a digest never changes.

use kv::Writer;

use super::*;
use crate::command::{CellAct, CellGuard, Guard, Op, RecordAct, RecordGuard, RunAct, RunGuard};
use crate::outbox::command::{Send, Target};
use crate::records::command::TtlArgument;
use crate::runs::command::{Append, Duplicates, EventRef};
use crate::value::ValueRef;

const VALUES: [ValueRef<'static>; 7] = [
    ValueRef::Null,
    ValueRef::Boolean(true),
    ValueRef::Integer(1),
    ValueRef::Text("1"),
    ValueRef::Json("1.0"),
    ValueRef::Json("1.00"),
    ValueRef::Bytes(b"1"),
];

const EVENT: EventRef<'static> = EventRef { event_type: "T", data: "{}", idempotency_key: "k", ..EventRef::EMPTY };

/// The same event with each member changed, or given where it was left out.
fn events() -> Vec<EventRef<'static>> {
    let x = Some("x");
    vec![
        EVENT,
        EventRef { event_type: "x", ..EVENT },
        EventRef { data: "x", ..EVENT },
        EventRef { idempotency_key: "x", ..EVENT },
        EventRef { event_id: x, ..EVENT },
        EventRef { step_id: x, ..EVENT },
        EventRef { engine_attempt_id: x, ..EVENT },
        EventRef { logical_attempt_id: x, ..EVENT },
        EventRef { emitted_at: x, ..EVENT },
        EventRef { adapter_version: x, ..EVENT },
        EventRef { engine_run_ref: x, ..EVENT },
        EventRef { caused_by_signal_id: x, ..EVENT },
        EventRef { parent_event_id: x, ..EVENT },
        EventRef { extra: x, ..EVENT },
    ]
}

fn append(
    expected_last: Option<u64>,
    duplicates: Duplicates,
    run_type: &'static str,
    event: EventRef<'static>,
) -> Op<'static> {
    Op::Run("a", RunAct::Append(Box::new(Append { expected_last, duplicates, run_type, event })))
}

/// Every operation on the name `a`, with each of its members one way and another.
fn operations() -> Vec<Op<'static>> {
    let mut ops = vec![Op::Cell("a", CellAct::Delete), Op::Cell("a", CellAct::Cas(None, VALUES[0]))];
    let mut acts = vec![RecordAct::Delete];
    for value in VALUES {
        ops.extend([
            Op::Cell("a", CellAct::Init(value)),
            Op::Cell("a", CellAct::Set(value)),
            Op::Cell("a", CellAct::Cas(Some(7), value)),
        ]);
        acts.push(RecordAct::Put { record_type: None, ttl: TtlArgument::Persist, fields: vec![("f", value)] });
        acts.push(RecordAct::Patch { must_exist: false, fields: vec![("f", Some(value))] });
        acts.push(RecordAct::Swap { field: "f", expected: None, new: Some(value) });
        acts.push(RecordAct::Swap { field: "f", expected: Some(value), new: None });
        acts.push(RecordAct::Complete { attempt: 1, fields: vec![("f", Some(value))] });
        acts.push(RecordAct::Fail { attempt: 1, fields: vec![("f", Some(value))] });
    }
    for ttl in [TtlArgument::Persist, TtlArgument::Keep, TtlArgument::After(1), TtlArgument::WithSession] {
        acts.push(RecordAct::Put { record_type: Some("t"), ttl, fields: Vec::new() });
        acts.push(RecordAct::Touch { ttl });
    }
    acts.push(RecordAct::Put { record_type: None, ttl: TtlArgument::Persist, fields: Vec::new() });
    for must_exist in [false, true] {
        acts.push(RecordAct::Patch { must_exist, fields: vec![("f", None)] });
        acts.push(RecordAct::Patch { must_exist, fields: vec![("f", None), ("g", None)] });
    }
    for (field, by) in [("f", 1), ("f", -1), ("g", 1)] {
        acts.push(RecordAct::Increment { field, by });
    }
    for lease_us in [None, Some(1), Some(2)] {
        acts.push(RecordAct::Claim { worker: "", lease_us });
        acts.push(RecordAct::Claim { worker: "w", lease_us });
        acts.push(RecordAct::Extend { attempt: 1, lease_us });
        acts.push(RecordAct::Extend { attempt: 2, lease_us });
    }
    for attempt in [1, 2] {
        acts.push(RecordAct::Release { attempt });
        acts.push(RecordAct::Complete { attempt, fields: Vec::new() });
        acts.push(RecordAct::Fail { attempt, fields: Vec::new() });
    }
    ops.extend(acts.into_iter().map(|act| Op::Record("a", act)));
    ops.extend(events().into_iter().map(|event| append(None, Duplicates::Answer, "", event)));
    ops.push(append(Some(0), Duplicates::Answer, "", EVENT));
    ops.push(append(Some(1), Duplicates::Answer, "", EVENT));
    ops.push(append(None, Duplicates::RefuseOthers, "", EVENT));
    ops.push(append(None, Duplicates::Refuse, "", EVENT));
    ops.push(append(None, Duplicates::Answer, "t", EVENT));
    for act in [RunAct::Close, RunAct::Delete, RunAct::Fork { from: "b", at: 1 }, RunAct::Fork { from: "b", at: 2 }] {
        ops.push(Op::Run("a", act));
    }
    for after_us in [None, Some(1), Some(2)] {
        for payload in [b"p".as_slice(), b"q"] {
            ops.push(Op::Send(Send { target: Target::Topic { topic: "t", payload }, after_us }));
            ops.push(Op::Send(Send { target: Target::Topic { topic: "u", payload }, after_us }));
            ops.push(Op::Send(Send { target: Target::Transact(payload), after_us }));
        }
    }
    ops.extend([Op::Push(1, b"p"), Op::Push(2, b"p"), Op::Push(1, b"q")]);
    ops
}

/// Guards that came after the first golden digests.
fn later_guards() -> Vec<Guard<'static>> {
    let mut guards = Vec::new();
    for name in ["a", "b"] {
        guards.extend([1, 2].map(|number| Guard::Run(RunGuard::LastIs(name, number))));
    }
    guards
}

fn guards() -> Vec<Guard<'static>> {
    let mut guards = Vec::new();
    for name in ["a", "b"] {
        guards.extend([
            Guard::Cell(CellGuard::Absent(name)),
            Guard::Cell(CellGuard::Exists(name)),
            Guard::Record(RecordGuard::Absent(name)),
            Guard::Record(RecordGuard::Exists(name)),
            Guard::Record(RecordGuard::FieldIs(name, "f", None)),
            Guard::Record(RecordGuard::FieldIs(name, "g", None)),
            Guard::Record(RecordGuard::StateIn(name, vec!["s"])),
            Guard::Record(RecordGuard::StateIn(name, vec!["s", "t"])),
        ]);
        guards.extend(VALUES.map(|value| Guard::Record(RecordGuard::FieldIs(name, "f", Some(value)))));
        for number in [1, 2] {
            guards.extend([
                Guard::Cell(CellGuard::VersionIs(name, number)),
                Guard::Cell(CellGuard::VersionBelow(name, number)),
                Guard::Cell(CellGuard::UnchangedSince(name, number)),
                Guard::Cell(CellGuard::RangeUnchangedSince(name, None, number)),
                Guard::Cell(CellGuard::RangeUnchangedSince(name, Some("z"), number)),
                Guard::Record(RecordGuard::VersionIs(name, number)),
                Guard::Record(RecordGuard::AttemptIs(name, number)),
                Guard::Record(RecordGuard::UnchangedSince(name, number)),
            ]);
        }
    }
    guards
}

fn bytes(body: &Body<'_>) -> Vec<u8> {
    let mut writer = Writer::new();
    body.encode(&mut writer);
    writer.finish()
}

fn transaction() -> Transact<'static> {
    let ops = vec![Op::Cell("a", CellAct::Set(ValueRef::Integer(1)))];
    Transact { space: 1, branch: 1, group: None, fences: Vec::new(), force: false, guards: Vec::new(), ops }
}

fn later_commands() -> Vec<Vec<u8>> {
    let guarded = |guard| Body::Transact(Transact { guards: vec![guard], ..transaction() });
    later_guards().into_iter().map(|guard| bytes(&guarded(guard))).collect()
}

fn commands() -> Vec<Vec<u8>> {
    let mut bodies: Vec<_> = operations().into_iter().map(|op| Transact { ops: vec![op], ..transaction() }).collect();
    bodies.extend(guards().into_iter().map(|guard| Transact { guards: vec![guard], ..transaction() }));
    bodies.push(Transact { space: 2, ..transaction() });
    bodies.push(Transact { branch: 2, ..transaction() });
    bodies.push(Transact { group: Some("g"), ..transaction() });
    bodies.push(Transact { group: Some("h"), ..transaction() });
    bodies.push(Transact { fences: vec![Fence { record: "a", attempt: 1 }], ..transaction() });
    bodies.push(Transact { fences: vec![Fence { record: "a", attempt: 2 }], ..transaction() });
    bodies.push(Transact { fences: vec![Fence { record: "b", attempt: 1 }], ..transaction() });
    bodies.push(Transact { ops: vec![Op::Cell("b", CellAct::Set(ValueRef::Integer(1)))], ..transaction() });
    let two = [Op::Cell("a", CellAct::Set(ValueRef::Integer(1))), Op::Cell("a", CellAct::Delete)];
    bodies.push(Transact { ops: two.to_vec(), ..transaction() });
    bodies.push(Transact { ops: two.iter().rev().cloned().collect(), ..transaction() });
    let mut commands: Vec<_> = bodies.into_iter().map(|body| bytes(&Body::Transact(body))).collect();
    // A transaction that is sent counts by its own form, however deep it lies.
    let mut sent = bytes(&Body::Transact(transaction()));
    for _ in 0..3 {
        let op = Op::Send(Send { target: Target::Transact(&sent), after_us: None });
        sent = bytes(&Body::Transact(Transact { ops: vec![op], ..transaction() }));
        commands.push(sent.clone());
    }
    let claim =
        ClaimNext { space: 1, branch: 1, prefix: "p.", records_max: 1, worker: "", lease_us: None, waits: false };
    let claims = [
        claim,
        ClaimNext { space: 2, ..claim },
        ClaimNext { branch: 2, ..claim },
        ClaimNext { prefix: "", ..claim },
        ClaimNext { records_max: 2, ..claim },
        ClaimNext { worker: "w", ..claim },
        ClaimNext { lease_us: Some(1), ..claim },
    ];
    commands.extend(claims.map(|claim| bytes(&Body::ClaimNext(claim))));
    commands.push(bytes(&Body::Tick));
    commands.push(bytes(&Body::Level(1)));
    commands
}

#[test]
fn all_pairs_of_commands_have_digests_of_their_own() {
    let commands = [commands(), later_commands()].concat();
    assert!(commands.len() > 150, "{} commands", commands.len());
    let mut digests = std::collections::BTreeMap::new();
    for (place, command) in commands.iter().enumerate() {
        let digest = digest(command).expect("well formed");
        assert_eq!(digest, super::digest(&command.clone()).expect("well formed"), "the same command again");
        if let Some(other) = digests.insert(digest, place) {
            panic!("{:?} and {:?} look the same", Body::decode(&commands[other]), Body::decode(command));
        }
    }
}

#[test]
fn machines_and_groups_are_told_apart() {
    let command = HostedCommand::new(1, "g", b"b");
    let different = [
        digest_hosted(256, &command),
        digest_hosted(257, &command),
        digest_hosted(256, &HostedCommand { space: 2, ..command.clone() }),
        digest_hosted(256, &HostedCommand { group: "h", ..command.clone() }),
        digest_hosted(256, &HostedCommand { body: b"c", ..command.clone() }),
    ];
    for (place, one) in different.iter().enumerate() {
        assert!(!different[..place].contains(one), "{place}");
    }
}

/// Transactions in each other, 1,500 deep, are digested without a stack as deep as that.
#[test]
fn depth_costs_no_stack() {
    let mut sent = bytes(&Body::Transact(transaction()));
    for _ in 0..1_500 {
        let op = Op::Send(Send { target: Target::Transact(&sent), after_us: None });
        sent = bytes(&Body::Transact(Transact { ops: vec![op], ..transaction() }));
    }
    std::thread::Builder::new()
        .stack_size(64 << 10)
        .spawn(move || digest(&sent).expect("well formed"))
        .expect("a thread")
        .join()
        .expect("no overflow");
}

/// The digests of `docs/formats/sessions.md`. A change here makes every stored answer that of another command.
#[test]
fn golden_digests() {
    let hex = |digest: CommandDigest| digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let all = |commands: Vec<Vec<u8>>| {
        let mut all = Digester::new("all");
        for command in commands {
            all.member("digest", &digest(&command).expect("well formed"));
        }
        hex(all.finish())
    };
    assert_eq!(
        hex(digest(&bytes(&Body::Transact(transaction()))).expect("well formed")),
        "d1995adf97b11047c24f3b5f33038197"
    );
    assert_eq!(all(commands()), "d5770101244f3953b6a2fc90cc804b88");
    assert_eq!(all(later_commands()), "3da58bbd7633480a8cbbe88551d76d62");
}

/// It is kept with a map, and asked for in another store, where space and branch have other numbers.
#[test]
fn the_digest_of_a_content_has_no_numbers_of_its_own_space_and_branch() {
    let of = |space, branch, to: (u32, u32)| {
        let mut message = Writer::new();
        Body::Transact(Transact::new(to.0, to.1, Some("h"), Vec::new())).encode(&mut message);
        let send = Op::Send(Send { target: Target::Transact(message.as_slice()), after_us: None });
        digest_content(&Transact::new(space, branch, Some("g"), vec![send])).unwrap()
    };
    let here = of(1, 1, (1, 1));
    assert_eq!(here, of(3, 4, (3, 4)));
    assert_ne!(here, of(1, 1, (2, 1)), "a message to another space is another one");
    assert_eq!(of(1, 1, (2, 5)), of(3, 4, (2, 5)));
    let in_group = |group| digest_content(&Transact::new(1, 1, Some(group), Vec::new())).unwrap();
    assert_ne!(in_group("g"), in_group("h"));
}
