//! `/metrics` over a real socket: each number moves by exactly what was done, and nothing else does.

mod moving;
mod running;
mod served;

use std::time::Duration;

use moving::{Moved, and, entries, moved, request, together};
use served::{eventually, served};
use statehouse::Options;
use statehouse::records::{ClaimOptions, Put, RecordType};

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn requests_commits_and_conflicts_move_by_what_was_done() {
    let served = served(&Options::default());
    let put = moved(&served, || drop(served.done("PUT", "/v1/cells/a/b", "1")));
    assert_eq!(put, together([request("cells", "put", "ok"), entries(1.0)]));
    let read = moved(&served, || drop(served.done("GET", "/v1/cells/a/b", "")));
    assert_eq!(read, request("cells", "get", "ok"), "a read writes nothing");
    let missing = moved(&served, || drop(served.expect(404, "GET", "/v1/cells/none", "")));
    assert_eq!(missing, request("cells", "get", "SH-1031"));
    let stale = moved(&served, || {
        assert_eq!(served.send("PUT", "/v1/cells/a/b", &[("if-match", "\"9\"")], "2").status, 412);
    });
    let conflict = [(r#"statehouse_conflicts_total{contract="cells",type="none"}"#, 1.0)];
    assert_eq!(stale, and(together([request("cells", "put", "SH-1003"), entries(1.0)]), &conflict));
    let nowhere = moved(&served, || drop(served.expect(404, "GET", "/secret-name", "")));
    assert_eq!(nowhere, request("other", "none", "SH-1032"), "no label is what a client made up");
    let malformed = moved(&served, || drop(served.expect(400, "PUT", "/v1/cells/a", "{")));
    assert_eq!(malformed, request("cells", "put", "SH-1030"));
}

#[test]
fn things_and_bytes_are_those_of_all_spaces() {
    let served = served(&Options::default());
    drop(served.done("PUT", "/v1/spaces/shop", ""));
    for (path, body) in [
        ("/v1/cells/a", "1"),
        ("/v1/cells/b?space=shop", "2"),
        ("/v1/records/r?space=shop", r#"{"type":"task","fields":{}}"#),
        ("/v1/maps/m", "{}"),
    ] {
        drop(served.done("PUT", path, body));
    }
    drop(served.done("DELETE", "/v1/cells/a", ""));
    let usage =
        ["default", "shop"].map(|space| json(&served.done("GET", &format!("/v1/spaces/{space}/usage"), "").body));
    let scraped = served.scrape();
    let expected = [("cells", 1.0), ("keyed", 1.0), ("records", 1.0), ("runs", 0.0)];
    for (place, (contract, things)) in expected.into_iter().enumerate() {
        let sum =
            |member: &str| usage.iter().map(|one| one["contracts"][place][member].as_f64().expect("a number")).sum();
        let bytes: f64 = sum("bytes");
        assert_eq!((sum("things"), bytes > 0.0), (things, things > 0.0), "{contract} in {usage:?}");
        let labels = format!(r#"{{contract="{contract}"}}"#);
        assert_eq!(scraped[&format!("statehouse_things{labels}")], things);
        assert_eq!(scraped[&format!("statehouse_thing_bytes{labels}")], bytes);
    }
    // The deleted cell is remembered, with its version before.
    assert_eq!(usage[0]["contracts"][0]["things"], 0);
    assert!(usage[0]["bytes"].as_u64().is_some_and(|bytes| bytes > 0));
}

#[test]
fn updates_that_change_nothing_are_counted_by_what_became_of_them() {
    let served = served(&Options::default());
    let put = |version: u64, value: &str| {
        drop(served.done("PUT", &format!("/v1/maps/m/keys/k?version={version}"), value));
    };
    put(2, "1");
    let not_applied = |outcome: &str| format!("statehouse_keyed_updates_not_applied_total{{outcome=\"{outcome}\"}}");
    for (outcome, version, value) in [("duplicate", 2, "1"), ("stale", 1, "1"), ("version_conflict", 2, "2")] {
        let again = moved(&served, || put(version, value));
        let expected = and(together([request("maps", "put_key", "ok"), entries(1.0)]), &[(&not_applied(outcome), 1.0)]);
        assert_eq!(again, expected, "{outcome}");
    }
}

#[test]
fn work_on_records_moves_claims_counts_and_reasons() {
    let served = served(&Options::default());
    let put = moved(&served, || drop(served.done("PUT", "/v1/records/jobs.1", r#"{"type":"task","fields":{}}"#)));
    let pending = r#"statehouse_records{type="task",state="pending"}"#;
    assert_eq!(put, and(together([request("records", "put", "ok"), entries(1.0)]), &[(pending, 1.0)]));
    assert!(served.scrape().contains_key(r#"statehouse_oldest_ready_seconds{type="task"}"#));

    let claim = moved(&served, || drop(served.done("POST", "/v1/claims", r#"{"prefix":"jobs.","lease":"10m"}"#)));
    let held = r#"statehouse_records{type="task",state="claimed"}"#;
    let claims = r#"statehouse_claims_total{type="task"}"#;
    let expected = and(
        together([request("records", "claim", "ok"), entries(1.0)]),
        &[(pending, -1.0), (held, 1.0), (claims, 1.0)],
    );
    assert_eq!(claim, expected);
    assert!(!served.scrape().contains_key(r#"statehouse_oldest_ready_seconds{type="task"}"#), "nothing is ready");

    let complete = moved(&served, || drop(served.done("POST", "/v1/records/jobs.1/complete", r#"{"attempt":1}"#)));
    let finished = [
        (held, -1.0),
        (r#"statehouse_records{type="task",state="completed"}"#, 1.0),
        (r#"statehouse_record_changes_total{reason="finished"}"#, 1.0),
    ];
    assert_eq!(complete, and(together([request("records", "complete", "ok"), entries(1.0)]), &finished));
    let late = moved(&served, || drop(served.expect(409, "POST", "/v1/records/jobs.1/complete", r#"{"attempt":1}"#)));
    let fenced = [(r#"statehouse_conflicts_total{contract="records",type="task"}"#, 1.0)];
    assert_eq!(late, and(together([request("records", "complete", "SH-4002"), entries(1.0)]), &fenced));
}

#[test]
fn ends_of_attempts_and_records_are_told_apart() {
    let served = served(&Options::default());
    let records = served.house.records();
    let once = RecordType { attempts_max: 1, ..RecordType::task().named("once") };
    served.house.space("default").declare_type("once.", once).expect("declare");
    let reason = |reason: &str| format!(r#"statehouse_record_changes_total{{reason="{reason}"}}"#);
    let until = |sample: String| eventually(&sample, || served.scrape()[&sample] == 1.0);
    let all = moved(&served, || {
        records.put("jobs.1", [("n", 1)], Put::typed("task")).expect("put");
        let claimed = records.claim("jobs.1", &ClaimOptions::worker("w")).expect("claim");
        records.release(&claimed).expect("release");
        records.claim("jobs.1", &ClaimOptions::worker("w").lease(Duration::from_millis(20))).expect("claim");
        until(reason("rescued"));
        records.put("once.1", [("n", 1)], Put::default()).expect("put");
        let claimed = records.claim("once.1", &ClaimOptions::worker("w")).expect("claim");
        records.fail(&claimed, "no").expect("fail");
        served.done("PUT", "/v1/records/short", r#"{"fields":{},"ttl":"20ms"}"#);
        until(reason("expired"));
        let session = served.house.sessions().open().expect("session");
        records.put("jobs.2", [("n", 1)], Put::typed("task")).expect("put");
        session.records().claim("jobs.2", &ClaimOptions::worker("w")).expect("claim");
        session.close().expect("close");
        until(reason("session_ended"));
    });
    for what in ["released", "rescued", "exhausted", "expired", "session_ended"] {
        assert_eq!(all.get(&reason(what)), Some(&1.0), "{what}: {all:?}");
    }
    assert_eq!(all.get(&reason("finished")), None, "{all:?}");
    assert_eq!(all[r#"statehouse_claims_total{type="task"}"#], 3.0);
    assert_eq!(all[r#"statehouse_claims_total{type="once"}"#], 1.0);
}

#[test]
fn sessions_replays_and_pushes_are_counted() {
    let served = served(&Options::default());
    let house = &served.house;
    let (mut id, mut secret) = (0, String::new());
    let created = moved(&served, || {
        let answer = served.done("POST", "/v1/sessions", r#"{"timeout":"10m"}"#);
        let opened = json(&answer.body);
        let session = opened["session"].as_str().expect("a session");
        secret = opened["secret"].as_str().expect("a secret").to_owned();
        id = session.strip_prefix("s-").and_then(|number| number.parse().ok()).expect("a session");
    });
    let pending = r#"statehouse_sessions{state="pending"}"#;
    assert_eq!(created, and(together([request("sessions", "open", "ok"), entries(1.0)]), &[(pending, 1.0)]));
    let number = format!("s-{id}");
    let headers = [
        ("statehouse-session", number.as_str()),
        ("statehouse-session-secret", secret.as_str()),
        ("statehouse-request", "1"),
        ("statehouse-lowest-pending", "1"),
    ];
    let first = moved(&served, || assert!(served.send("PUT", "/v1/cells/x", &headers, "1").status < 300));
    let seen = [(pending, -1.0), (r#"statehouse_sessions{state="disconnected"}"#, 1.0)];
    assert_eq!(first, and(together([request("cells", "put", "ok"), entries(1.0)]), &seen));
    let again = moved(&served, || assert!(served.send("PUT", "/v1/cells/x", &headers, "1").status < 300));
    let replayed = [("statehouse_session_replays_total", 1.0)];
    assert_eq!(again, and(together([request("cells", "put", "ok"), entries(1.0)]), &replayed));
    let pushed = moved(&served, || {
        house.group("g").commit().set_cell("c", 1).push(id, "a").run().expect("push");
    });
    assert_eq!(pushed, and(entries(1.0), &[("statehouse_push_backlog", 1.0)]));

    let ended = |reason: &str| format!(r#"statehouse_session_expired_total{{reason="{reason}"}}"#);
    let closed = moved(&served, || drop(served.send("DELETE", &format!("/v1/sessions/s-{id}"), &headers[1..2], "")));
    assert_eq!((closed[&ended("closed")], closed["statehouse_push_backlog"]), (1.0, -1.0), "{closed:?}");
    let timed_out = moved(&served, || {
        served.done("POST", "/v1/sessions", r#"{"timeout":"100ms"}"#);
        eventually("its time is over", || served.scrape()[&ended("timeout")] == 1.0);
    });
    assert_eq!((timed_out[&ended("timeout")], timed_out.get(&ended("closed"))), (1.0, None));
    let overrun = moved(&served, || {
        let mut limits = house.limits().expect("limits");
        limits.session_pushes_max = 2;
        house.set_limits(limits).expect("set");
        let session = house.sessions().open().expect("session");
        for _ in 0..3 {
            house.group("g").commit().set_cell("c", 1).push(session.id(), "a").run().expect("push");
        }
        eventually("it is ended", || served.scrape()[&ended("overrun")] == 1.0);
    });
    assert_eq!((overrun[&ended("overrun")], overrun.get(&ended("timeout"))), (1.0, None));
    assert_eq!(overrun.get("statehouse_push_backlog"), None, "what it did not take is gone with it");
}

#[test]
fn runs_messages_and_waiting_workers_are_counted() {
    let served = served(&Options::default().verify_runs_every(Duration::from_millis(20)));
    let event = |key: &str| {
        format!(
            r#"{{"eventType":"RunStarted","idempotencyKey":"{key}","emittedAt":"2026-02-11T10:00:00Z","eventData":{{}}}}"#
        )
    };
    // The verifier of runs goes on behind this.
    let without_verifier = |mut moved: Moved| {
        moved.remove("statehouse_runs_verified_total");
        moved
    };
    let append = || {
        let answer = served.send("POST", "/v1/runs/r1/events?type=import", &[], &event("k1"));
        assert!(answer.status < 300, "{}", answer.body);
    };
    let first = without_verifier(moved(&served, append));
    let running = r#"statehouse_runs{type="import",status="RUNNING"}"#;
    assert_eq!(first, and(together([request("runs", "append", "ok"), entries(1.0)]), &[(running, 1.0)]));
    let again = without_verifier(moved(&served, append));
    let hit = [("statehouse_idempotency_hits_total", 1.0)];
    assert_eq!(again, and(together([request("runs", "append", "ok"), entries(1.0)]), &hit));
    eventually("it was verified", || served.scrape()["statehouse_runs_verified_total"] > 0.0);
    assert_eq!(served.scrape()["statehouse_run_differences_total"], 0.0);
    assert!(served.scrape().contains_key(r#"statehouse_run_oldest_stalled_seconds{type="import"}"#));

    let house = &served.house;
    let sent = without_verifier(moved(&served, || {
        let target = || house.group("b").commit().set_cell("c", 1);
        house.group("a").commit().set_cell("x", 1).send(target()).run().expect("send");
        house.group("a").commit().set_cell("x", 2).send(target().if_cell_absent("c")).run().expect("send");
        let refused = r#"statehouse_messages_total{result="refused"}"#;
        eventually("both were tried", || served.scrape()[refused] == 1.0);
        house.group("a").commit().set_cell("x", 3).publish("mail", "hello").run().expect("publish");
        let later = house.group("b").commit().set_cell("late", 1);
        house.group("a").commit().set_cell("x", 4).send_after(Duration::from_secs(600), later).run().expect("send");
    }));
    for (sample, by) in [
        (r#"statehouse_messages_total{result="delivered"}"#, 1.0),
        (r#"statehouse_messages_total{result="refused"}"#, 1.0),
        (r#"statehouse_messages_waiting{waits_for="publish"}"#, 1.0),
        (r#"statehouse_messages_waiting{waits_for="group"}"#, 1.0),
    ] {
        assert_eq!(sent.get(sample), Some(&by), "{sample}: {sent:?}");
    }
    assert_eq!(served.scrape()[r#"statehouse_messages_waiting{waits_for="outgoing"}"#], 0.0, "there is no other shard");
    std::thread::scope(|scope| {
        let waiting = || served.scrape()["statehouse_claimers_waiting"];
        let claim = r#"{"prefix":"jobs.","wait":"20s"}"#;
        let worker = scope.spawn(|| served.done("POST", "/v1/claims", claim));
        eventually("the worker waits", || waiting() == 1.0);
        served.done("PUT", "/v1/records/jobs.1", r#"{"type":"task","fields":{}}"#);
        worker.join().expect("claimed");
        assert_eq!(waiting(), 0.0);
    });
}

#[test]
fn a_stream_whose_client_does_not_read_is_behind_until_it_goes() {
    use std::io::{Read, Write};
    let served = served(&Options::default());
    let mut stream = std::net::TcpStream::connect(served.address).expect("a connection");
    let request = "GET /v1/changes?follow=true HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("sent");
    let mut head = [0; 12];
    stream.read_exact(&mut head).expect("an answer");
    assert_eq!(&head, b"HTTP/1.1 200");
    let samples = served.scrape();
    assert_eq!((samples["statehouse_watchers"], samples["statehouse_watch_lag_revisions"]), (1.0, 0.0));
    // More than the sockets on both sides hold.
    let cells = served.house.cells();
    let long = "x".repeat(900);
    let behind = || served.scrape()["statehouse_watch_lag_revisions"] > 1_000.0;
    eventually("it is behind", || {
        let writes: Vec<_> = (0..2_000).map(|_| cells.set_later(&long, 1)).collect();
        writes.into_iter().for_each(|write| assert!(write.wait().is_ok()));
        behind()
    });
    drop(stream);
    eventually("it has gone", || served.scrape()["statehouse_watchers"] == 0.0);
    assert_eq!(served.scrape()["statehouse_watch_lag_revisions"], 0.0);
}

#[test]
fn what_is_refused_before_a_route_is_counted_and_so_is_what_the_disk_and_the_limits_allow() {
    let served = served(&Options::default());
    let large = "x".repeat(5 << 20);
    let refused = moved(&served, || assert_eq!(served.send("PUT", "/v1/cells/a", &[], &large).status, 413));
    let (sample, by) = refused.iter().next().expect("one");
    assert!(sample.starts_with(r#"statehouse_requests_total{contract="other",op="refused",code="SH-"#), "{refused:?}");
    assert_eq!((refused.len(), *by), (1, 1.0));

    let samples = served.scrape();
    let used = samples["statehouse_journal_bytes"] + samples["statehouse_store_bytes"];
    assert_eq!(samples["statehouse_disk_used_bytes"], used);
    assert!(samples["statehouse_disk_free_bytes"] > 0.0 && samples["statehouse_disk_limit_bytes"] > used);
    assert!(samples["statehouse_disk_reserve_bytes"] > 0.0, "what the store needs is kept free, whoever says nothing");
    // The client has as many connections as it likes, and one that has ended counts until the server has seen its end.
    let connections = || served.scrape()[r#"statehouse_limit_used{limit="connections_max"}"#];
    let held: Vec<_> = (0..10).map(|_| std::net::TcpStream::connect(served.address).expect("a connection")).collect();
    eventually("those that are held are counted, and the scrape's own", || connections() >= 11.0);
    drop(held);
    eventually("those that have ended are not", || connections() < 10.0);
    assert_eq!(samples[r#"statehouse_limit_refused_total{limit="connections_max"}"#], 0.0);
    assert_eq!(samples["statehouse_memory_budget_bytes"], f64::from(256 << 20));
    let reserve = statehouse::DiskReserve { percent: 100, bytes: u64::MAX };
    served.house.set_disk_reserve(Some(reserve));
    let status = served.get("/status").body;
    assert_eq!(json(&status)["problems"][0]["problem"], "disk_low", "{status}");
}

#[test]
fn backups_are_dated() {
    let served = served(&Options::default());
    let (taken, verified) =
        ("statehouse_backup_last_success_timestamp_seconds", "statehouse_backup_last_verified_timestamp_seconds");
    let before = served.scrape();
    assert_eq!((before[taken], before[verified]), (0.0, 0.0));
    let mut stream = std::net::TcpStream::connect(served.address).expect("a connection");
    let request = "GET /v1/backup HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    std::io::Write::write_all(&mut stream, request.as_bytes()).expect("sent");
    let bytes = std::io::copy(&mut stream, &mut std::io::sink()).expect("read");
    assert!(bytes > 500, "{bytes}");
    eventually("it is dated", || served.scrape()[taken] > before["process_start_time_seconds"] - 1.0);
    assert_eq!(served.scrape()[verified], 0.0, "nobody has looked at it");
}

#[test]
fn a_request_that_waited_and_whose_client_has_gone_is_counted_as_cancelled() {
    let served = served(&Options::default());
    let cancelled = r#"statehouse_requests_total{contract="records",op="claim",code="cancelled"}"#;
    {
        use std::io::Write;
        let mut stream = std::net::TcpStream::connect(served.address).expect("a connection");
        let body = r#"{"prefix":"jobs.","wait":"50s"}"#;
        let head = format!("POST /v1/claims HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).expect("sent");
        eventually("it waits", || served.scrape()["statehouse_claimers_waiting"] == 1.0);
    }
    eventually("it is counted", || served.scrape().get(cancelled) == Some(&1.0));
}
