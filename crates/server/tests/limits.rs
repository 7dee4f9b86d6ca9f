//! Every limit of the server, at the limit and one beyond it, through a real socket.
#![allow(clippy::disallowed_methods, reason = "these limits are times of a real client")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value as JsonValue, json};
use statehouse::Statehouse;
use statehouse_server::Server;
use statehouse_server::limits::{JSON_DEPTH_MAX, ServerLimits};
use tokio::sync::oneshot;

/// A server within limits, stopped when this is dropped.
struct Served {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    _directory: tempfile::TempDir,
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()), "the server ended well");
    }
}

fn served(change: impl FnOnce(&mut ServerLimits)) -> Served {
    let mut limits = ServerLimits::default();
    change(&mut limits);
    let directory = tempfile::tempdir().expect("a directory");
    let house = Statehouse::open(directory.path().join("house")).expect("a house");
    let (stop, stopped) = oneshot::channel::<()>();
    let (tell, told) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let address = "127.0.0.1:0".parse().expect("an address");
            let listener = statehouse_server::listen(address).await.expect("a listener");
            tell.send(listener.local_addr().expect("an address")).expect("heard");
            let stop = async {
                let _ = stopped.await;
            };
            statehouse_server::serve_all(listener, Server::new(house).limited(limits), stop).await.expect("served");
        });
    });
    let address = told.recv().expect("an address");
    Served { address, stop: Some(stop), thread: Some(thread), _directory: directory }
}

/// An answer: its status, its head, and its body as JSON.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: JsonValue,
}

impl Answer {
    fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    /// The limit, its bound and what was asked for, as the problem names them.
    fn beyond(&self) -> (&str, u64, Option<u64>) {
        let max = self.body["max"].as_u64().unwrap_or_default();
        (self.body["limit"].as_str().unwrap_or_default(), max, self.body["got"].as_u64())
    }
}

impl Served {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        stream
    }

    /// Sends bytes, and reads until the server ends the connection.
    fn send(&self, request: impl AsRef<[u8]>) -> Answer {
        let mut stream = self.connect();
        // What is refused early is not read to the end: the rest may not be taken.
        let _ = stream.write_all(request.as_ref());
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer, and an end");
        parse(&answer)
    }

    fn get(&self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n"))
    }

    fn put(&self, body: &str) -> Answer {
        self.send(put("/v1/cells/c", body))
    }

    /// Sends until it succeeds: what a client sees end, the server may still have to note.
    fn send_soon(&self, request: &str) -> Answer {
        let began = Instant::now();
        loop {
            let answer = self.send(request);
            if answer.status / 100 == 2 || began.elapsed() > Duration::from_secs(5) {
                return answer;
            }
        }
    }

    fn get_soon(&self, path: &str) -> Answer {
        self.send_soon(&format!("GET {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n"))
    }
}

