//! Transactions, records with conditions, and what a store is told once, through a real socket.

mod client;
mod running;

use std::sync::Arc;

use client::{served, served_with};
use serde_json::json;
use statehouse::Options;
use statehouse::publish::MemoryBroker;

#[test]
fn a_transaction_is_all_or_nothing() {
    let broker = MemoryBroker::default();
    let served = served_with(&Options::default().publish_to(Arc::new(broker)));
    let path = "/v1/groups/order-7/txn";
    served.put("/v1/records/charge?group=order-7", r#"{"type":"task","fields":{"eur":10}}"#);
    let claimed = served.post("/v1/claims", r#"{"name":"charge","worker":"w1"}"#);
    assert_eq!(claimed.status, 404, "a claim by name is in the group that it names: {claimed:?}");
    let claimed = served.post("/v1/claims?group=order-7", r#"{"name":"charge","worker":"w1"}"#);
    let token = format!("order-7#charge#1#h{:016x}", served.house.id());
    assert_eq!(claimed.body["claimed"][0]["token"], json!(token), "{claimed:?}");
    let opened = served.post("/v1/sessions", "").body;
    let (session, secret) = (opened["session"].clone(), opened["secret"].as_str().expect("a secret"));
    let body = |attempt: u64| {
        json!({
            "if": [{ "cell": "paid", "absent": true }, { "record": "charge", "state_in": ["claimed"] }],
            "fence": { "record": "charge", "attempt": attempt },
            "do": [
                { "op": "cell.set", "name": "paid", "value": true },
                { "op": "cell.init", "name": "seen", "value": 1 },
                { "op": "record.incr", "name": "totals", "field": "eur", "by": 10 },
                { "op": "record.patch", "name": "totals", "set": { "last": "charge" } },
                { "op": "record.complete", "name": "charge", "attempt": attempt, "fields": { "result": "ok" } },
                { "op": "run.append", "run": "history", "event": { "eventType": "Paid", "idempotencyKey": "k" } },
                { "op": "push", "session": session, "payload": { "paid": true } },
                { "op": "publish", "topic": "mails", "payload": "paid", "after": "10m" },
                { "op": "send", "group": "totals", "do": [{ "op": "record.incr", "name": "all", "field": "eur", "by": 10 }] },
            ],
        })
        .to_string()
    };
    let fenced = served.post(path, &body(2));
    assert_eq!((fenced.status, &fenced.body["code"]), (409, &json!("SH-4002")));
    assert_eq!(served.get("/v1/cells/paid?group=order-7").status, 404, "nothing was done");
    let done = served.post(path, &body(1));
    assert_eq!(done.status, 200, "{done:?}");
    assert_eq!(done.body["done"][2], json!({ "version": 1, "value": 10 }));
    assert_eq!(done.body["done"][5]["runSeq"], json!(1));
    assert_eq!(served.get("/v1/cells/paid?group=order-7").body["value"], json!(true));
    assert_eq!(served.get("/v1/records/charge?group=order-7").body["fields"]["state"], json!("completed"));
    let path_of_pushes = format!("/v1/sessions/{}/pushes?wait=5s", session.as_str().expect("a session"));
    let pushes = served.send("GET", &path_of_pushes, &[("statehouse-session-secret", secret)], "");
    assert_eq!(pushes.body["pushes"][0]["payload"], json!("{\"paid\":true}"));
    let again = served.post(path, &body(1));
    assert_eq!(again.status, 409, "{again:?}");
    let sent = |_| served.get("/v1/records/all?group=totals").body["fields"]["eur"] == json!(10);
    assert!((0..6_000).any(|n| sent(n) || {
        std::thread::sleep(std::time::Duration::from_millis(10));
        false
    }));
    for wrong in [
        r#"{"do":[]}"#,
        r#"{"do":[{"op":"cell.fly","name":"a"}]}"#,
        r#"{"do":[{"op":"cell.set","name":"a"}]}"#,
        r#"{"if":[{"cell":"a"}],"do":[{"op":"cell.delete","name":"a"}]}"#,
        r#"{"if":[{}],"do":[{"op":"cell.delete","name":"a"}]}"#,
    ] {
        assert_eq!(served.post(path, wrong).status, 400, "{wrong}");
    }
    let deep = (0..10).fold(
        json!({ "op": "cell.delete", "name": "a" }),
        |inner, _| json!({ "op": "send", "group": "g", "do": [inner] }),
    );
    assert_eq!(served.post(path, &json!({ "do": [deep] }).to_string()).status, 400);
    let two = served.send("POST", path, &[("idempotency-key", "k")], &body(1));
    assert_eq!((two.status, &two.body["code"]), (400, &json!("SH-1030")), "a key is never ignored");
}

#[test]
fn a_record_is_patched_in_one_commit_with_what_it_expects() {
    let served = served();
    let path = "/v1/records/order-7";
    let absent = [("if-none-match", "*")];
    assert_eq!(served.send("PUT", path, &absent, r#"{"fields":{"state":"new","n":1}}"#).status, 201);
    let taken = served.send("PUT", path, &absent, r#"{"fields":{}}"#);
    assert_eq!(
        (taken.status, &taken.body["code"], &taken.body["current_version"]),
        (412, &json!("SH-1017"), &json!(1))
    );
    let patch = |body: &str| served.send("PATCH", path, &[], body);
    let patched = patch(
        r#"{"expect":{"state":"new","gone":null},"set":{"state":"paid"},"unset":["x"],"incr":{"n":2,"m":5},"ttl":"1h"}"#,
    );
    assert_eq!((patched.status, &patched.body["values"]), (200, &json!({ "m": 5, "n": 3 })));
    let record = served.get(path).body;
    assert!(record["ttl_ms"].as_u64().is_some_and(|ms| ms > 3_500_000 && ms <= 3_600_000), "{record}");
    let refused = patch(r#"{"expect":{"state":"new"},"incr":{"n":1}}"#);
    assert_eq!((refused.status, &refused.body["code"]), (409, &json!("SH-1019")));
    assert_eq!((&refused.body["field"], &refused.body["current"]), (&json!("state"), &json!("paid")));
    assert_eq!(served.get(path).body["fields"]["n"], json!(3), "nothing was done");
    assert_eq!(patch("{}").status, 400);
    assert_eq!(patch(r#"{"incr":{"state":1}}"#).body["code"], json!("SH-1016"));
    let version = record["version"].to_string();
    let stale = [("if-match", "\"1\"")];
    assert_eq!(served.send("DELETE", path, &stale, "").status, 412);
    assert_eq!(served.send("DELETE", path, &[("if-match", &format!("\"{version}\""))], "").status, 200);
    served.put("/v1/cells/a", "1");
    assert_eq!(served.send("DELETE", "/v1/cells/a", &[("if-match", "\"7\"")], "").body["current_version"], json!(1));
    assert_eq!(served.send("DELETE", "/v1/cells/a", &[("if-match", "\"1\"")], "").status, 200);
}

#[test]
fn spaces_branches_and_types_are_declared_and_shown() {
    let served = served();
    assert_eq!(served.put("/v1/spaces/shop", "").status, 201);
    assert_eq!(served.put("/v1/spaces/shop", "").body["code"], json!("SH-1007"));
    assert_eq!(served.get("/v1/spaces").body["spaces"], json!(["default", "shop"]));
    assert_eq!(served.put("/v1/spaces/shop/retention", r#"{"versions":2,"age":"1h"}"#).status, 200);
    assert_eq!(served.get("/v1/spaces/shop/retention").body, json!({ "versions": 2, "age_ms": 3_600_000 }));
    assert_eq!(served.put("/v1/spaces/shop/retention", r#"{"versions":5}"#).status, 200);
    assert_eq!(served.get("/v1/spaces/shop/retention").body, json!({ "versions": 5, "age_ms": null }));
    assert_eq!(served.put("/v1/branches/draft?space=shop", "").status, 201);
    assert_eq!(served.get("/v1/branches?space=shop").body["branches"], json!(["main", "draft"]));
    assert_eq!(served.send("DELETE", "/v1/branches/draft?space=shop", &[], "").status, 200);
    assert_eq!(served.send("DELETE", "/v1/branches/main?space=shop", &[], "").body["code"], json!("SH-1008"));
    let mail = r#"{"name":"mail","lease":"5s","attempts_max":2,"backoff":{"first":"1s"},"indexes":{"to":"text"}}"#;
    let declared = served.put("/v1/types/mails.?space=shop", mail);
    assert_eq!((declared.status, &declared.body["lease_ms"]), (200, &json!(5_000)));
    let types = served.get("/v1/types?space=shop").body;
    let shown = types["types"].as_array().and_then(|types| types.iter().find(|one| one["name"] == json!("mail")));
    assert_eq!(
        shown.map(|shown| (&shown["prefixes"], &shown["backoff"]["first_ms"])),
        Some((&json!(["mails."]), &json!(1_000)))
    );
    let shown = shown.expect("the type").to_string();
    assert_eq!(served.put("/v1/types/mails.?space=shop", &shown).status, 200, "what is shown can be declared");
    let week = json!(7 * 24 * 3_600_000);
    for (said, ttl_ms, keeps) in [
        ("{}", &week, false),
        (r#"{"keep_finished":false}"#, &week, false),
        (r#"{"keep_finished":true}"#, &json!(null), true),
        (r#"{"keep_finished":true,"terminal_ttl_ms":null}"#, &json!(null), true),
        (r#"{"terminal_ttl":"1m"}"#, &json!(60_000), false),
    ] {
        let mut body: serde_json::Value = serde_json::from_str(said).expect("JSON");
        body["name"] = json!("kept");
        let shown = served.put("/v1/types/kept.", &body.to_string()).body;
        assert_eq!((&shown["terminal_ttl_ms"], &shown["keep_finished"]), (ttl_ms, &json!(keeps)), "{said}");
        assert_eq!(served.put("/v1/types/kept.", &shown.to_string()).body, shown, "what is shown can be declared");
    }
    let both = r#"{"name":"kept","keep_finished":true,"terminal_ttl":"1m"}"#;
    assert_eq!(served.put("/v1/types/kept.", both).status, 400);
    assert_eq!(served.put("/v1/types/x.", r#"{"name":"x","attempts_max":0}"#).body["code"], json!("SH-1018"));
    assert_eq!(served.put("/v1/types/x.", r#"{"name":"x","states":[{"name":"a","kind":"b"}]}"#).status, 400);
    served.put("/v1/records/mails.1?space=shop", r#"{"fields":{"to":"ann"}}"#);
    let counts = served.get("/v1/counts?prefix=mails.&space=shop");
    assert_eq!(counts.body["counts"], json!([{ "type": "mail", "state": "pending", "count": 1 }]));
    assert_eq!(served.get("/v1/limits").body["value_bytes_max"], json!(1 << 20));
}

#[test]
fn a_message_that_nobody_would_take_is_refused() {
    let served = served();
    let publish = json!({ "op": "publish", "topic": "mails", "payload": "paid" });
    let later = json!({ "op": "publish", "topic": "mails", "payload": "paid", "after": "10m" });
    let send = |inner: &serde_json::Value| json!({ "op": "send", "group": "h", "do": [inner] });
    let set = json!({ "op": "cell.set", "name": "a", "value": 1 });
    for wanted in [&publish, &later, &send(&publish), &send(&send(&publish))] {
        let body = json!({ "do": [set, wanted] }).to_string();
        let refused = served.post("/v1/groups/g/txn", &body);
        assert_eq!((refused.status, &refused.body["code"]), (400, &json!("SH-1018")), "{wanted} {refused:?}");
        assert_eq!(refused.body["what"], json!("a message to \"mails\""));
    }
    assert_eq!(served.get("/v1/cells/a?group=g").status, 404, "nothing was done");
    for member in ["rescued_to", "exhausted_to"] {
        let refused = served.put("/v1/types/jobs.", &json!({ "name": "job", member: "mails" }).to_string());
        assert_eq!((refused.status, &refused.body["code"]), (400, &json!("SH-1018")), "{member} {refused:?}");
    }
    assert_eq!(served.put("/v1/types/jobs.", r#"{"name":"job"}"#).status, 200);
}

#[test]
fn every_condition_is_reached_and_decides() {
    let served = served();
    let txn = |body: serde_json::Value| served.post("/v1/groups/g/txn", &body.to_string());
    let commit = |answer: &client::Answer| answer.body["commit"].as_u64().expect("a commit");
    let set = |name: &str| json!({ "do": [{ "op": "cell.set", "name": name, "value": 1 }] });
    let first = commit(&txn(set("c")));
    let second = commit(&txn(set("c")));
    served.put("/v1/records/r?group=g", r#"{"type":"task","fields":{"n":1}}"#);
    let put = commit(&txn(set("other")));
    assert_eq!(served.post("/v1/claims?group=g", r#"{"name":"r","worker":"w"}"#).status, 200);
    let append = |key: &str| {
        let event = json!({ "eventType": "Said", "idempotencyKey": key, "eventData": {} });
        txn(json!({ "do": [{ "op": "run.append", "run": "log", "event": event }] }))
    };
    assert_eq!((append("a").status, append("b").status), (200, 200));
    let now = commit(&txn(set("other")));
    // The guard, whether it holds, and the code if it does not.
    let table = [
        (json!({ "cell": "c", "version": 2 }), true, "SH-1003"),
        (json!({ "cell": "c", "version": 1 }), false, "SH-1003"),
        (json!({ "cell": "c", "version_below": 3 }), true, "SH-1003"),
        (json!({ "cell": "c", "version_below": 2 }), false, "SH-1003"),
        (json!({ "cell": "none", "version_below": 1 }), true, "SH-1003"),
        (json!({ "cell": "none", "absent": true }), true, "SH-1003"),
        (json!({ "cell": "c", "absent": true }), false, "SH-1003"),
        (json!({ "cell": "c", "exists": true }), true, "SH-1003"),
        (json!({ "cell": "none", "exists": true }), false, "SH-1003"),
        (json!({ "cell": "c", "unchanged_since": second }), true, "SH-1003"),
        (json!({ "cell": "c", "unchanged_since": first }), false, "SH-1003"),
        (json!({ "cell": "none", "unchanged_since": now }), true, "SH-1003"),
        (json!({ "cells": { "from": "a", "before": "d" }, "unchanged_since": second }), true, "SH-1003"),
        (json!({ "cells": { "from": "a", "before": "d" }, "unchanged_since": first }), false, "SH-1003"),
        (json!({ "cells": { "from": "a", "before": "c" }, "unchanged_since": first }), true, "SH-1003"),
        (json!({ "cells": { "from": "a" }, "unchanged_since": now }), true, "SH-1003"),
        (json!({ "cells": { "from": "a" }, "unchanged_since": second }), false, "SH-1003"),
        (json!({ "record": "r", "version": 2 }), true, "SH-1017"),
        (json!({ "record": "r", "version": 1 }), false, "SH-1017"),
        (json!({ "record": "none", "absent": true }), true, "SH-1017"),
        (json!({ "record": "r", "absent": true }), false, "SH-1017"),
        (json!({ "record": "r", "exists": true }), true, "SH-1017"),
        (json!({ "record": "none", "exists": true }), false, "SH-1017"),
        (json!({ "record": "r", "unchanged_since": now }), true, "SH-1017"),
        (json!({ "record": "r", "unchanged_since": put }), false, "SH-1017"),
        (json!({ "record": "r", "state_in": ["pending", "claimed"] }), true, "SH-1017"),
        (json!({ "record": "r", "state_in": ["pending"] }), false, "SH-1017"),
        (json!({ "record": "r", "attempt": 1 }), true, "SH-1017"),
        (json!({ "record": "r", "attempt": 2 }), false, "SH-1017"),
        (json!({ "record": "r", "field": "n", "is": 1 }), true, "SH-1019"),
        (json!({ "record": "r", "field": "n", "is": 2 }), false, "SH-1019"),
        (json!({ "record": "r", "field": "m", "is": null }), true, "SH-1019"),
        (json!({ "run": "log", "last": 2 }), true, "SH-3003"),
        (json!({ "run": "log", "last": 1 }), false, "SH-3003"),
        (json!({ "run": "log", "last": 0 }), false, "SH-3003"),
        (json!({ "run": "none", "last": 0 }), true, "SH-3003"),
        (json!({ "run": "none", "last": 1 }), false, "SH-3003"),
    ];
    // Each alone, and each before and after each other one.
    let pairs = table.iter().flat_map(|one| table.iter().map(move |other| vec![one, other]));
    for guards in table.iter().map(|one| vec![one]).chain(pairs) {
        let texts: Vec<_> = guards.iter().map(|(guard, ..)| guard).collect();
        let answer = txn(json!({ "if": texts, "do": [{ "op": "record.incr", "name": "done", "field": "n" }] }));
        let expected = match guards.iter().find(|(_, holds, _)| !holds) {
            None => (200, json!(null)),
            Some((_, _, code)) => (409, json!(code)),
        };
        assert_eq!((answer.status, answer.body["code"].clone()), expected, "{texts:?} {answer:?}");
    }
    assert_eq!(served.send("DELETE", "/v1/runs/log?group=g", &[], "").status, 200);
    for last in [0, 2] {
        let op = json!({ "op": "cell.set", "name": "c", "value": 1 });
        let gone = txn(json!({ "if": [{ "run": "log", "last": last }], "do": [op] }));
        assert_eq!((gone.status, &gone.body["code"]), (410, &json!("SH-3006")), "a deleted run is never as expected");
    }
}

#[test]
fn a_read_of_one_field_has_that_field_only() {
    let served = served();
    served.put("/v1/records/r", r#"{"type":"task","fields":{"a":1,"large":"large","a,b":2}}"#);
    for (field, expected) in [
        ("a", json!({ "a": 1 })),
        ("a%2Cb", json!({ "a,b": 2 })),
        ("state", json!({ "state": "pending" })),
        ("none", json!({})),
    ] {
        let read = served.get(&format!("/v1/records/r?field={field}"));
        assert_eq!((read.status, &read.body["fields"], &read.body["version"]), (200, &expected, &json!(1)), "{field}");
    }
    assert_eq!(served.get("/v1/records/none?field=a").status, 404);
    assert_eq!(served.get("/v1/records/r?fields=a").status, 400, "a typo is refused");
    let empty = served.get("/v1/records/r?field=");
    assert_eq!((empty.status, &empty.body["code"]), (400, &json!("SH-1001")), "no field is called that");
    let long = served.get(&format!("/v1/records/r?field={}", "f".repeat(257)));
    assert_eq!((long.status, &long.body["limit"]), (413, &json!("field_name_bytes_max")));
}
