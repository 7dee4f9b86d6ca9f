//! Limits of sizes and counts, at the limit and one beyond it, through a real socket.

mod holding;
mod limited;
mod running;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use contract::limits::JSON_DEPTH_MAX;
use holding::holdable;
use limited::{read_one, served, wait_for, waiting, writing};
use running::Running;
use statehouse::Options;
use statehouse_server::Server;
use statehouse_server::limits::ServerLimits;

#[test]
fn the_head_has_a_limit() {
    let served = served(|limits| limits.head_bytes_max = 10_000);
    let of = |length: usize| {
        let before = "GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx: ";
        format!("{before}{}\r\n\r\n", "x".repeat(length - before.len() - 4))
    };
    assert_eq!(served.send(of(10_000)).status, 200);
    let beyond = served.send(of(10_001));
    assert_eq!((beyond.status, beyond.code(), beyond.beyond()), (431, "SH-1040", ("head_bytes_max", 10_000, None)));
    assert!(beyond.head.contains("application/problem+json"), "{}", beyond.head);
    let endless = served.send("GET /livez HTTP/1.1\r\n".to_owned() + &"x: y\r\n".repeat(20_000));
    assert_eq!((endless.status, endless.code()), (431, "SH-1040"));
}

#[test]
fn headers_have_a_limit() {
    let served = served(|limits| limits.headers_max = 10);
    let of = |count: usize| {
        let more: String = (2..count).map(|number| format!("x{number}: y\r\n")).collect();
        format!("GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{more}\r\n")
    };
    assert_eq!(served.send(of(10)).status, 200);
    let beyond = served.send(of(11));
    assert_eq!((beyond.status, beyond.code(), beyond.beyond()), (431, "SH-1040", ("headers_max", 10, Some(11))));
    let far_beyond = served.send(of(101));
    assert_eq!((far_beyond.status, far_beyond.code()), (431, "SH-1040"), "hyper's own bound is 100");
}

#[test]
fn urls_have_a_limit() {
    let served = served(|limits| limits.url_bytes_max = 100);
    let of = |length: usize| format!("/v1/cells?prefix={}", "x".repeat(length - 17));
    assert_eq!(served.get(&of(100)).status, 200);
    let beyond = served.get(&of(101));
    assert_eq!((beyond.status, beyond.code(), beyond.beyond()), (414, "SH-1041", ("url_bytes_max", 100, Some(101))));
}

#[test]
fn bodies_have_a_limit() {
    let served = served(|limits| limits.body_bytes_max = 1000);
    let of = |length: usize| format!("\"{}\"", "x".repeat(length - 2));
    assert_eq!(served.put(&of(1000)).status / 100, 2);
    let beyond = served.put(&of(1001));
    assert_eq!((beyond.status, beyond.code(), beyond.beyond()), (413, "SH-1042", ("body_bytes_max", 1000, Some(1001))));
    let declared = served.send("PUT /v1/cells/c HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1073741824\r\n\r\n");
    assert_eq!((declared.status, declared.beyond().2), (413, Some(1 << 30)), "before a byte of it came");
    let chunked = |length: usize| {
        let (head, body) = ("PUT /v1/cells/c HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n", of(length));
        let (first, second) = body.split_at(length / 2);
        let chunk = |part: &str| format!("{:x}\r\n{part}\r\n", part.len());
        format!("{head}transfer-encoding: chunked\r\n\r\n{}{}0\r\n\r\n", chunk(first), chunk(second))
    };
    assert_eq!(served.send(chunked(1000)).status / 100, 2);
    let beyond = served.send(chunked(1001));
    assert_eq!((beyond.status, beyond.code(), beyond.beyond()), (413, "SH-1042", ("body_bytes_max", 1000, Some(1001))));
    assert_eq!(served.get("/v1/cells/c").body["version"], 2, "what was refused was not written");
}

#[test]
fn a_client_reads_why_although_it_sends_on() {
    let served = served(|limits| limits.body_bytes_max = 1000);
    let mut request = b"PUT /v1/cells/c HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4000000\r\n\r\n".to_vec();
    request.resize(request.len() + 4_000_000, b'x');
    let refused = served.send(request);
    assert_eq!((refused.status, refused.code()), (413, "SH-1042"));
    assert!(refused.head.contains("connection: close"), "{}", refused.head);
}

