//! Every operation and every condition of a transaction: alone, behind one that is permitted, in what is sent to another group, and in
//! the commit of a partition.

use contract::access::{Area, Verb};
use serde_json::{Value as JsonValue, json};
use testkit::http::Request;

use super::keyed;
use super::needed::{Case, For, Needed, Target};

/// Where an operation or a condition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Within {
    Alone,
    Second,
    Message,
    Partition,
}

/// All of them.
pub(super) const ALL_WITHIN: [Within; 4] = [Within::Alone, Within::Second, Within::Message, Within::Partition];

/// What is possible anyway, and permitted.
const PERMITTED: &str = "permitted";

fn txn(group: &str, body: &JsonValue) -> Request {
    Request::post(format!("/v1/groups/{}/txn", group.replace('/', "%2F"))).body(body.to_string())
}

/// A commit of one operation or of one condition, and what it needs besides.
fn commit(target: &Target, within: Within, member: &str, part: JsonValue) -> (Request, Vec<Needed>) {
    let Target { operator, group, .. } = target;
    let set = || json!({ "op": "cell.set", "name": PERMITTED, "value": 1 });
    let is_guard = member == "if";
    let mut body = if is_guard { json!({ "if": [part], "do": [set()] }) } else { json!({ "do": [part] }) };
    let mut besides = Vec::new();
    let set_is_needed = || target.needs(Verb::Write, Area::Cell, PERMITTED);
    if is_guard {
        besides.push(set_is_needed());
    }
    match within {
        Within::Alone => (txn(group, &body), besides),
        Within::Second => {
            if is_guard {
                body["if"] = json!([{ "cell": PERMITTED, "version_below": 9 }, body["if"][0]]);
                besides.push(target.needs(Verb::Read, Area::Cell, PERMITTED));
            } else {
                body["do"] = json!([set(), body["do"][0]]);
                besides.push(set_is_needed());
            }
            (txn(group, &body), besides)
        }
        Within::Message => {
            body["op"] = "send".into();
            body["group"] = group.as_str().into();
            (txn("sender", &json!({ "do": [body] })), besides)
        }
        Within::Partition => {
            body["number"] = 1.into();
            besides.push(target.needs(Verb::Write, Area::Map, operator));
            (Request::post(format!("/v1/keyed/{group}/commits")).body(body.to_string()), besides)
        }
    }
}

/// Every operation.
pub(super) fn operations(target: &Target, within: Within, session: &str) -> Vec<Case> {
    let Target { thing, group, .. } = target;
    let on = |op: &str, more: JsonValue| {
        let mut operation = json!({ "op": op, "name": thing });
        operation.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        operation
    };
    let held = [
        txn(group, &json!({ "do": [on("record.put", json!({ "type": "task", "fields": {} }))] })),
        Request::post("/v1/claims").query("group", group).body(json!({ "name": thing, "worker": "v" }).to_string()),
    ];
    let event = json!({ "eventType": "Progress", "idempotencyKey": "k", "emittedAt": "2026-02-11T10:00:00Z" });
    let sent = json!({ "op": "send", "group": "free", "do": [{ "op": "cell.init", "name": thing, "value": 1 }] });
    let of_attempt = json!({ "attempt": 1, "fields": { "f": 1 } });
    let mut all: Vec<(&str, JsonValue, Area, &[Verb])> = vec![
        ("cell.set", on("cell.set", json!({ "value": 1 })), Area::Cell, &[Verb::Write]),
        ("cell.init", on("cell.init", json!({ "value": 1 })), Area::Cell, &[Verb::Cas]),
        ("cell.delete", on("cell.delete", json!({})), Area::Cell, &[Verb::Write]),
        ("record.put", on("record.put", json!({ "fields": {} })), Area::Record, &[Verb::Write]),
        ("record.patch", on("record.patch", json!({ "set": { "f": 1 } })), Area::Record, &[Verb::Write]),
        (
            "record.patch",
            on("record.patch", json!({ "set": { "f": 1 }, "expect": { "f": null } })),
            Area::Record,
            &[Verb::Cas, Verb::Read],
        ),
        ("record.patch", on("record.patch", json!({ "incr": { "f": 1 } })), Area::Record, &[Verb::Write, Verb::Read]),
        ("record.incr", on("record.incr", json!({ "field": "f" })), Area::Record, &[Verb::Write, Verb::Read]),
        ("record.step", on("record.step", of_attempt.clone()), Area::Record, &[Verb::Claim]),
        ("record.release", on("record.release", json!({ "attempt": 1 })), Area::Record, &[Verb::Claim]),
        ("record.complete", on("record.complete", json!({ "attempt": 1 })), Area::Record, &[Verb::Claim]),
        ("record.fail", on("record.fail", json!({ "attempt": 1, "error": "e" })), Area::Record, &[Verb::Claim]),
        ("record.delete", on("record.delete", json!({})), Area::Record, &[Verb::Write]),
        ("run.append", json!({ "op": "run.append", "run": thing, "event": event }), Area::Run, &[Verb::Append]),
    ];
    for (name, _, more) in keyed::operations() {
        all.push((name, on(name, more), Area::Map, &[Verb::Write]));
    }
    let mut cases = Vec::new();
    for (name, operation, area, verbs) in all {
        let (request, mut needed) = commit(target, within, "do", operation);
        needed.extend(verbs.iter().map(|verb| target.needs(*verb, area, thing)));
        let case = Case::new(format!("{name} {within:?}"), request, For::Granted(needed)).let_in();
        let is_held = ["step", "release", "complete", "fail"].iter().any(|verb| name == format!("record.{verb}"));
        cases.push(if is_held { case.after(&held.iter().collect::<Vec<_>>()) } else { case });
    }
    let publish = json!({ "op": "publish", "topic": thing, "payload": "p" });
    let push = json!({ "op": "push", "session": session, "payload": "p" });
    for (name, operation, needs) in [
        // What is sent is no thing of the group.
        ("publish", publish, Needed::of(Verb::Write, Area::Message, thing.as_str())),
        ("push", push, Needed::of(Verb::Write, Area::Session, "")),
        ("send", sent, Needed::of(Verb::Cas, Area::Cell, thing.as_str())),
    ] {
        let (request, mut needed) = commit(target, within, "do", operation);
        needed.push(needs);
        // A message may not send another.
        cases.push(Case::new(format!("{name} {within:?}"), request, For::Granted(needed)).let_in());
    }
    cases
}

