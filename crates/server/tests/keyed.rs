//! Keyed state over HTTP: keys of any bytes, versions, commits with numbers, owners of partitions, and what is refused by name.

mod client;
mod running;

use client::{Answer, Served, served};
use serde_json::{Value as JsonValue, json};

/// The answer of a request that has to succeed.
fn done(answer: Answer) -> JsonValue {
    assert!((200..300).contains(&answer.status), "{answer:?}");
    answer.body
}

/// Status and code of a refusal, and the member that it names.
fn refused(answer: &Answer) -> (u16, &str, &str) {
    let text = |name: &str| answer.body[name].as_str().unwrap_or_default();
    (answer.status, text("code"), text("member"))
}

fn commit(served: &Served, token: &str, body: &JsonValue) -> Answer {
    served.send("POST", "/v1/keyed/words/3/commits", &[("statehouse-owner", token)], &body.to_string())
}

fn acquire(served: &Served, headers: &[(&str, &str)], worker: &str) -> JsonValue {
    let body = json!({ "worker": worker }).to_string();
    done(served.send("POST", "/v1/keyed/words/3/acquire", headers, &body))
}

#[test]
fn a_key_is_put_only_with_a_newer_version() {
    let served = served();
    let put = |version: &str, value: &str| {
        done(served.put(&format!("/v1/maps/prices/keys/apple?version={version}"), value))["outcome"].clone()
    };
    assert_eq!(put("7", "30"), "applied");
    assert_eq!(put("7", "30"), "duplicate");
    assert_eq!(put("7", "31"), "version_conflict");
    let stale = done(served.put("/v1/maps/prices/keys/apple?version=6", "29"));
    assert_eq!((&stale["outcome"], &stale["current"]), (&json!("stale"), &json!(7)));
    assert_eq!(put("1:0", "{\"eur\": 1.50}"), "applied", "an epoch comes after rounds without one");
    let found = done(served.get("/v1/maps/prices/keys/apple"));
    assert_eq!((&found["key"], &found["version"]), (&json!("apple"), &json!("1:0")));
    let deleted = done(served.send("DELETE", "/v1/maps/prices/keys/apple?version=1:1", &[], ""));
    assert_eq!(deleted["outcome"], "applied");
    assert_eq!(refused(&served.get("/v1/maps/prices/keys/apple")), (404, "SH-1031", ""));
    assert_eq!(put("1:0", "1"), "stale", "the version of a deletion is remembered");
    assert_eq!(served.send("HEAD", "/v1/maps/prices/keys/apple", &[], "").status, 404);
}

