//! Bodies are read as they are written.

use super::*;
use crate::outbox::command::{Send, Target};
use crate::records::command::TtlArgument;
use crate::runs::command::{Append, Duplicates, EventRef};
use crate::value::ValueRef;

#[test]
fn a_body_is_read_as_written() {
    let values = [
        ValueRef::Null,
        ValueRef::Boolean(true),
        ValueRef::Integer(i64::MIN),
        ValueRef::Text("text"),
        ValueRef::Json("{}"),
        ValueRef::Bytes(&[0, 255]),
    ];
    let mut ops = vec![Op::Cell("d", CellAct::Delete), Op::Cell("c", CellAct::Cas(None, ValueRef::Null))];
    for value in values {
        ops.extend([
            Op::Cell("i", CellAct::Init(value)),
            Op::Cell("s", CellAct::Set(value)),
            Op::Cell("c", CellAct::Cas(Some(7), value)),
        ]);
        let patch = vec![("f", Some(value)), ("g", None)];
        let acts = [
            RecordAct::Put { record_type: Some("t"), ttl: TtlArgument::After(9), fields: vec![("f", value)] },
            RecordAct::Put { record_type: None, ttl: TtlArgument::Keep, fields: Vec::new() },
            RecordAct::Patch { must_exist: true, fields: patch.clone() },
            RecordAct::Swap { field: "f", expected: Some(value), new: None },
            RecordAct::Complete { attempt: 3, fields: patch.clone() },
            RecordAct::Fail { attempt: 3, fields: patch },
        ];
        ops.extend(acts.map(|act| Op::Record("r", act)));
    }
    let acts = [
        RecordAct::Increment { field: "n", by: -1 },
        RecordAct::Delete,
        RecordAct::Touch { ttl: TtlArgument::Persist },
        RecordAct::Claim { worker: "w", lease_us: Some(5) },
        RecordAct::Extend { attempt: 1, lease_us: None },
        RecordAct::Release { attempt: 2 },
    ];
    ops.extend(acts.map(|act| Op::Record("r", act)));
    ops.push(Op::Send(Send { target: Target::Transact(&[1, 2]), after_us: None }));
    ops.push(Op::Send(Send { target: Target::Topic { topic: "t", payload: b"p" }, after_us: Some(3) }));
    ops.push(Op::Push(7, b"p"));
    let event = EventRef {
        event_type: "T",
        data: "{}",
        idempotency_key: "k",
        event_id: Some("i"),
        step_id: None,
        engine_attempt_id: Some("1"),
        logical_attempt_id: Some("2"),
        emitted_at: Some("e"),
        adapter_version: Some("v"),
        engine_run_ref: Some("{}"),
        caused_by_signal_id: Some("s"),
        parent_event_id: Some("p"),
        extra: Some("{}"),
    };
    let acts = [
        RunAct::Append(Box::new(Append {
            expected_last: Some(3),
            duplicates: Duplicates::Refuse,
            run_type: "t",
            event,
        })),
        RunAct::Close,
        RunAct::Delete,
        RunAct::Fork { from: "f", at: 4 },
    ];
    ops.extend(acts.map(|act| Op::Run("r", act)));
    let guards = vec![
        Guard::Cell(CellGuard::Absent("a")),
        Guard::Cell(CellGuard::Exists("e")),
        Guard::Cell(CellGuard::VersionIs("v", 1)),
        Guard::Cell(CellGuard::VersionBelow("b", 2)),
        Guard::Cell(CellGuard::UnchangedSince("u", 3)),
        Guard::Cell(CellGuard::RangeUnchangedSince("from", Some("to"), 4)),
        Guard::Cell(CellGuard::RangeUnchangedSince("from", None, 5)),
        Guard::Record(RecordGuard::Absent("a")),
        Guard::Record(RecordGuard::Exists("e")),
        Guard::Record(RecordGuard::VersionIs("v", 1)),
        Guard::Record(RecordGuard::FieldIs("r", "f", None)),
        Guard::Record(RecordGuard::FieldIs("r", "f", Some(ValueRef::Text("x")))),
        Guard::Record(RecordGuard::StateIn("r", vec!["a", "b"])),
        Guard::Record(RecordGuard::AttemptIs("r", 6)),
        Guard::Record(RecordGuard::UnchangedSince("r", 7)),
        Guard::Run(RunGuard::LastIs("r", 8)),
    ];
    let fence = |attempt| Fence { record: "r", attempt };
    let fenced = [vec![], vec![fence(4)], vec![fence(4), fence(5)]];
    for (group, fences) in [None, Some("group"), Some("other")].into_iter().zip(fenced) {
        let (guards, ops, force) = (guards.clone(), ops.clone(), fences.len() == 2);
        is_read_as_written(&Body::Transact(Transact { fences, force, guards, ..Transact::new(1, 2, group, ops) }));
    }
    is_read_as_written(&Body::Tick);
    is_read_as_written(&Body::Published(vec![(1, 2), (3, 4)]));
    let claim =
        ClaimNext { space: 1, branch: 2, prefix: "p", records_max: 3, worker: "w", lease_us: Some(4), waits: true };
    is_read_as_written(&Body::ClaimNext(claim));
    assert!(Body::decode(&[99]).is_err());
}

fn is_read_as_written(body: &Body<'_>) {
    let mut writer = Writer::new();
    body.encode(&mut writer);
    assert_eq!(Body::decode(writer.as_slice()).as_ref(), Ok(body));
}
