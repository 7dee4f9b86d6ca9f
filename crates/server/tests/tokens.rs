//! Tokens of owners and of jobs mean one attempt in one branch of one history, through a real socket.

mod client;
mod running;

use client::{Answer, Served, served};
use serde_json::{Value as JsonValue, json};

fn said(answer: &Answer) -> (u16, &str, &str) {
    let text = |name: &str| answer.body[name].as_str().unwrap_or_default();
    (answer.status, text("code"), text("member"))
}

fn token(answer: &JsonValue) -> String {
    answer["token"].as_str().expect("a token").to_owned()
}

/// Deletes the branch, if it is there, and creates it.
fn renew(served: &Served, branch: &str) {
    served.send("DELETE", &format!("/v1/branches/{branch}"), &[], "");
    assert_eq!(served.put(&format!("/v1/branches/{branch}"), "").status, 201);
}

#[test]
fn the_token_of_an_owner_is_of_one_branch_and_not_of_a_later_one_of_its_name() {
    let served = served();
    served.put("/v1/guards/agents.", "{}");
    let own = || token(&served.post("/v1/groups/agents.7/own?branch=draft", "{}").body);
    let set = |token: &str| {
        served.send("PUT", "/v1/cells/a?group=agents.7&branch=draft", &[("statehouse-owner", token)], "1")
    };
    let send = |token: &str| {
        let send = json!({ "op": "send", "group": "agents.7", "owner": token, "do": [{ "op": "cell.set", "name": "a", "value": 2 }] });
        served.post("/v1/groups/free/txn?branch=draft", &json!({ "do": [send] }).to_string())
    };
    let extend = |token: &str| {
        let body = json!({ "token": token }).to_string();
        served.post("/v1/groups/agents.7/extend?branch=draft", &body)
    };
    renew(&served, "draft");
    let before = own();
    assert_eq!(set(&before).status, 201);
    renew(&served, "draft");
    let after = own();
    assert_eq!(before.split('#').nth(1), after.split('#').nth(1), "the same attempt");
    assert_eq!(said(&set(&before)), (400, "SH-1030", "Statehouse-Owner"));
    assert_eq!(said(&send(&before)), (400, "SH-1030", "owner"));
    assert_eq!(said(&extend(&before)), (400, "SH-1030", "token"));
    assert_eq!((set(&after).status, send(&after).status, extend(&after).status), (201, 200, 200));
}

#[test]
fn the_token_of_a_job_is_of_one_branch_of_one_history() {
    let served = served();
    let claim = |place: &str| {
        served.put(&format!("/v1/records/job{place}"), r#"{"type":"task","fields":{}}"#);
        let claimed = served.post(&format!("/v1/claims{place}"), r#"{"name":"job","worker":"w"}"#).body;
        token(&claimed["claimed"][0])
    };
    let ends = |place: &str, token: &str| {
        let body = |more: JsonValue| {
            let mut body = more;
            body["token"] = token.into();
            body.to_string()
        };
        let with = [
            ("step", json!({ "fields": { "n": 1 } })),
            ("extend", json!({})),
            ("fail", json!({ "error": "e" })),
            ("release", json!({})),
            ("complete", json!({})),
        ];
        with.map(|(verb, more)| served.post(&format!("/v1/attempts/{verb}{place}"), &body(more)))
    };
    renew(&served, "draft");
    let before = claim("?branch=draft");
    renew(&served, "draft");
    let after = claim("?branch=draft");
    let here = claim("");
    let history = format!("{:016x}", served.house.id());
    assert_eq!(here, format!("job#1#h{history}"));
    assert!(before.starts_with(&here) && after.starts_with(&here), "the same attempt");
    let other = here.replace(&history, "0123456789abcdef");
    for answer in ends("?branch=draft", &before).iter().chain(&ends("", &after)).chain(&ends("?branch=draft", &here)) {
        assert_eq!(said(answer), (400, "SH-1030", "token"));
    }
    for answer in ends("", &other) {
        assert_eq!(said(&answer), (412, "SH-1034", "token"));
        assert_eq!(answer.body["history"], json!(history));
    }
    for (place, token) in [("?branch=draft", &after), ("", &here)] {
        assert_eq!(ends(place, token)[0].status, 200);
    }
}

#[test]
fn the_number_of_an_owner_is_no_fence() {
    let served = served();
    served.put("/v1/guards/agents.", "{}");
    let owned = served.post("/v1/groups/agents.7/own", "{}").body;
    let fence = json!({ "record": "_statehouse.owner", "attempt": owned["attempt"] });
    let set = json!([{ "op": "cell.set", "name": "a", "value": 1 }]);
    let transaction = json!({ "fence": fence, "do": set });
    let send = json!({ "do": [{ "op": "send", "group": "agents.7", "fence": fence, "do": set }] });
    for (path, body) in [("/v1/groups/agents.7/txn", &transaction), ("/v1/groups/free/txn", &send)] {
        assert_eq!(said(&served.post(path, &body.to_string())), (400, "SH-1001", ""), "{body}");
    }
    assert_eq!(served.get("/v1/cells/a?group=agents.7").status, 404);
}