#[test]
fn a_key_is_any_bytes() {
    let served = served();
    let keys: [(&str, JsonValue); 7] = [
        ("a/b", json!("a/b")),
        ("a%2Fc", json!("a/c")),
        ("%22quoted%22", json!("\"quoted\"")),
        ("%00", json!("\u{0}")),
        ("%FF%01", json!({ "$b64": "/wE=" })),
        ("h%C3%A9", json!("h\u{e9}")),
        ("a%0Ab", json!("a\nb")),
    ];
    for (path, shown) in &keys {
        done(served.put(&format!("/v1/maps/bytes/keys/{path}?version=1"), "1"));
        assert_eq!(&done(served.get(&format!("/v1/maps/bytes/keys/{path}")))["key"], shown);
        let update = json!({ "updates": [{ "op": "put", "key": shown, "value": 1, "version": 1 }] });
        let again = done(served.post("/v1/maps/bytes/updates", &update.to_string()));
        assert_eq!(again["not_applied"][0]["outcome"], "duplicate", "{path} is the key {shown}");
    }
    let all = done(served.get("/v1/maps/bytes/keys?limit=1000"))["keys"].as_array().expect("keys").len();
    assert_eq!(all, keys.len());
    let only = |query: &str| {
        let page = done(served.get(&format!("/v1/maps/bytes/keys?{query}")));
        page["keys"].as_array().expect("keys").iter().map(|row| row["key"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(only("prefix=a/"), [json!("a/b"), json!("a/c")]);
    assert_eq!(only("from=%7B%22$b64%22:%22/w==%22%7D"), [json!({ "$b64": "/wE=" })]);
    // Pages go on behind the last key, whatever bytes it has.
    let (mut seen, mut cursor) = (0, String::new());
    loop {
        let page = done(served.get(&format!("/v1/maps/bytes/keys?limit=1{cursor}")));
        seen += page["keys"].as_array().expect("keys").len();
        match page["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, keys.len());
}

#[test]
fn a_zombie_is_refused_and_a_commit_counts_once() {
    let served = served();
    let owned = acquire(&served, &[], "w1");
    let token = owned["token"].as_str().expect("a token");
    assert_eq!((&owned["group"], &owned["next"]), (&json!("words/3"), &json!(1)));
    let first = json!({
        "number": 1,
        "updates": [
            { "op": "add", "key": "hello", "value": 2 },
            { "op": "put", "key": "last", "value": { "at": 7 }, "version": 7 },
        ],
        "positions": { "topic-a": 7, "topic-b": 4 },
        "seal": 3,
        "do": [{ "op": "cell.set", "name": "report", "value": 1 }],
    });
    let answer = done(commit(&served, token, &first));
    assert_eq!((&answer["updates"], &answer["applied"], &answer["number"]), (&json!(2), &json!(2), &json!(1)));
    assert_eq!(answer["done"], json!([{ "version": 1 }]));
    assert_eq!(done(commit(&served, token, &first)), answer, "sent again, it gets its first answer");
    let (listed, otherwise) = (r#"{"topic-a":7,"topic-b":4}"#, r#"{"topic-b":4,"topic-a":7}"#);
    let turned = first.to_string().replace(listed, otherwise);
    assert_ne!(turned, first.to_string());
    let headers = [("statehouse-owner", token)];
    let again = served.send("POST", "/v1/keyed/words/3/commits", &headers, &turned);
    assert_eq!(done(again), answer, "positions have no order");
    let mut other = first.clone();
    other["positions"] = json!({ "topic-a": 8, "topic-b": 4 });
    assert_eq!(refused(&commit(&served, token, &other)), (422, "SH-8005", ""));
    let out_of_order = commit(&served, token, &json!({ "number": 3 }));
    assert_eq!((refused(&out_of_order), &out_of_order.body["next"]), ((409, "SH-8006", ""), &json!(2)));
    let back = json!({ "number": 2, "positions": { "topic-a": 6 } });
    assert_eq!(refused(&commit(&served, token, &back)), (409, "SH-8007", ""));
    // Somebody takes over.
    let held = served.send("POST", "/v1/keyed/words/3/acquire", &[], r#"{"worker":"w2"}"#);
    assert_eq!((refused(&held), &held.body["group"]), ((409, "SH-1021", ""), &json!("words/3")));
    let next = acquire(&served, &[("statehouse-force", "true")], "w2");
    assert_eq!((&next["next"], &next["seal"]), (&json!(2), &json!(3)));
    assert!(next["epoch"].as_u64() > owned["epoch"].as_u64());
    let second = json!({ "number": 2, "updates": [{ "op": "add", "key": "hello", "value": 1 }] });
    let zombie = commit(&served, token, &second);
    assert_eq!((refused(&zombie), &zombie.body["group"]), ((409, "SH-4002", ""), &json!("words/3")));
    for refusal in [&held, &zombie] {
        let said = refusal.body.to_string();
        assert!(said.contains("group \\\"words/3\\\"") && !said.contains("_statehouse"), "{said}");
    }
    let headers = [("statehouse-owner", token)];
    let of_thing = served.send("PUT", "/v1/cells/c?group=words/3", &headers, "1");
    assert_eq!((refused(&of_thing), &of_thing.body["group"]), ((409, "SH-4002", ""), &json!("words/3")));
    assert_eq!(refused(&served.post("/v1/keyed/words/3/commits", &second.to_string())), (409, "SH-4003", ""));
    let new_token = next["token"].as_str().expect("a token");
    assert_eq!(done(commit(&served, new_token, &first)), answer, "the next owner may not know that it arrived");
    done(commit(&served, new_token, &second));
    assert_eq!(done(served.get("/v1/keyed/words/3/keys/hello"))["value"], 3);
    let positions = done(served.get("/v1/keyed/words/3/positions"));
    assert_eq!(
        (&positions["positions"][0]["input"], &positions["positions"][0]["position"]),
        (&json!("topic-a"), &json!(7))
    );
    let shown = done(served.get("/v1/keyed/words/3"));
    assert_eq!((&shown["holder"]["worker"], &shown["map"]["last_number"]), (&json!("w2"), &json!(2)));
    assert_eq!(done(served.get("/v1/keyed"))["operators"], json!(["words"]));
    assert_eq!(done(served.get("/v1/keyed/words"))["partitions"][0]["partition"], 3);
    // Its token says nothing about another partition, which is guarded by now, too.
    let elsewhere =
        served.send("POST", "/v1/keyed/words/4/commits", &[("statehouse-owner", new_token)], r#"{"number":1}"#);
    assert_eq!(refused(&elsewhere), (400, "SH-1030", "Statehouse-Owner"));
    assert_eq!(refused(&served.post("/v1/keyed/words/4/commits", r#"{"number":1}"#)), (409, "SH-4003", ""));
    // The map of a partition is reached in its group, too.
    let updates = r#"{"updates":[{"op":"delete","key":"last","version":9}]}"#;
    assert_eq!(refused(&served.post("/v1/maps/words/updates?group=words/3", updates)), (409, "SH-4003", ""));
    let shown = [("statehouse-owner", new_token)];
    done(served.send("POST", "/v1/maps/words/updates?group=words/3", &shown, updates));
}

#[test]
fn a_partition_that_nobody_has_acquired_is_written_by_nobody() {
    let served = served();
    let commits = "/v1/keyed/words/3/commits";
    let unguarded = served.post(commits, r#"{"number":1}"#);
    assert_eq!(refused(&unguarded), (409, "SH-4003", ""));
    let (what, name) = (&unguarded.body["what"], &unguarded.body["name"]);
    assert_eq!((what, name, &unguarded.body["holder"]), (&json!("partition"), &json!("words/3"), &json!(null)));
    assert_eq!(done(served.get("/v1/keyed/words/3"))["map"], json!(null), "nothing was changed");
    // Owned as a group, it has no guard either.
    let owned = done(served.post("/v1/groups/words%2F3/own", r#"{"worker":"w1","lease":"10m"}"#));
    let held = served.post(commits, r#"{"number":1}"#);
    assert_eq!((refused(&held), &held.body["holder"]), ((409, "SH-4003", ""), &json!("w1")));
    assert!(held.body["until"].as_u64() > Some(1_700_000_000_000), "{held:?}");
    done(commit(&served, owned["token"].as_str().expect("a token"), &json!({ "number": 1 })));
    done(served.send("POST", commits, &[("statehouse-force", "true")], r#"{"number":2}"#));
}

#[test]
fn an_acquisition_in_a_session_is_one_request() {
    let served = served();
    let session = done(served.post("/v1/sessions", "{}"));
    let (id, secret) = (session["session"].as_str().expect("an id"), session["secret"].as_str().expect("a secret"));
    let headers = [("statehouse-session", id), ("statehouse-session-secret", secret), ("statehouse-request", "1")];
    let first = served.send("POST", "/v1/keyed/words/0/acquire", &headers, r#"{"worker":"w1"}"#);
    let again = served.send("POST", "/v1/keyed/words/0/acquire", &headers, r#"{"worker":"w1"}"#);
    assert_eq!(again.header("statehouse-replayed"), Some("true"));
    let first = done(first);
    assert_eq!(first, done(again));
    // The number of the next commit is that of now.
    let token = first["token"].as_str().expect("a token");
    done(served.send("POST", "/v1/keyed/words/0/commits", &[("statehouse-owner", token)], r#"{"number":1}"#));
    let later = done(served.send("POST", "/v1/keyed/words/0/acquire", &headers, r#"{"worker":"w1"}"#));
    assert_eq!((&later["token"], &later["next"]), (&first["token"], &json!(2)));
}

#[test]
fn a_map_that_does_not_exist_is_no_empty_page() {
    let served = served();
    for rows in ["keys", "positions"] {
        let missing = served.get(&format!("/v1/maps/words/{rows}?group=words/3"));
        assert_eq!(refused(&missing), (404, "SH-8001", ""), "{rows}");
        assert_eq!((&missing.body["map"], &missing.body["group"]), (&json!("words"), &json!("words/3")));
        assert_eq!(missing.body["detail"], "there is no map \"words\" in group \"words/3\"");
        let own = served.get(&format!("/v1/maps/words/{rows}"));
        assert_eq!((refused(&own), &own.body["group"]), ((404, "SH-8001", ""), &json!(null)));
    }
    // A partition that was acquired may hold nothing yet.
    acquire(&served, &[], "w1");
    for rows in ["keys", "positions"] {
        assert_eq!(done(served.get(&format!("/v1/keyed/words/3/{rows}")))[rows], json!([]));
    }
    done(served.put("/v1/maps/empty", "{}"));
    for rows in ["keys", "positions"] {
        assert_eq!(done(served.get(&format!("/v1/maps/empty/{rows}")))[rows], json!([]));
    }
    // A key that is not there says where it was looked for.
    let key = served.get("/v1/keyed/words/3/keys/a%2Fb");
    let members = ["map", "group", "key"].map(|member| key.body[member].as_str().unwrap_or_default());
    assert_eq!((refused(&key), members), ((404, "SH-1031", ""), ["words", "words/3", "a/b"]));
    let detail = key.body["detail"].as_str().expect("a detail");
    assert!(detail.starts_with("map \"words\" in group \"words/3\" has no key \"a/b\"; list its keys"), "{detail}");
}

#[test]
fn maps_are_part_of_transactions_and_of_messages() {
    let served = served();
    let txn = |body: JsonValue| served.post("/v1/groups/shop/txn", &body.to_string());
    let put = |key: &str| json!({ "op": "put", "key": key, "value": 1, "version": 1 });
    let answer = done(txn(json!({
        "if": [
            { "key": { "map": "prices", "key": "apple" }, "absent": true },
            { "keys": { "map": "prices", "from": "a", "before": { "$b64": "/w==" } }, "unchanged_since": 0 },
            { "input": { "map": "prices", "input": "orders" }, "absent": true },
        ],
        "do": [
            { "op": "map.create", "name": "prices" },
            { "op": "map.commit", "name": "prices", "number": 1, "updates": [put("apple")], "positions": { "orders": 7 } },
            { "op": "map.update", "name": "other", "updates": [put("a"), put("a")] },
            { "op": "map.seal", "name": "other", "version": "1:0" },
            { "op": "map.seal", "name": "other", "version": 9 },
            { "op": "map.delete", "name": "nothing" },
            { "op": "send", "group": "far", "do": [{ "op": "map.update", "name": "far", "updates": [put("apple")] }] },
        ],
    })));
    let commit = answer["commit"].as_u64().expect("a commit");
    let duplicate = json!({ "at": 1, "outcome": "duplicate" });
    assert_eq!(
        answer["done"],
        json!([
            { "version": commit },
            { "updates": 1, "applied": 1, "not_applied": [] },
            { "updates": 2, "applied": 1, "not_applied": [duplicate] },
            { "version": commit },
            { "version": commit, "existing": true },
            { "nothing": true },
            { "sent": true },
        ])
    );
    let guards = [
        (json!({ "key": { "map": "prices", "key": "apple" }, "version": 2 }), "SH-8008"),
        (json!({ "key": { "map": "prices", "key": "apple" }, "version_below": 1 }), "SH-8008"),
        (json!({ "key": { "map": "prices", "key": "apple" }, "absent": true }), "SH-8008"),
        (json!({ "key": { "map": "prices", "key": "pear" }, "exists": true }), "SH-8008"),
        (json!({ "key": { "map": "prices", "key": "apple" }, "unchanged_since": 0 }), "SH-8008"),
        (json!({ "keys": { "map": "prices", "from": "a" }, "unchanged_since": 0 }), "SH-8008"),
        (json!({ "input": { "map": "prices", "input": "orders" }, "position": 8 }), "SH-8009"),
        (json!({ "input": { "map": "prices", "input": "orders" }, "absent": true }), "SH-8009"),
    ];
    for (guard, code) in guards {
        let answer = txn(json!({ "if": [guard], "do": [{ "op": "cell.set", "name": "c", "value": 1 }] }));
        assert_eq!(refused(&answer), (409, code, ""), "{guard}");
    }
    let has_arrived = || served.get("/v1/maps/far/keys/apple?group=far").status == 200;
    let arrived = (0..3_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        has_arrived()
    });
    assert!(arrived, "the message has not arrived");
}

#[test]
fn an_ordered_map_waits_for_the_seal() {
    let served = served();
    let create = |policy: &str| served.put("/v1/maps/balances", &json!({ "policy": policy }).to_string());
    assert_eq!(create("ordered").status, 201);
    assert_eq!(done(create("ordered"))["created"], false);
    assert_eq!(refused(&create("monotonic")), (409, "SH-8011", ""));
    let updates = json!({ "updates": [
        { "op": "max", "key": "ann", "value": 5, "version": 2 },
        { "op": "add", "key": "ann", "value": 3, "version": 1 },
    ]});
    done(served.post("/v1/maps/balances/updates", &updates.to_string()));
    assert_eq!(refused(&served.get("/v1/maps/balances/keys/ann")), (404, "SH-1031", ""));
    assert_eq!(done(served.get("/v1/maps/balances"))["waiting"], 2);
    assert_eq!(done(served.post("/v1/maps/balances/seal", r#"{"version":2}"#))["raised"], true);
    assert_eq!(done(served.post("/v1/maps/balances/seal", r#"{"version":1}"#))["raised"], false);
    assert_eq!(done(served.get("/v1/maps/balances/keys/ann"))["value"], 5);
    let unversioned = r#"{"updates":[{"op":"add","key":"ann","value":3}]}"#;
    assert_eq!(refused(&served.post("/v1/maps/balances/updates", unversioned)), (422, "SH-8010", ""));
    assert_eq!(refused(&served.post("/v1/maps/prices/updates", unversioned)), (422, "SH-8004", ""));
    done(served.send("DELETE", "/v1/maps/balances", &[], ""));
    assert_eq!(refused(&served.send("DELETE", "/v1/maps/balances", &[], "")), (404, "SH-8001", ""));
    assert_eq!(refused(&served.get("/v1/maps/balances")), (404, "SH-8001", ""));
}

#[test]
fn what_cannot_be_meant_is_refused_by_name() {
    let served = served();
    let update = |update: &str| served.post("/v1/maps/m/updates", &format!("{{\"updates\":[{update}]}}"));
    let cases = [
        (r#"{"op":"put","key":"a","value":1}"#, "updates[0].version"),
        (r#"{"op":"put","key":"a","value":1,"version":18446744073709551616}"#, "updates[0].version"),
        (r#"{"op":"put","key":"a","value":1,"version":"1:2:3"}"#, "updates[0].version"),
        (r#"{"op":"put","kye":"a","value":1,"version":1}"#, "updates[0].kye"),
        (r#"{"op":"put","key":1,"value":1,"version":1}"#, "updates[0].key"),
        (r#"{"op":"put","key":{"$b64":"?"},"value":1,"version":1}"#, "updates[0].key.$b64"),
        (r#"{"op":"put","key":"a","key":"b","value":1,"version":1}"#, "updates[0].key"),
        (r#"{"op":"puts","key":"a"}"#, "updates[0].op"),
        (r#"{"op":"add","key":"a","value":1.5}"#, "updates[0].value"),
        (r#"{"op":"add","key":"a","value":9223372036854775808}"#, "updates[0].value"),
        (r#"{"op":"remove","key":"a","version":1}"#, "updates[0].version"),
    ];
    for (body, member) in cases {
        assert_eq!(refused(&update(body)), (400, "SH-1030", member), "{body}");
    }
    let not_json = update(r#"{"op":"put","key":"a","value":NaN,"version":1}"#);
    assert_eq!(refused(&not_json).1, "SH-1030");
    assert_eq!(refused(&update(r#"{"op":"put","key":"","value":1,"version":1}"#)), (400, "SH-1001", ""));
    assert_eq!(refused(&served.put("/v1/maps/m/keys/?version=1", "1")), (400, "SH-1001", ""));
    assert_eq!(refused(&served.put("/v1/maps/m/keys/a", "1")), (400, "SH-1030", "version"));
    assert_eq!(refused(&served.put("/v1/maps/m/keys/a?version=-1", "1")), (400, "SH-1030", "version"));
    assert_eq!(refused(&served.put("/v1/maps/m/keys/%F?version=1", "1")).1, "SH-1030");
    assert_eq!(refused(&served.put("/v1/maps/%FF/keys/a?version=1", "1")).1, "SH-1030");
    for partition in ["x", "-1", "01", "4294967296", "%FF", "+1"] {
        let answer = served.get(&format!("/v1/keyed/words/{partition}"));
        assert_eq!(refused(&answer), (400, "SH-1030", "partition"), "{partition}");
    }
    assert_eq!(served.get("/v1/keyed/words/4294967295").status, 200);
    assert_eq!(refused(&served.get("/v1/keyed/a%2Fb/0")), (400, "SH-1001", ""));
    let guard = |guard: &str| {
        let body = format!(r#"{{"if":[{guard}],"do":[{{"op":"cell.set","name":"c","value":1}}]}}"#);
        served.post("/v1/groups/g/txn", &body).status
    };
    for wrong in [
        r#"{"key":{"map":"m","key":"a"},"cell":"c","version":1}"#,
        r#"{"key":{"map":"m","key":"a"},"absent":true,"version":1}"#,
        r#"{"key":{"map":"m"},"version":1}"#,
        r#"{"input":{"map":"m","input":"i"},"position":1,"absent":true}"#,
        r#"{"input":{"map":"m","input":"i"},"version":1}"#,
        r#"{"keys":{"map":"m","from":"a"},"version":1}"#,
    ] {
        assert_eq!(guard(wrong), 400, "{wrong}");
    }
}

#[test]
fn ten_thousand_updates_are_taken_and_one_more_is_not() {
    let served = served();
    let updates = |count: usize| {
        let put = |number| json!({ "op": "put", "key": format!("k{number}"), "value": 1, "version": 1 });
        json!({ "updates": (0..count).map(put).collect::<Vec<_>>() }).to_string()
    };
    let many = served.post("/v1/maps/m/updates", &updates(10_001));
    assert_eq!((refused(&many), &many.body["limit"]), ((413, "SH-1002", ""), &json!("keyed_updates_max")));
    assert_eq!(done(served.post("/v1/maps/m/updates", &updates(10_000)))["applied"], 10_000);
    assert_eq!(done(served.get("/v1/maps/m"))["keys"], 10_000);
}

#[test]
fn a_commit_has_at_most_a_thousand_positions() {
    let served = served();
    let commit = |inputs: usize| {
        let positions: serde_json::Map<_, _> = (0..inputs).map(|input| (format!("i{input}"), json!(7))).collect();
        served.post("/v1/maps/m/commits", &json!({ "number": 1, "positions": positions }).to_string())
    };
    let many = commit(1_001);
    assert_eq!((refused(&many), &many.body["limit"]), ((413, "SH-1002", ""), &json!("keyed_positions_max")));
    done(commit(1_000));
    let mut seen = 0;
    let mut after = String::new();
    loop {
        let page = done(served.get(&format!("/v1/maps/m/positions?limit=300{after}")));
        seen += page["positions"].as_array().expect("positions").len();
        match page["next_after"].as_str() {
            Some(last) => after = format!("&after={last}"),
            None => break,
        }
    }
    assert_eq!(seen, 1_000);
}