#[test]
fn compressed_bodies_are_refused() {
    let served = served(|_| {});
    let of = |encoding: &str| {
        let head = "PUT /v1/cells/c HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
        format!("{head}content-encoding: {encoding}\r\ncontent-length: 1\r\n\r\n1")
    };
    assert_eq!(served.send(of("identity")).status / 100, 2);
    let refused = served.send(of("gzip"));
    assert_eq!((refused.status, refused.code()), (415, "SH-1044"));
}

#[test]
fn json_has_a_depth() {
    let served = served(|_| {});
    let of = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!(served.put(&of(JSON_DEPTH_MAX)).status / 100, 2);
    for depth in [JSON_DEPTH_MAX + 1, 1_000_000] {
        let refused = served.put(&of(depth));
        let beyond = ("json_depth_max", JSON_DEPTH_MAX as u64, None);
        assert_eq!((refused.status, refused.code(), refused.beyond()), (400, "SH-1045", beyond));
    }
}

#[test]
fn what_is_no_request_is_refused_by_name() {
    let served = served(|_| {});
    for wrong in [
        "\0\0\0\0\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "GET /\0 HTTP/1.1\r\n\r\n",
        "GET /livez HTTP/1.1\r\nno header\r\n\r\n",
        "PUT /v1/cells/c HTTP/1.1\r\nhost: localhost\r\ncontent-length: many\r\n\r\n",
        "PUT /v1/cells/c HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "PUT /v1/cells/c HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: gzip\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let refused = served.send(wrong);
        assert_eq!((refused.status, refused.code()), (400, "SH-1046"), "{wrong:?}");
    }
    let mut stream = served.connect();
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\nnonsense\r\n\r\n").expect("sent");
    assert_eq!(read_one(&mut stream).status, 200, "what came before it is answered");
    assert_eq!(read_one(&mut stream).code(), "SH-1046");
}

#[test]
fn a_body_that_is_broken_is_refused_by_name() {
    let served = served(|_| {});
    let head = "PUT /v1/cells/c HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    let refused = served.send(format!("{head}zz\r\n"));
    assert_eq!((refused.status, refused.code()), (400, "SH-1046"));
}

#[test]
fn connections_have_a_limit() {
    let served = served(|limits| limits.connections_max = 2);
    let mut held: Vec<TcpStream> = (0..2).map(|_| served.connect()).collect();
    for stream in &mut held {
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("sent");
        assert_eq!(read_one(stream).status, 200, "as many as the limit says are served");
    }
    let refused = served.get("/livez");
    assert_eq!((refused.status, refused.code(), refused.beyond()), (503, "SH-2010", ("connections_max", 2, None)));
    assert!(refused.head.contains("retry-after"), "{}", refused.head);
    held.pop();
    assert_eq!(served.get_soon("/livez").status, 200, "one that has ended makes room");
}

#[test]
fn requests_have_a_limit() {
    let (options, holder) = holdable(Options::default());
    let mut limits = ServerLimits::default();
    limits.requests_max = 2;
    let served = limited::Served(Running::start(&options, |house| Server::new(house).limited(limits)));
    assert!(writing(&served, 2, 50).is_empty(), "as many as the limit says are worked on");
    let held = holder.hold(&served.0.house);
    std::thread::scope(|scope| {
        let worked_on: Vec<_> = (0..2).map(|_| scope.spawn(|| served.put("1").status)).collect();
        wait_for("both are worked on", || served.load().requests.used() == 2);
        for refused in writing(&served, 8, 50) {
            assert_eq!((refused.status, refused.code(), refused.beyond()), (429, "SH-2011", ("requests_max", 2, None)));
            assert!(refused.head.contains("retry-after"), "{}", refused.head);
        }
        assert_eq!(served.load().requests.refused(), 8 * 50, "more are not");
        drop(held);
        assert!(worked_on.into_iter().all(|answered| answered.join().expect("a client") / 100 == 2));
    });
    wait_for("the load has ended", || served.load().requests.used() == 0);
    assert!(writing(&served, 2, 50).is_empty(), "and it ends with the load");
}

