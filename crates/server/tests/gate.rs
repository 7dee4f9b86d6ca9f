//! The gate, through a real socket: who is let in, and the headers of every answer.

mod limited;
mod running;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use limited::{Served, parse, read_one, served, wait_for};
use statehouse::Options;
use statehouse_server::Server;
use statehouse_server::gate::Hosts;
use statehouse_server::limits::ServerLimits;

fn status_and_code(served: &Served, target: &str, headers: &str) -> (u16, String) {
    let answer = served.send(format!("{target}\r\nconnection: close\r\n{headers}\r\n"));
    (answer.status, answer.code().to_owned())
}

#[test]
fn a_request_has_one_host_which_is_ours() {
    let served = served(|_| {});
    let get = |headers: &str| status_and_code(&served, "GET /v1/spaces HTTP/1.1", headers);
    for ours in
        ["localhost", "LocalHost:1", "127.0.0.1", "127.0.0.1:7420", "[::1]:7420", "192.168.7.7:80", " localhost\t"]
    {
        assert_eq!(get(&format!("host: {ours}\r\n")), (200, String::new()), "{ours:?}");
    }
    for other in ["evil.example", "evil.example:7420", "localhost.", "local host", "", "a@localhost", "loc\u{e4}l"] {
        assert_eq!(get(&format!("host: {other}\r\n")), (421, "SH-1060".into()), "{other:?}");
    }
    for none_or_two in ["", "host: localhost\r\nHOST: localhost\r\n", "host: localhost\r\nhost: evil.example\r\n"] {
        assert_eq!(get(none_or_two), (421, "SH-1060".into()), "{none_or_two:?}");
    }
    let forwarded = "host: evil.example\r\nx-forwarded-host: localhost\r\nforwarded: host=localhost\r\n";
    assert_eq!(get(forwarded), (421, "SH-1060".into()));
    assert_eq!(get("host: localhost\r\nx-forwarded-host: evil.example\r\n"), (200, String::new()));
}

#[test]
fn the_target_says_the_same_host_or_none() {
    let served = served(|_| {});
    let ask = |line: &str, host: &str| status_and_code(&served, line, &format!("host: {host}\r\n"));
    for (line, host) in [
        ("GET http://localhost:7420/v1/spaces HTTP/1.1", "localhost:7420"),
        ("GET HTTP://LOCALHOST/v1/spaces HTTP/1.1", "localhost:80"),
        ("GET http://[::1]:1/v1/spaces HTTP/1.1", "[0::1]:1"),
        ("GET /v1/spaces HTTP/1.0", "localhost"),
    ] {
        assert_eq!(ask(line, host), (200, String::new()), "{line}");
    }
    for (line, host) in [
        ("GET http://evil.example/v1/spaces HTTP/1.1", "localhost"),
        ("GET http://evil.example/v1/spaces HTTP/1.1", "evil.example"),
        ("GET http://localhost/v1/spaces HTTP/1.1", "evil.example"),
        ("GET http://localhost:1/v1/spaces HTTP/1.1", "localhost"),
        ("GET http://a@localhost/v1/spaces HTTP/1.1", "localhost"),
        ("GET https://localhost/v1/spaces HTTP/1.1", "localhost"),
        ("GET ftp://localhost/v1/spaces HTTP/1.1", "localhost"),
        ("GET localhost HTTP/1.1", "localhost"),
        ("OPTIONS * HTTP/1.1", "localhost"),
        ("CONNECT localhost:7420 HTTP/1.1", "localhost:7420"),
        ("CONNECT /v1/spaces HTTP/1.1", "localhost"),
    ] {
        assert_eq!(ask(line, host), (421, "SH-1060".into()), "{line}");
    }
    let without = served.send("GET /livez HTTP/1.0\r\n\r\n");
    assert_eq!((without.status, without.code()), (421, "SH-1060"));
}

#[test]
fn names_are_answered_to_when_they_are_listed() {
    let mut hosts = Hosts::default();
    assert!(hosts.add("State.Internal"));
    let served = Served(running::Running::start(&Options::default(), |house| Server::new(house).answering_to(hosts)));
    let get = |headers: &str| status_and_code(&served, "GET /v1/spaces HTTP/1.1", headers);
    assert_eq!(get("host: state.internal:7420\r\n").0, 200);
    assert_eq!(get("host: state.internal\r\norigin: https://state.internal\r\n").0, 200, "behind a proxy with TLS");
    assert_eq!(get("host: localhost\r\norigin: https://localhost\r\n").0, 403);
    for other in ["state.internal.evil.example", "x.state.internal", "internal"] {
        assert_eq!(get(&format!("host: {other}\r\n")).0, 421, "{other}");
    }
}

