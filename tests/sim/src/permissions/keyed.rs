//! Requests for maps and for partitions of operators.

use contract::access::{Area, Verb};
use serde_json::{Value as JsonValue, json};
use testkit::http::Request;

use super::needed::{Case, For, Naming, Needed, Target};

pub(super) fn maps(target: &Target) -> Vec<Case> {
    let Target { thing, .. } = target;
    let needs = |verb| target.needs(verb, Area::Map, thing);
    let ask = |method, below: &str, body: JsonValue| {
        let request = target.ask(method, format!("/v1/maps/{thing}{below}"));
        if body.is_null() { request } else { request.body(body.to_string()) }
    };
    let read = |below: &str| ask("GET", below, JsonValue::Null);
    let put = ask("PUT", "/keys/k", json!(1)).query("version", 1);
    let update = json!({ "op": "put", "key": "k", "value": 1, "version": 1 });
    let delete_key = ask("DELETE", "/keys/k", JsonValue::Null).query("version", 2);
    let listed = For::Granted(vec![needs(Verb::List), needs(Verb::Read)]);
    vec![
        Case::new("maps.list", target.ask("GET", "/v1/maps").query("prefix", thing), listed).after(&[&put]),
        Case::granted("maps.get", read(""), needs(Verb::Read)).after(&[&put]),
        Case::granted("maps.create", ask("PUT", "", json!({})), needs(Verb::Write)),
        Case::granted("maps.delete", ask("DELETE", "", JsonValue::Null), needs(Verb::Write)).after(&[&put]),
        Case::granted("maps.update", ask("POST", "/updates", json!({ "updates": [update] })), needs(Verb::Write)),
        Case::granted(
            "maps.commit",
            ask("POST", "/commits", json!({ "number": 1, "positions": { "i": 1 } })),
            needs(Verb::Write),
        ),
        Case::granted("maps.seal", ask("POST", "/seal", json!({ "version": 1 })), needs(Verb::Write)),
        Case::granted("maps.scan", read("/keys"), needs(Verb::Read)).after(&[&put]),
        Case::granted("maps.get_key", read("/keys/k"), needs(Verb::Read)).after(&[&put]),
        Case::granted("maps.get_key", ask("HEAD", "/keys/k", JsonValue::Null), needs(Verb::Read)).after(&[&put]),
        Case::granted("maps.put_key", put.clone(), needs(Verb::Write)),
        Case::granted("maps.delete_key", delete_key, needs(Verb::Write)).after(&[&put]),
        Case::granted("maps.positions", read("/positions"), needs(Verb::Read)).after(&[&put]),
    ]
}

/// An operator's partitions are groups: they are granted by the name of the operator, or of the partition.
pub(super) fn operators(target: &Target) -> Vec<Case> {
    let Target { operator, group, .. } = target;
    let prefix = if target.naming == Naming::ByGroup { group } else { operator };
    let needs = |verb| Needed::of(verb, Area::Map, prefix.as_str());
    let ask = |method, below: &str, body: JsonValue| {
        let request = Request::new(method, format!("/v1/keyed/{group}{below}"));
        if body.is_null() { request } else { request.body(body.to_string()) }
    };
    let read = |below: &str| ask("GET", below, JsonValue::Null);
    let commit = ask(
        "POST",
        "/commits",
        json!({ "number": 1, "positions": { "i": 1 }, "updates": [{ "op": "add", "key": "k", "value": 1 }] }),
    );
    // Nobody owns the partition.
    let made = commit.clone().header("statehouse-force", "true");
    let checkpoint = ask("POST", "/checkpoints", json!({ "wait": "30s" }));
    let restore = ask("POST", "/restore", json!({ "worker": "w", "wait": "30s" })).header("statehouse-force", "true");
    let mut cases = vec![
        Case::granted("keyed.get", read(""), needs(Verb::Read)).after(&[&made]),
        Case::granted("keyed.acquire", ask("POST", "/acquire", json!({ "worker": "w" })), needs(Verb::Claim)),
        Case::granted("keyed.commit", commit, needs(Verb::Write)).let_in(),
        Case::granted("keyed.checkpoints", read("/checkpoints"), needs(Verb::Read)).after(&[&made]),
        Case::granted("keyed.checkpoint", checkpoint.clone(), needs(Verb::Snapshot)).after(&[&made]).let_in(),
        Case::new("keyed.restore", restore, For::Granted(vec![needs(Verb::Restore), needs(Verb::Force)]))
            .after(&[&made, &checkpoint.header("statehouse-force", "true")]),
        Case::granted("keyed.scan", read("/keys"), needs(Verb::Read)).after(&[&made]),
        Case::granted("keyed.get_key", read("/keys/k"), needs(Verb::Read)).after(&[&made]),
        Case::granted("keyed.positions", read("/positions"), needs(Verb::Read)).after(&[&made]),
    ];
    if target.naming == Naming::Alone {
        let list = Request::get("/v1/keyed").query("prefix", operator);
        let partitions = Request::get(format!("/v1/keyed/{operator}"));
        let of_partitions = Needed::of(Verb::List, Area::Map, format!("{operator}/"));
        cases.push(Case::granted("keyed.list", list, needs(Verb::List)).after(&[&made]));
        cases.push(Case::granted("keyed.partitions", partitions, of_partitions).after(&[&made]));
    }
    cases
}

/// The operations of a transaction on a map, besides their names, and which of them makes one possible.
pub(super) fn operations() -> Vec<(&'static str, Option<&'static str>, JsonValue)> {
    let updates = json!([{ "op": "put", "key": "k", "value": 1, "version": 1 }]);
    vec![
        ("map.update", None, json!({ "updates": updates })),
        ("map.commit", None, json!({ "number": 1, "updates": [{ "op": "add", "key": "k", "value": 1 }] })),
        ("map.seal", None, json!({ "version": 1 })),
        ("map.create", None, json!({ "policy": "ordered" })),
        ("map.delete", Some("map.create"), json!({})),
    ]
}

/// The conditions on a map.
pub(super) fn guards(map: &str) -> Vec<(&'static str, JsonValue)> {
    vec![
        ("key", json!({ "key": { "map": map, "key": "k" }, "absent": true })),
        ("keys", json!({ "keys": { "map": map, "from": "k" }, "unchanged_since": 1 })),
        ("input", json!({ "input": { "map": map, "input": "i" }, "absent": true })),
    ]
}
