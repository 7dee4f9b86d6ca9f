//! Streams of events: they follow, resume where they were left, beat, and end when the server does.

#![allow(clippy::disallowed_methods, reason = "streams end in the time of a real client")]

mod client;
mod running;

use std::time::Duration;

use client::served;
use serde_json::json;

fn event(key: &str) -> String {
    json!({ "eventType": "Note", "idempotencyKey": key, "eventData": { "line": "one\ntwo" } }).to_string()
}

#[test]
fn a_run_is_followed_and_resumed() {
    let served = served();
    let path = "/v1/runs/nightly/events";
    for key in ["a", "b"] {
        assert_eq!(served.post(path, &event(key)).status, 200);
    }
    let mut events = served.events(&format!("{path}?after=1"), &[]);
    let (id, kind, data) = events.next().expect("an event");
    assert_eq!((id.as_str(), kind.as_str(), &data["idempotencyKey"]), ("2", "event", &json!("b")));
    served.post(path, &event("c"));
    let (id, _, data) = events.next().expect("an event");
    assert_eq!((id.as_str(), &data["eventData"]["line"]), ("3", &json!("one\ntwo")));
    drop(events);
    served.post(path, &event("d"));
    let mut resumed = served.events(path, &[("last-event-id", "3")]);
    assert_eq!(resumed.next().map(|(id, _, _)| id).as_deref(), Some("4"));
    let (id, kind, data) = resumed.next().expect("a heartbeat");
    assert_eq!((id.as_str(), kind.as_str(), &data["position"]), ("4", "heartbeat", &json!("4")));
    assert_eq!(served.get(&format!("{path}?follow=0s")).body["stable_seq"], json!(4), "a page is still a page");
}

#[test]
fn changes_are_followed_with_their_gaps_and_quiet_prefixes_move_on() {
    let served = served();
    served.put("/v1/cells/a", "1");
    let mut changes = served.events("/v1/changes?from=c-0&follow=true", &[]);
    let (first, kind, data) = changes.next().expect("a change");
    assert_eq!((kind.as_str(), &data["name"]), ("change", &json!("a")));
    served.post(
        "/v1/groups/g/txn",
        r#"{"do":[{"op":"cell.set","name":"b","value":1},{"op":"cell.set","name":"c","value":2}]}"#,
    );
    let (middle, _, _) = changes.next().expect("a change");
    let (last, _, data) = changes.next().expect("a change");
    assert_eq!(data["name"], json!("c"));
    assert_eq!(middle, first, "of a commit that was cut in the middle all changes come again");
    let mut resumed = served.events("/v1/changes", &[("last-event-id", &middle)]);
    assert_eq!(resumed.next().map(|(_, _, data)| data["name"].clone()), Some(json!("b")));
    let mut quiet = served.events("/v1/changes?from=c-0&prefix=nothing", &[]);
    assert_eq!(quiet.next().map(|(id, kind, _)| (id, kind)), Some((last, "heartbeat".to_owned())));
    let mut gap = served.events("/v1/changes?from=c-999999", &[]);
    assert_eq!(gap.next().map(|(_, kind, _)| kind).as_deref(), Some("gap"));
}

#[test]
fn pushes_are_followed_from_behind_the_last_that_was_had() {
    let served = served();
    let opened = served.post("/v1/sessions", "").body;
    let [session, secret] = ["session", "secret"].map(|member| opened[member].as_str().expect("text"));
    let shown = ("statehouse-session-secret", secret);
    let number = session.strip_prefix("s-").and_then(|number| number.parse().ok()).expect("a session");
    let push = |payload: &str| served.house.group("g").commit().push(number, payload).run().expect("a push");
    push("one");
    push("two");
    let path = format!("/v1/sessions/{session}/pushes");
    let mut pushes = served.events(&path, &[shown, ("last-event-id", "1")]);
    assert_eq!(pushes.next().map(|(id, _, data)| (id, data["payload"].clone())), Some(("2".into(), json!("two"))));
    push("three");
    assert_eq!(pushes.next().map(|(id, _, _)| id).as_deref(), Some("3"));
    served.send("DELETE", &format!("/v1/sessions/{session}"), &[shown], "");
    let (_, kind, data) = pushes.next().expect("an end");
    assert_eq!((kind.as_str(), &data["code"]), ("error", &json!("SH-5004")));
    assert_eq!(pushes.next(), None);
}

#[test]
fn streams_and_waiting_requests_end_when_the_server_stops() {
    let served = served();
    let mut changes = served.events("/v1/changes?follow=true", &[]);
    let began = std::time::Instant::now();
    std::thread::scope(|scope| {
        let client = served.clone();
        let claim = scope.spawn(move || client.post("/v1/claims", r#"{"prefix":"jobs.","wait":"50s"}"#));
        while served.house.overview().expect("an overview").claimers_waiting == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(served);
        assert_eq!(claim.join().expect("no panic").body["claimed"], json!([]));
    });
    assert!(began.elapsed() < Duration::from_secs(40), "nobody was waited for");
    assert!(changes.next().is_none_or(|(_, kind, _)| kind == "stopping"));
}