#[test]
fn whether_it_lives_is_said_whatever_the_load_is() {
    let served = served(|limits| (limits.requests_max, limits.waits_max) = (1, 1));
    let _held = waiting(&served, 1);
    assert_eq!((served.get("/livez").status, served.get("/readyz").status), (200, 200));
}

#[test]
fn waits_have_a_limit_of_their_own() {
    let served = served(|limits| limits.waits_max = 2);
    let held = waiting(&served, 2);
    let claim = "POST /v1/claims HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 29\r\n\r\n\
         {\"prefix\":\"n.\",\"wait\":\"99ms\"}";
    let refused = served.send(claim);
    assert_eq!((refused.status, refused.code(), refused.beyond()), (429, "SH-2011", ("waits_max", 2, None)));
    assert_eq!(served.get("/v1/changes?follow=1s").code(), "SH-2011", "whatever waits counts");
    assert_eq!(served.put("1").status / 100, 2, "what does not wait is not held up");
    drop(held);
    assert_eq!(served.send_soon(claim).status, 200, "who goes away makes room");
}

#[test]
fn only_what_can_wait_counts_as_waiting() {
    let served = served(|limits| limits.waits_max = 1);
    let _held = waiting(&served, 1);
    let ask = |line: &str, prefer: &str| {
        let head = format!("{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nprefer: {prefer}\r\n");
        served.send(format!("{head}content-length: 0\r\n\r\n")).code().to_owned()
    };
    for prefer in ["anything", "wait=5", "respond-async, wait=5", "wait=much", "waiting=5", ""] {
        for line in ["PUT /v1/cells/c", "GET /v1/cells/c", "GET /v1/cells", "GET /v1/spaces?follow=5s"] {
            assert_eq!(ask(line, prefer), "SH-1030", "{line} {prefer}: it means nothing there");
        }
    }
    for prefer in ["anything", "respond-async,wait=5", "anything\r\nprefer: wait=5"] {
        assert_eq!(ask("GET /v1/changes", prefer), "SH-1030", "{prefer}");
    }
    assert_eq!(ask("GET /v1/changes", "wait=5"), "SH-2011");
    assert_eq!(ask("GET /v1/changes", "wait=0"), "", "it does not wait");
}

#[test]
fn streams_have_a_limit() {
    let served = served(|limits| limits.streams_max = 2);
    let follow = "GET /v1/changes?follow=true HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
    let mut held: Vec<TcpStream> = (0..2).map(|_| served.connect()).collect();
    for stream in &mut held {
        stream.write_all(follow.as_bytes()).expect("sent");
        let mut head = [0; 15];
        stream.read_exact(&mut head).expect("a head");
        assert_eq!(&head, b"HTTP/1.1 200 OK", "as many as the limit says are served");
    }
    let refused = served.send(follow.replace("accept", "connection: close\r\naccept"));
    assert_eq!((refused.status, refused.code(), refused.beyond()), (429, "SH-2012", ("streams_max", 2, None)));
    assert_eq!(served.put("1").status / 100, 2, "requests are not held up");
    held.pop();
    wait_for("the end is noted", || served.load().streams.used() == 1);
    let mut stream = served.connect();
    stream.write_all(follow.as_bytes()).expect("sent");
    let mut head = [0; 15];
    stream.read_exact(&mut head).expect("a head");
    assert_eq!(&head, b"HTTP/1.1 200 OK", "one that has ended makes room");
}

/// The reads that take a parameter, from the server's own document.
fn reads_with(served: &limited::Served, parameter: &str) -> Vec<String> {
    let document = served.get("/openapi.json").body;
    let paths = document["paths"].as_object().expect("paths");
    let takes = |operation: &serde_json::Value| {
        operation["parameters"].as_array().into_iter().flatten().any(|taken| taken["name"] == parameter)
    };
    let taking = paths.iter().filter(|(_, operations)| takes(&operations["get"]));
    taking
        .map(|(path, _)| path.replace("{session}", "s-1").replace("{partition}", "0").replace(['{', '}'], ""))
        .collect()
}

