//! A server within limits, and clients that go up to them and beyond. They have sockets of their own: half a head, a body that
//! does not come and an answer that nobody reads are no requests that a client sends.

#![allow(dead_code, reason = "each file of tests uses a part of it")]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value as JsonValue;
use statehouse::Options;
use statehouse_server::Server;
use statehouse_server::limits::ServerLimits;
use statehouse_server::load::Load;

use crate::running::Running;

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server within limits, stopped when this is dropped.
pub struct Served(pub Running);

pub fn served(change: impl FnOnce(&mut ServerLimits)) -> Served {
    let mut limits = ServerLimits::default();
    change(&mut limits);
    Served(Running::start(&Options::default(), move |house| Server::new(house).limited(limits)))
}

/// The same with a time that stands still between two calls of [`Served::pass`].
pub fn held(options: &Options, change: impl FnOnce(&mut ServerLimits)) -> Served {
    let mut limits = ServerLimits::default();
    change(&mut limits);
    Served(Running::start_held(options, move |house| Server::new(house).limited(limits)))
}

/// An answer: its status, its head, and its body as JSON.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: JsonValue,
}

impl Answer {
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    /// The limit, its bound and what was asked for, as the problem names them.
    pub fn beyond(&self) -> (&str, u64, Option<u64>) {
        let max = self.body["max"].as_u64().unwrap_or_default();
        (self.body["limit"].as_str().unwrap_or_default(), max, self.body["got"].as_u64())
    }
}

impl Served {
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.0.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// Sends bytes, and reads until the server ends the connection.
    pub fn send(&self, request: impl AsRef<[u8]>) -> Answer {
        let mut stream = self.connect();
        // What is refused early is not read to the end: the rest may not be taken.
        let _ = stream.write_all(request.as_ref());
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer, and an end");
        parse(&answer)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"))
    }

    pub fn put(&self, body: &str) -> Answer {
        self.send(put("/v1/cells/c", body))
    }

    /// Sends until it succeeds: what a client sees end, the server may still have to note.
    pub fn send_soon(&self, request: &str) -> Answer {
        let mut answer = self.send(request);
        wait_for("an answer that is no refusal", || {
            if answer.status / 100 != 2 {
                answer = self.send(request);
            }
            answer.status / 100 == 2
        });
        answer
    }

    /// The current use of the limits.
    pub fn load(&self) -> &Load {
        self.0.server.load()
    }

    /// Returns when a server with a held time has read all that was sent to it, and done what needs nobody else. Its connections
    /// share a thread, which takes them in the order of what arrives: the requests sent here come behind.
    pub fn settle(&self) {
        for _ in 0..2 {
            self.get("/livez");
        }
    }

    /// Lets time pass for a server with a held time, from when it has settled until it has again.
    pub fn pass(&self, ms: u64) {
        self.settle();
        self.0.advance(Duration::from_millis(ms));
        self.settle();
    }

    pub fn get_soon(&self, path: &str) -> Answer {
        self.send_soon(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"))
    }
}

pub fn put(path: &str, body: &str) -> String {
    format!(
        "PUT {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub fn parse(answer: &[u8]) -> Answer {
    let text = std::str::from_utf8(answer).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("a head and a body: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let body = serde_json::from_str(body).unwrap_or_else(|_| panic!("JSON: {text:?}"));
    Answer { status, head: head.to_owned(), body }
}

/// One answer of a connection that stays.
pub fn read_one(stream: &mut TcpStream) -> Answer {
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

/// Claims that wait, so that requests are under way; each is on a connection of its own.
pub fn waiting(served: &Served, count: usize) -> Vec<TcpStream> {
    let body = r#"{"prefix":"nothing.","wait":"30s"}"#;
    let claim = format!("POST /v1/claims HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let streams: Vec<TcpStream> = (0..count).map(|_| served.connect()).collect();
    for mut stream in &streams {
        stream.write_all(claim.as_bytes()).expect("sent");
    }
    wait_for("all of them wait", || served.load().waits.used() == count);
    streams
}

/// Whether nothing has arrived on a connection, and it has not ended.
pub fn is_silent(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a socket");
    let peeked = stream.peek(&mut [0]);
    stream.set_nonblocking(false).expect("a socket");
    peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// Waits for what must happen, as long as it may take on a machine with other work.
pub fn wait_for(what: &str, mut happens: impl FnMut() -> bool) {
    const PAUSE: Duration = Duration::from_millis(5);
    let mut waited = Duration::ZERO;
    while !happens() {
        assert!(waited < PATIENCE, "never: {what}");
        std::thread::sleep(PAUSE);
        waited += PAUSE;
    }
}

/// Writes from many clients at a time; those that were refused.
pub fn writing(served: &Served, clients: usize, writes: usize) -> Vec<Answer> {
    let write = |client: usize| {
        let mut stream = served.connect();
        let request = format!("PUT /v1/cells/c{client} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n\r\n1");
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
