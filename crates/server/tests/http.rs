//! Every contract over HTTP, through a real socket.

mod client;
mod running;

use client::served;
use serde_json::json;

#[test]
fn a_cell_is_written_read_swapped_and_deleted() {
    let served = served();
    let path = "/v1/cells/deployment/colour";
    assert_eq!(served.get(path).status, 404);
    let first = served.put(path, "\"blue\"");
    assert_eq!((first.status, first.header("etag"), &first.body["version"]), (201, Some("\"1\""), &json!(1)));
    let read = served.get(path);
    assert_eq!((read.body["value"].clone(), read.header("etag")), (json!("blue"), Some("\"1\"")));
    let swapped = served.send("PUT", path, &[("if-match", "\"1\"")], "{\"a\":[1]}");
    assert_eq!(swapped.status, 200);
    let late = served.send("PUT", path, &[("if-match", "\"1\"")], "2");
    assert_eq!(
        (late.status, late.body["code"].clone(), late.body["current_version"].clone()),
        (412, json!("SH-1003"), json!(2))
    );
    assert_eq!(late.header("content-type"), Some("application/problem+json"));
    assert_eq!(served.send("PUT", path, &[("if-none-match", "*")], "3").status, 412);
    assert_eq!(served.get(&format!("{path}?at=1")).body["value"], json!("blue"));
    let history = served.get(&format!("{path}?view=history"));
    assert_eq!(history.body["versions"].as_array().map(Vec::len), Some(2));
    served.put("/v1/cells/deployment/size", "{\"$b64\":\"AP8=\"}");
    let list = served.get("/v1/cells?prefix=deployment/");
    assert_eq!(list.body["cells"][1]["value"], json!({ "$b64": "AP8=" }));
    assert_eq!(served.send("DELETE", path, &[], "").status, 200);
    assert_eq!(served.get(path).status, 404);
    assert_eq!(served.house.cells().get("deployment/size").expect("get"), Some(vec![0_u8, 255].into()));
}

