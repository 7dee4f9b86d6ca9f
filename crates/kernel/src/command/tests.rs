//! Bodies are read as they are written.

use super::*;

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
    let mut ops = vec![Op::CellDelete("d"), Op::CellCas("c", None, ValueRef::Null)];
    for value in values {
        ops.extend([Op::CellInit("i", value), Op::CellSet("s", value), Op::CellCas("c", Some(7), value)]);
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
        Guard::CellAbsent("a"),
        Guard::CellExists("e"),
        Guard::CellVersionIs("v", 1),
        Guard::CellVersionBelow("b", 2),
        Guard::CellUnchangedSince("u", 3),
        Guard::CellsUnchangedSince("from", Some("to"), 4),
        Guard::CellsUnchangedSince("from", None, 5),
        Guard::RecordAbsent("a"),
        Guard::RecordExists("e"),
        Guard::RecordVersionIs("v", 1),
        Guard::RecordFieldIs("r", "f", None),
        Guard::RecordFieldIs("r", "f", Some(ValueRef::Text("x"))),
        Guard::RecordStateIn("r", vec!["a", "b"]),
        Guard::RecordAttemptIs("r", 6),
        Guard::RecordUnchangedSince("r", 7),
    ];
    let fences = [None, Some(Fence { record: "r", attempt: 4 })];
    for (group, fence) in [None, Some("group")].into_iter().zip(fences) {
        let (guards, ops) = (guards.clone(), ops.clone());
        is_read_as_written(&Body::Transact(Transact { space: 1, branch: 2, group, fence, guards, ops }));
    }
    is_read_as_written(&Body::Tick);
    is_read_as_written(&Body::Published(vec![(1, 2, 3)]));
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