fn put(path: &str, body: &str) -> String {
    format!("PUT {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn parse(answer: &[u8]) -> Answer {
    let text = std::str::from_utf8(answer).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("a head and a body: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let body = serde_json::from_str(body).unwrap_or_else(|_| panic!("JSON: {text:?}"));
    Answer { status, head: head.to_owned(), body }
}

/// One answer of a connection that stays.
fn read_one(stream: &mut TcpStream) -> Answer {
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a head");
        answer.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&answer).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    let mut body = vec![0; length.trim().parse().expect("a number")];
    stream.read_exact(&mut body).expect("a body");
    answer.extend(body);
    parse(&answer)
}

#[test]
fn the_head_has_a_limit() {
    let served = served(|limits| limits.head_bytes_max = 10_000);
    let of = |length: usize| {
        let before = "GET /livez HTTP/1.1\r\nhost: h\r\nconnection: close\r\nx: ";
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
        format!("GET /livez HTTP/1.1\r\nhost: h\r\nconnection: close\r\n{more}\r\n")
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
    let of = |length: usize| format!("/livez?{}", "x".repeat(length - 7));
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
    let declared = served.send("PUT /v1/cells/c HTTP/1.1\r\nhost: h\r\ncontent-length: 1073741824\r\n\r\n");
    assert_eq!((declared.status, declared.beyond().2), (413, Some(1 << 30)), "before a byte of it came");
    let chunked = |length: usize| {
        let (head, body) = ("PUT /v1/cells/c HTTP/1.1\r\nhost: h\r\nconnection: close\r\n", of(length));
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
    let mut request = b"PUT /v1/cells/c HTTP/1.1\r\nhost: h\r\ncontent-length: 4000000\r\n\r\n".to_vec();
    request.resize(request.len() + 4_000_000, b'x');
    let refused = served.send(request);
    assert_eq!((refused.status, refused.code()), (413, "SH-1042"));
    assert!(refused.head.contains("connection: close"), "{}", refused.head);
}

#[test]
fn compressed_bodies_are_refused() {
    let served = served(|_| {});
    let of = |encoding: &str| {
        let head = "PUT /v1/cells/c HTTP/1.1\r\nhost: h\r\nconnection: close\r\n";
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
        "PUT /v1/cells/c HTTP/1.1\r\nhost: h\r\ncontent-length: many\r\n\r\n",
        "PUT /v1/cells/c HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "PUT /v1/cells/c HTTP/1.1\r\nhost: h\r\ntransfer-encoding: gzip\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let refused = served.send(wrong);
        assert_eq!((refused.status, refused.code()), (400, "SH-1046"), "{wrong:?}");
    }
    let mut stream = served.connect();
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: h\r\n\r\nnonsense\r\n\r\n").expect("sent");
    assert_eq!(read_one(&mut stream).status, 200, "what came before it is answered");
    assert_eq!(read_one(&mut stream).code(), "SH-1046");
}

#[test]
fn a_body_that_is_broken_is_refused_by_name() {
    let served = served(|_| {});
    let head = "PUT /v1/cells/c HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n";
    let refused = served.send(format!("{head}zz\r\n"));
    assert_eq!((refused.status, refused.code()), (400, "SH-1046"));
}

#[test]
fn connections_have_a_limit() {
    let served = served(|limits| limits.connections_max = 2);
    let mut held: Vec<TcpStream> = (0..2).map(|_| served.connect()).collect();
    for stream in &mut held {
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: h\r\n\r\n").expect("sent");
        assert_eq!(read_one(stream).status, 200, "as many as the limit says are served");
    }
    let refused = served.get("/livez");
    assert_eq!((refused.status, refused.code(), refused.beyond()), (503, "SH-2010", ("connections_max", 2, None)));
    assert!(refused.head.contains("retry-after"), "{}", refused.head);
    held.pop();
    assert_eq!(served.get_soon("/livez").status, 200, "one that has ended makes room");
}

/// Claims that wait, so that requests are under way; each is on a connection of its own.
fn waiting(served: &Served, count: usize) -> Vec<TcpStream> {
    let body = r#"{"prefix":"nothing.","wait":"30s"}"#;
    let claim = format!("POST /v1/claims HTTP/1.1\r\nhost: h\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let streams: Vec<TcpStream> = (0..count).map(|_| served.connect()).collect();
    for mut stream in &streams {
        stream.write_all(claim.as_bytes()).expect("sent");
    }
    std::thread::sleep(Duration::from_millis(300));
    streams
}

/// Writes from many clients at a time; those that were refused.
fn writing(served: &Served, clients: usize, writes: usize) -> Vec<Answer> {
    let write = |client: usize| {
        let mut stream = served.connect();
        let request = format!("PUT /v1/cells/c{client} HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\n\r\n1");
        let one = |_| {
            stream.write_all(request.as_bytes()).expect("sent");
            read_one(&mut stream)
        };
        (0..writes).map(one).filter(|answer| answer.status / 100 != 2).collect::<Vec<_>>()
    };
    let write = &write;
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..clients).map(|client| scope.spawn(move || write(client))).collect();
        clients.into_iter().flat_map(|client| client.join().expect("a client")).collect()
    })
}

#[test]
fn requests_have_a_limit() {
    let served = served(|limits| limits.requests_max = 2);
    assert!(writing(&served, 2, 50).is_empty(), "as many as the limit says are worked on");
    let refused = writing(&served, 8, 50);
    assert!(!refused.is_empty(), "more are not");
    for refused in refused {
        assert_eq!((refused.status, refused.code(), refused.beyond()), (429, "SH-2011", ("requests_max", 2, None)));
        assert!(refused.head.contains("retry-after"), "{}", refused.head);
    }
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
    let claim =
        "POST /v1/claims HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 15\r\n\r\n{\"prefix\":\"n.\"}";
    let refused = served.send(claim);
    assert_eq!((refused.status, refused.code(), refused.beyond()), (429, "SH-2011", ("waits_max", 2, None)));
    assert_eq!(served.get("/v1/changes?follow=1s").code(), "SH-2011", "whatever waits counts");
    assert_eq!(served.put("1").status / 100, 2, "what does not wait is not held up");
    drop(held);
    assert_eq!(served.send_soon(claim).status, 200, "who goes away makes room");
}

#[test]
fn streams_have_a_limit() {
    let served = served(|limits| limits.streams_max = 2);
    let follow = "GET /v1/changes?follow=true HTTP/1.1\r\nhost: h\r\naccept: text/event-stream\r\n\r\n";
    let mut held: Vec<TcpStream> = (0..2).map(|_| served.connect()).collect();
    for stream in &mut held {
        stream.write_all(follow.as_bytes()).expect("sent");
        let mut head = [0; 15];
        stream.read_exact(&mut head).expect("a head");
        assert_eq!(&head, b"HTTP/1.1 200 OK", "as many as the limit says are served");
    }
    let refused = served.send(follow.replace("host: h", "connection: close"));
    assert_eq!((refused.status, refused.code(), refused.beyond()), (429, "SH-2012", ("streams_max", 2, None)));
    assert_eq!(served.put("1").status / 100, 2, "requests are not held up");
    held.pop();
    std::thread::sleep(Duration::from_millis(300));
    let mut stream = served.connect();
    stream.write_all(follow.as_bytes()).expect("sent");
    let mut head = [0; 15];
    stream.read_exact(&mut head).expect("a head");
    assert_eq!(&head, b"HTTP/1.1 200 OK", "one that has ended makes room");
}

#[test]
fn memory_for_requests_has_a_limit() {
    // Three times its bytes, and one value.
    let served = served(|limits| limits.request_memory_bytes_max = 31 << 10);
    let of = |length: usize| format!("\"{}\"", "x".repeat(length - 2));
    assert_eq!(served.put(&of(10_560)).status / 100, 2);
    let refused = served.put(&of(10_561));
    let beyond = ("request_memory_bytes_max", 31 << 10, Some(10_561 * 3 + 64));
    assert_eq!((refused.status, refused.code(), refused.beyond()), (413, "SH-1047", beyond));
    let dense = served.put(&format!("[{}0]", "{\"\":0},".repeat(100)));
    assert_eq!((dense.status, dense.code()), (413, "SH-1047"), "what grows when it is parsed counts as it will be");
}

#[test]
fn memory_that_others_hold_is_waited_for() {
    let served = served(|limits| limits.request_memory_bytes_max = 31 << 10);
    let body = format!("\"{}\"", "x".repeat(10_000));
    let mut half = served.connect();
    let head = "PUT /v1/cells/half HTTP/1.1\r\nhost: h\r\ncontent-length: 20000\r\n\r\n";
    half.write_all(format!("{head}{}", "x".repeat(16_000)).as_bytes()).expect("sent");
    std::thread::sleep(Duration::from_millis(300));
    let refused = served.put(&body);
    assert_eq!((refused.status, refused.code()), (429, "SH-2014"));
    drop(half);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(served.put(&body).status / 100, 2, "what is given back can be used");
}

#[test]
fn heads_and_bodies_have_times() {
    let served = served(|limits| {
        limits.head_time_max = Duration::from_millis(400);
        limits.body_time_max = Duration::from_millis(400);
    });
    let slowly = |parts: [&str; 2], pause_ms: u64| {
        let mut stream = served.connect();
        let began = Instant::now();
        stream.write_all(parts[0].as_bytes()).expect("sent");
        std::thread::sleep(Duration::from_millis(pause_ms));
        let _ = stream.write_all(parts[1].as_bytes());
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        (parse(&answer), began.elapsed())
    };
    let head = ["GET /livez HTTP/1.1\r\nhost: h\r\n", "connection: close\r\n\r\n"];
    assert_eq!(slowly(head, 100).0.status, 200);
    let (refused, took) = slowly([head[0], ""], 0);
    assert_eq!((refused.status, refused.code(), refused.beyond()), (408, "SH-1043", ("head_time_max", 400, None)));
    assert!(took > Duration::from_millis(390) && took < Duration::from_millis(1300), "{took:?}");
    let body = ["PUT /v1/cells/c HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 3\r\n\r\n\"a", "\""];
    assert_eq!(slowly(body, 100).0.status / 100, 2);
    let (refused, took) = slowly([body[0], ""], 0);
    assert_eq!((refused.status, refused.code(), refused.beyond()), (408, "SH-1043", ("body_time_max", 400, None)));
    assert!(took > Duration::from_millis(390) && took < Duration::from_millis(1300), "{took:?}");
}

#[test]
fn drops_of_a_head_do_not_win_time() {
    let served = served(|limits| limits.head_time_max = Duration::from_millis(400));
    let mut stream = served.connect();
    let began = Instant::now();
    let mut sent = 0;
    while stream.write_all(b"G").is_ok() && began.elapsed() < Duration::from_secs(5) {
        sent += 1;
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(sent < 40, "{sent} letters, each in time");
    assert!(began.elapsed() < Duration::from_secs(3));
}

#[test]
fn idle_connections_end() {
    let served = served(|limits| limits.idle_time_max = Duration::from_millis(500));
    let mut stream = served.connect();
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(250));
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: h\r\n\r\n").expect("sent");
        assert_eq!(read_one(&mut stream).status, 200, "each request begins the time anew");
    }
    let began = Instant::now();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("an end");
    assert!(rest.is_empty(), "without a word");
    assert!(began.elapsed() > Duration::from_millis(400) && began.elapsed() < Duration::from_secs(2));
}