#[test]
fn a_job_is_claimed_stepped_and_finished() {
    let served = served();
    let job = r#"{"type":"task","fields":{"to":"ann@example.org"}}"#;
    assert_eq!(served.put("/v1/records/jobs.email.42", job).status, 201);
    let claims = served.post("/v1/claims", r#"{"prefix":"jobs.","worker":"w1","lease":"30s"}"#);
    let claim = &claims.body["claimed"][0];
    assert_eq!((&claim["record"], &claim["attempt"]), (&json!("jobs.email.42"), &json!(1)));
    assert_eq!(claim["holder"]["worker"], json!("w1"));
    let step = |attempt: u64| {
        let body = json!({ "attempt": attempt, "fields": { "state": "running" } }).to_string();
        served.post("/v1/records/jobs.email.42/step", &body)
    };
    assert_eq!(step(1).status, 200);
    let fenced = step(7);
    assert_eq!((fenced.status, &fenced.body["code"], &fenced.body["attempt"]), (409, &json!("SH-4002"), &json!(1)));
    assert_eq!(fenced.body["holder"], json!("w1"));
    assert_eq!(served.post("/v1/records/jobs.email.42/extend", r#"{"attempt":1,"lease":"1m"}"#).status, 200);
    let patched = served.send("PATCH", "/v1/records/jobs.email.42", &[], r#"{"set":{"a":1},"unset":["to"]}"#);
    assert_eq!(patched.status, 200);
    let counted = served.send("PATCH", "/v1/records/jobs.email.42", &[], r#"{"incr":{"a":4}}"#);
    assert_eq!(counted.body["values"]["a"], json!(5));
    let query = "/v1/records?prefix=jobs.&where=[[%22state%22,%22eq%22,%22running%22]]";
    assert_eq!(served.get(query).body["records"][0]["fields"]["a"], json!(5));
    let done = served.post("/v1/records/jobs.email.42/complete", r#"{"attempt":1,"fields":{"result":"sent"}}"#);
    assert_eq!(done.status, 200);
    let record = served.get("/v1/records/jobs.email.42");
    assert_eq!(record.body["fields"]["state"], json!("completed"));
    let put = served.put("/v1/records/jobs.email.43", job).status;
    let failed = served.post("/v1/claims", r#"{"prefix":"jobs."}"#).body["claimed"][0]["attempt"].clone();
    let failed =
        served.post("/v1/records/jobs.email.43/fail", &json!({ "attempt": failed, "error": "no" }).to_string());
    assert!(put == 201 && failed.body["retry_in_ms"].is_u64(), "{failed:?}");
    assert_eq!(served.send("DELETE", "/v1/records/jobs.email.43", &[], "").status, 200);
}

#[test]
fn a_run_is_appended_to_once_and_followed() {
    let served = served();
    let event = |key: &str, event_type: &str| {
        json!({ "eventType": event_type, "idempotencyKey": key, "emittedAt": "2026-02-11T10:00:00Z", "eventData": {} })
            .to_string()
    };
    let path = "/v1/runs/nightly/events";
    let first = served.post(&format!("{path}?type=etl"), &event("a", "RunStarted"));
    let expected = json!({ "runSeq": 1, "idempotent": false, "persisted": true, "payloadMismatch": false });
    assert_eq!((first.status, &first.body), (200, &expected));
    assert_eq!(served.post(path, &event("a", "RunStarted")).body["idempotent"], json!(true));
    let late = served.send("POST", path, &[("if-match", "\"0\"")], &event("b", "X"));
    assert_eq!((late.status, &late.body["last"]), (409, &json!(1)));
    let both = format!("[{},{}]", event("b", "X"), event("c", "RunCompleted"));
    assert_eq!(served.post(path, &both).body["results"][1]["runSeq"], json!(3));
    let fetched = served.get(&format!("{path}?after=1&limit=1"));
    assert_eq!((&fetched.body["events"][0]["runSeq"], &fetched.body["stable_seq"]), (&json!(2), &json!(3)));
    assert_eq!(served.get("/v1/runs/nightly/snapshot").body["status"], json!("COMPLETED"));
    assert_eq!(served.get("/v1/runs/nightly/snapshot?project=true").body["lastEventSeq"], json!(3));
    assert_eq!(served.get("/v1/runs?status=COMPLETED&type=etl").body["runs"][0]["runId"], json!("nightly"));
    assert_eq!(served.post("/v1/runs/nightly/fork", r#"{"at":2,"as":"again"}"#).status, 200);
    assert_eq!(served.get("/v1/runs/again/snapshot?group=nightly").body["status"], json!("RUNNING"));
    assert_eq!(served.post("/v1/runs/nightly/close", "").status, 200);
    assert_eq!(served.post(path, &event("d", "X")).body["code"], json!("SH-3005"));
    assert_eq!(served.send("DELETE", "/v1/runs/nightly", &[], "").status, 200);
    assert_eq!(served.post(path, &event("a", "RunStarted")).status, 410);
    assert_eq!(served.post(path, "{\"eventType\":\"X\"}").body["code"], json!("SH-3001"));
    for query in ["", "?follow=20s", "?follow=true"] {
        let missing = served.get(&format!("/v1/runs/later/events{query}"));
        assert_eq!((missing.status, &missing.body["code"]), (404, &json!("SH-3002")), "{query}");
    }
    served.post("/v1/runs/later/events", &event("a", "X"));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| served.get("/v1/runs/later/events?follow=20s&after=1"));
        std::thread::sleep(std::time::Duration::from_millis(50));
        served.post("/v1/runs/later/events", &event("b", "X"));
        assert_eq!(waiting.join().expect("no panic").body["events"][0]["runSeq"], json!(2));
    });
    let other = served.post("/v1/runs/later/events", &event("a", "Y"));
    assert_eq!((&other.body["payloadMismatch"], &other.body["runSeq"]), (&json!(true), &json!(1)));
    assert_eq!(other.body["event"]["eventType"], json!("X"), "the event that stands");
}

#[test]
fn a_request_in_a_session_is_executed_once() {
    let served = served();
    let created = served.post("/v1/sessions", r#"{"timeout":"60s","capabilities":{"client":"test"}}"#);
    assert_eq!(created.status, 201);
    let session = created.body["session"].as_str().expect("text").to_owned();
    let shown = [("statehouse-session-secret", created.body["secret"].as_str().expect("text"))];
    let count = |request: &str, lowest: &str| {
        let headers = [
            ("statehouse-session", session.as_str()),
            shown[0],
            ("statehouse-request", request),
            ("statehouse-lowest-pending", lowest),
        ];
        served.send("PATCH", "/v1/records/visits", &headers, r#"{"incr":{"n":1}}"#)
    };
    let first = count("1", "1");
    assert_eq!((first.body["values"]["n"].clone(), first.header("statehouse-replayed")), (json!(1), None));
    let again = count("1", "1");
    assert_eq!(again.body["values"]["n"], json!(1), "sent again, answered again");
    assert_eq!(again.header("statehouse-replayed"), Some("true"));
    assert_eq!(count("2", "2").body["values"]["n"], json!(2));
    let evicted = count("1", "1");
    assert_eq!((evicted.status, &evicted.body["code"]), (410, &json!("SH-5003")));
    let id = session.strip_prefix("s-").and_then(|number| number.parse().ok()).expect("a session");
    served.house.group("g").commit().push(id, "hello").run().expect("a push");
    let pushes = served.send("GET", &format!("/v1/sessions/{session}/pushes?wait=5s"), &shown, "");
    assert_eq!(pushes.body["pushes"], json!([{ "number": 1, "payload": "hello" }]));
    let post = |path: &str, body| served.send("POST", &format!("/v1/sessions/{session}/{path}"), &shown, body);
    assert_eq!(post("acks", r#"{"upto":1}"#).body["forgotten"], json!(1));
    assert_eq!(post("keepalive", "").status, 200);
    assert_eq!(served.get(&format!("/v1/sessions/{session}")).body["acknowledged"], json!(1));
    assert_eq!(served.send("DELETE", &format!("/v1/sessions/{session}"), &shown, "").status, 200);
    assert_eq!(count("3", "3").body["code"], json!("SH-5004"));
    assert_eq!(served.get(&format!("/v1/sessions/{session}")).status, 410);
}

#[test]
fn changes_are_read_and_followed() {
    let served = served();
    served.put("/v1/cells/a", "1");
    let page = served.get("/v1/changes?from=c-0&prefix=a");
    assert_eq!(
        (&page.body["changes"][0]["kind"], &page.body["changes"][0]["reason"]),
        (&json!("cell"), &json!("written"))
    );
    let next = page.body["next"].as_str().expect("a cursor").to_owned();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| served.get(&format!("/v1/changes?from={next}&follow=20s")));
        std::thread::sleep(std::time::Duration::from_millis(50));
        served.put("/v1/cells/b", "1");
        assert_eq!(waiting.join().expect("no panic").body["changes"][0]["name"], json!("b"));
    });
    assert!(served.get("/v1/changes?from=c-999999").body["gap"].is_object());
}

#[test]
fn what_is_wrong_is_said_by_name() {
    let served = served();
    let code = |answer: client::Answer| (answer.status, answer.body["code"].as_str().unwrap_or_default().to_owned());
    assert_eq!(code(served.get("/nowhere")), (404, "SH-1032".into()));
    assert_eq!(code(served.post("/v1/cells", "")), (405, "SH-1032".into()));
    assert_eq!(code(served.put("/v1/cells/a", "{")), (400, "SH-1030".into()));
    assert_eq!(code(served.put("/v1/cells/_strata", "1")), (400, "SH-1001".into()));
    assert_eq!(code(served.get("/v1/cells/a?space=none")), (404, "SH-1005".into()));
    assert_eq!(code(served.send("GET", "/v1/cells/a", &[("statehouse-session", "x")], "")), (400, "SH-1030".into()));
    assert_eq!(
        code(served.get("/v1/sessions/x")),
        (400, "SH-1030".into()),
        "what is wrong in the path is a problem too"
    );
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes));
    assert_eq!(served.put("/v1/cells/a", &text(1 << 20)).status, 201, "at the limit");
    assert_eq!(code(served.put("/v1/cells/a", &text((1 << 20) + 1))), (413, "SH-1002".into()));
    let health = ["/livez", "/readyz", "/startupz", "/version", "/status"].map(|path| served.get(path).status);
    assert_eq!(health, [200; 5]);
}