/// Every condition, and the fence.
pub(super) fn guards(target: &Target, within: Within) -> Vec<Case> {
    let Target { thing, group, .. } = target;
    let mut all: Vec<(&str, JsonValue, Area)> = vec![
        ("cell", json!({ "cell": thing, "absent": true }), Area::Cell),
        ("cells", json!({ "cells": { "from": thing, "before": after(thing) }, "unchanged_since": 1 }), Area::Cell),
        ("record", json!({ "record": thing, "absent": true }), Area::Record),
        ("run", json!({ "run": thing, "last": 0 }), Area::Run),
    ];
    all.extend(keyed::guards(thing).into_iter().map(|(about, guard)| (about, guard, Area::Map)));
    let mut cases = Vec::new();
    for (about, guard, area) in all {
        let (request, mut needed) = commit(target, within, "if", guard);
        needed.push(target.needs(Verb::Read, area, thing));
        cases.push(Case::new(format!("if {about} {within:?}"), request, For::Granted(needed)).let_in());
    }
    if matches!(within, Within::Alone | Within::Message) {
        let set = json!([{ "op": "cell.set", "name": PERMITTED, "value": 1 }]);
        let mut body = json!({ "fence": { "record": thing, "attempt": 1 }, "do": set });
        let mut needed =
            vec![target.needs(Verb::Write, Area::Cell, PERMITTED), target.needs(Verb::Claim, Area::Record, thing)];
        let fenced = |body: &JsonValue| match within {
            Within::Message => {
                let mut message = body.clone();
                message["op"] = "send".into();
                message["group"] = group.as_str().into();
                txn("sender", &json!({ "do": [message] }))
            }
            _ => txn(group, body),
        };
        cases.push(Case::new(format!("fence {within:?}"), fenced(&body), For::Granted(needed.clone())).let_in());
        body["force"] = true.into();
        let forced: Vec<_> = needed.iter().map(|needed| Needed { verb: Verb::Force, ..needed.clone() }).collect();
        needed.extend(forced);
        cases.push(Case::new(format!("force {within:?}"), fenced(&body), For::Granted(needed)).let_in());
    }
    cases
}

/// The first name behind all that begin with this one.
fn after(prefix: &str) -> String {
    let last = prefix.chars().last().expect("a name");
    let next = char::from_u32(u32::from(last) + 1).expect("a letter");
    format!("{}{next}", &prefix[..prefix.len() - last.len_utf8()])
}