#[test]
fn requests_have_a_time_beyond_their_wait() {
    let served = served(|limits| {
        limits.request_time_max = Duration::from_millis(300);
        limits.wait_time_max = Duration::from_millis(200);
    });
    assert_eq!(served.get("/v1/changes?follow=100ms").status, 200);
    // The handler knows nothing of our limit, and waits longer.
    let refused = served.get("/v1/changes?follow=3s");
    assert_eq!((refused.status, refused.code(), refused.beyond()), (504, "SH-2013", ("request_time_max", 500, None)));
    assert_eq!(refused.body["outcome"], "unknown");
}

#[test]
fn who_takes_nothing_is_cut() {
    let served = served(|limits| {
        limits.connections_max = 1;
        limits.send_buffer_bytes_max = 16 << 10;
        limits.write_stall_time_max = Duration::from_millis(500);
    });
    let value = json!("x".repeat(1_000_000)).to_string();
    for name in 0..8 {
        let written = served.send_soon(&put(&format!("/v1/cells/c{name}"), &value));
        assert_eq!(written.status / 100, 2);
    }
    // The server has to note that the last connection has ended: there is room for one.
    std::thread::sleep(Duration::from_millis(500));
    let mut slow = served.connect();
    slow.write_all(b"GET /v1/cells?prefix=c&limit=100 HTTP/1.1\r\nhost: h\r\n\r\n").expect("sent");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(served.get("/livez").code(), "SH-2010", "it is served until then");
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(served.get_soon("/livez").status, 200, "and holds nothing then");
    let mut taken = Vec::new();
    let end = slow.read_to_end(&mut taken);
    assert!(end.is_err() || taken.len() < 4_000_000, "it did not get all of it");

    // One that takes a little at a time gets all of it.
    std::thread::sleep(Duration::from_millis(500));
    let mut steady = served.connect();
    steady
        .write_all(b"GET /v1/cells?prefix=c&limit=100 HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")
        .expect("sent");
    let mut taken = Vec::new();
    let mut part = vec![0; 500_000];
    loop {
        let read = steady.read(&mut part).expect("it goes on");
        if read == 0 {
            break;
        }
        taken.extend_from_slice(&part[..read]);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(taken.len() > 4_000_000, "{} bytes", taken.len());
}

#[test]
fn a_stop_answers_what_is_under_way_and_refuses_the_rest_by_name() {
    let mut served = served(|_| {});
    let mut held = waiting(&served, 1);
    let mut idle = served.connect();
    idle.write_all(b"GET /readyz HTTP/1.1\r\nhost: h\r\n\r\n").expect("sent");
    assert_eq!(read_one(&mut idle).status, 200);
    let mut slow = served.connect();
    let half = "PUT /v1/cells/c HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\n\"a";
    slow.write_all(half.as_bytes()).expect("sent");
    std::thread::sleep(Duration::from_millis(100));
    drop(served.stop.take());
    std::thread::sleep(Duration::from_millis(100));
    let refused = served.put("1");
    assert_eq!((refused.status, refused.code()), (503, "SH-2016"));
    let ready = served.get("/readyz");
    assert_eq!((ready.status, &ready.body["ready"]), (503, &json!(false)));
    assert_eq!(served.get("/livez").status, 200);
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).expect("an end");
    assert!(rest.is_empty(), "an idle connection ends");
    slow.write_all(b"\"").expect("sent");
    assert_eq!(read_one(&mut slow).status / 100, 2, "what is under way is answered");
    let told = read_one(&mut held[0]);
    assert_eq!((told.status, &told.body["claimed"]), (200, &json!([])), "whoever waits is told to ask again");
    served.thread.take().expect("a thread").join().expect("the server ended well");
    assert!(TcpStream::connect(served.address).is_err(), "nobody listens");
}

#[test]
fn a_stop_waits_no_longer_than_it_may() {
    let mut served = served(|limits| limits.drain_time_max = Duration::from_millis(500));
    let mut slow = served.connect();
    slow.write_all(b"PUT /v1/cells/c HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\n\"a").expect("sent");
    std::thread::sleep(Duration::from_millis(100));
    let began = Instant::now();
    drop(served.stop.take());
    served.thread.take().expect("a thread").join().expect("the server ended well");
    let took = began.elapsed();
    assert!(took > Duration::from_millis(450) && took < Duration::from_secs(4), "{took:?}");
}