#[test]
fn pages_of_other_origins_get_nothing_but_probes_and_documentation() {
    let served = served(|_| {});
    let host = "host: localhost:7420\r\n";
    let foreign = [
        "origin: https://evil.example\r\n",
        "origin: null\r\n",
        "origin: \r\n",
        "origin: http://localhost:7421\r\n",
        "origin: http://127.0.0.1:7420\r\n",
        "origin: http://localhost:7420\r\norigin: https://evil.example\r\n",
        "sec-fetch-site: cross-site\r\n",
        "sec-fetch-site: same-site\r\n",
        "sec-fetch-site: anything\r\n",
        "sec-fetch-site: same-origin\r\nsec-fetch-site: cross-site\r\n",
        "origin: http://localhost:7420\r\nsec-fetch-site: cross-site\r\n",
    ];
    let delete = r#"{"do":[{"op":"cell.delete","name":"c"}]}"#;
    assert_eq!(served.put("1").status, 201);
    for page in foreign {
        let headers = format!("{host}{page}");
        for line in
            ["GET /v1/cells/c", "GET /v1/backup", "GET /metrics", "GET /status", "OPTIONS /v1/cells/c", "POST /livez"]
        {
            let answer = status_and_code(&served, &format!("{line} HTTP/1.1"), &headers);
            assert_eq!(answer, (403, "SH-1061".into()), "{line} {page}");
        }
        let simple = format!(
            "POST /v1/groups/c/txn HTTP/1.1\r\nconnection: close\r\n{headers}content-type: text/plain\r\ncontent-length: {}\r\n\r\n{delete}",
            delete.len()
        );
        assert_eq!(served.send(simple).code(), "SH-1061", "{page}");
        for path in ["/livez", "/readyz", "/startupz", "/openapi.json"] {
            assert_eq!(status_and_code(&served, &format!("GET {path} HTTP/1.1"), &headers).0, 200, "{path} {page}");
        }
        for path in ["/docs", "/v1/errors/SH-1061"] {
            let answer = raw(&served, &format!("GET {path} HTTP/1.1\r\nconnection: close\r\n{headers}\r\n"));
            assert!(answer.starts_with("HTTP/1.1 200"), "{path} {page}: {answer}");
        }
    }
    for page in ["", "sec-fetch-site: none\r\n", "origin: http://localhost:7420\r\nsec-fetch-site: same-origin\r\n"] {
        let answer = status_and_code(&served, "GET /v1/cells/c HTTP/1.1", &format!("{host}{page}"));
        assert_eq!(answer.0, 200, "{page}");
    }
    assert_eq!(served.get("/v1/cells/c").body["version"], 1);
}

/// A whole answer as text.
fn raw(served: &Served, request: &str) -> String {
    let mut stream = served.connect();
    let _ = stream.write_all(request.as_bytes());
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer, and an end");
    answer
}

fn is_hardened(head: &str) -> bool {
    let head = head.to_lowercase();
    ["x-content-type-options: nosniff", "cache-control: no-store", "content-security-policy: default-src 'none';"]
        .iter()
        .all(|line| head.lines().filter(|said| said.starts_with(line)).count() == 1)
        && !head.contains("unsafe-inline")
}

#[test]
fn every_answer_has_the_headers() {
    let served = served(|limits: &mut ServerLimits| {
        limits.head_time_max = Duration::from_millis(300);
        limits.head_bytes_max = 10_000;
        limits.connections_max = 2;
    });
    let close = "host: localhost\r\nconnection: close\r\n";
    for request in [
        format!("GET /livez HTTP/1.1\r\n{close}\r\n"),
        format!("GET /docs HTTP/1.1\r\n{close}\r\n"),
        format!("HEAD /v1/cells HTTP/1.1\r\n{close}\r\n"),
        format!("GET /metrics HTTP/1.1\r\n{close}\r\n"),
        format!("GET /v1/backup HTTP/1.1\r\n{close}\r\n"),
        format!("GET /nowhere HTTP/1.1\r\n{close}\r\n"),
        format!("DELETE /v1/claims HTTP/1.1\r\n{close}\r\n"),
        format!("PUT /v1/cells/c HTTP/1.1\r\n{close}content-encoding: gzip\r\n\r\n"),
        "GET /livez HTTP/1.1\r\nhost: evil.example\r\n\r\n".to_owned(),
        format!("GET /livez HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(2000)),
        "nonsense\r\n\r\n".to_owned(),
        "GET /livez HTTP/1.1\r\nhost: loc".to_owned(),
    ] {
        let mut stream = served.connect();
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer, and an end");
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8_lossy(&answer[..end]);
        assert!(is_hardened(&head), "{request:?}: {head}");
        drop(stream);
        // Another answer would be the refusal of one connection too many.
        wait_for("its end is noted", || served.load().connections.used() == 0);
    }
    let mut stream = served.connect();
    let follow = format!("GET /v1/changes?follow=true HTTP/1.1\r\n{close}accept: text/event-stream\r\n\r\n");
    stream.write_all(follow.as_bytes()).expect("sent");
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    assert!(is_hardened(&String::from_utf8_lossy(&head)), "a stream: {}", String::from_utf8_lossy(&head));
    let mut second: TcpStream = served.connect();
    second.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("sent");
    assert_eq!(read_one(&mut second).status, 200);
    let refused = raw(&served, &format!("GET /livez HTTP/1.1\r\n{close}\r\n"));
    assert_eq!(parse(refused.as_bytes()).code(), "SH-2010");
    assert!(is_hardened(&refused), "{refused}");
}