#[test]
fn a_page_has_at_least_one_row_and_at_most_its_limit() {
    let served = served(|_| {});
    let pages = reads_with(&served, "limit");
    assert!(pages.len() >= 7, "{pages:?}");
    // A stream has no pages.
    let session = "POST /v1/sessions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
    assert_eq!(served.send(session).body["session"], "s-1");
    let append = r#"{"eventType":"A","idempotencyKey":"k"}"#;
    let head = "POST /v1/runs/run/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
    assert_eq!(served.send(format!("{head}content-length: {}\r\n\r\n{append}", append.len())).status, 200);
    let streams = reads_with(&served, "Last-Event-ID");
    assert_eq!(streams.len(), 3, "{streams:?}");
    for stream in streams {
        let head = "host: localhost\r\naccept: text/event-stream\r\nconnection: close\r\n\r\n";
        let paged = served.send(format!("GET {stream}?limit=5 HTTP/1.1\r\n{head}"));
        assert_eq!((paged.status, paged.body["member"].as_str()), (400, Some("limit")), "{stream}: {}", paged.body);
    }
    for page in pages {
        let history = if page == "/v1/cells/name" { "view=history&" } else { "" };
        let none = served.get(&format!("{page}?{history}limit=0"));
        assert_eq!((none.status, none.body["member"].as_str()), (400, Some("limit")), "{page}: {}", none.body);
    }
    for (path, body) in
        [("/v1/claims", r#"{"prefix":"","n":0}"#), ("/v1/pushes/retry", r#"{"sent_before_us":0,"limit":0}"#)]
    {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let none = served.send(head + body);
        assert_eq!(none.status, 400, "{path}: {}", none.body);
        assert!(none.body["member"] == "n" || none.body["member"] == "limit", "{path}: {}", none.body);
    }
}

#[test]
fn a_wait_that_is_too_long_is_refused_and_not_cut() {
    let served = served(|limits| limits.wait_time_max = Duration::from_secs(2));
    let beyond = Some(("wait_time_max", 2_000, Some(2_001)));
    let claim = r#"{"prefix":"","wait":"2001ms"}"#;
    let head = "POST /v1/claims HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
    let refused = served.send(format!("{head}content-length: {}\r\n\r\n{claim}", claim.len()));
    assert_eq!((refused.status, refused.code(), Some(refused.beyond())), (413, "SH-1002", beyond), "{}", refused.body);
    for (parameter, max) in [("follow", "2001ms"), ("wait", "2001ms")] {
        let waiting = reads_with(&served, parameter);
        assert!(!waiting.is_empty(), "{parameter}");
        for path in waiting.iter().filter(|path| parameter == "wait" || *path != "/v1/sessions/s-1/pushes") {
            let refused = served.get(&format!("{path}?{parameter}={max}"));
            assert_eq!((refused.status, Some(refused.beyond())), (413, beyond), "{path}: {}", refused.body);
        }
    }
}

#[test]
fn durations_have_a_unit() {
    let served = served(|_| {});
    let head = "POST /v1/claims HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
    for (member, value) in [("lease", "30"), ("lease", "\"30\""), ("wait", "5"), ("wait", "\"0\"")] {
        let claim = format!("{{\"prefix\":\"\",\"{member}\":{value}}}");
        let refused = served.send(format!("{head}content-length: {}\r\n\r\n{claim}", claim.len()));
        assert_eq!((refused.status, refused.body["member"].as_str()), (400, Some(member)), "{claim}: {}", refused.body);
    }
    let put = served.send(limited::put("/v1/records/r", r#"{"fields":{},"ttl":1000}"#));
    assert_eq!((put.status, put.body["member"].as_str()), (400, Some("ttl")), "{}", put.body);
}

#[test]
fn every_refusal_says_whether_the_write_happened_and_what_a_path_accepts() {
    let served = served(|_| {});
    let asked = |line: &str| served.send(format!("{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"));
    for (line, status) in [
        ("GET /v1/cells/none", 404),
        ("DELETE /v1/records/none", 404),
        ("GET /v1/nowhere", 404),
        ("PUT /v1/claims", 405),
        ("GET /v1/cells/none?x=1", 400),
    ] {
        let refused = asked(line);
        assert_eq!((refused.status, refused.body["outcome"].as_str()), (status, Some("not_applied")), "{line}");
        assert_eq!(refused.body["retryable"], false, "{line}");
    }
    assert!(asked("PUT /v1/claims").head.to_lowercase().contains("allow: post\r\n"));
    assert!(asked("TRACE /v1/cells/c").head.to_lowercase().contains("allow: get, head, put, post, delete\r\n"));
}
