//! The requests of hostile clients, and the required answers. They use their own sockets: they send no HTTP or only half of
//! it, or leave answers unread.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use testkit::http::{Client, Request};

/// How long an exchange may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Concurrent senders; few, since they share their cores with the server.
const SENDERS: u64 = 2;

/// The outcome of a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// A problem with this code.
    Refused(String),
    /// A stream that ended with `lagged`.
    Lagged,
    /// An answer that is not a refusal.
    Answered,
    /// Closed, without an answer or in the middle of one.
    Ended,
    /// Silent for too long.
    Open,
}

/// The outcomes of each kind.
#[derive(Default)]
pub(super) struct Tally {
    kinds: BTreeMap<&'static str, BTreeMap<Outcome, u64>>,
    as_promised: u64,
    expected: u64,
}

impl Tally {
    fn add(&mut self, kind: &'static str, promised: &[Outcome], outcome: Outcome) {
        self.expected += 1;
        self.as_promised += u64::from(promised.contains(&outcome));
        *self.kinds.entry(kind).or_default().entry(outcome).or_default() += 1;
    }

    /// How many had the promised outcome.
    pub(super) fn by_name(&self) -> u64 {
        self.as_promised
    }

    /// How many there were.
    pub(super) fn expected(&self) -> u64 {
        self.expected
    }

    pub(super) fn print(&self) {
        for (kind, outcomes) in &self.kinds {
            let outcomes: Vec<_> = outcomes.iter().map(|(outcome, count)| format!("{count} {outcome:?}")).collect();
            println!("{kind}: {}", outcomes.join(", "));
        }
    }
}

fn code(code: &str) -> Outcome {
    Outcome::Refused(code.to_owned())
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the listener takes connections");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Reads to the end and returns the outcome.
fn outcome(stream: &mut TcpStream) -> Outcome {
    let mut said = Vec::new();
    let mut part = vec![0; 64 << 10];
    let open = loop {
        match stream.read(&mut part) {
            Ok(0) => break false,
            Ok(read) => said.extend_from_slice(&part[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => break matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        }
    };
    let said = String::from_utf8_lossy(&said);
    if let Some((_, after)) = said.split_once("\"code\":\"SH-") {
        return code(&format!("SH-{}", &after[..4]));
    }
    match (open, said.contains("event: lagged"), said.starts_with("HTTP/1.1 2") && !said.contains("event-stream")) {
        (_, true, _) => Outcome::Lagged,
        (_, _, true) => Outcome::Answered,
        (true, ..) => Outcome::Open,
        (false, ..) => Outcome::Ended,
    }
}

/// Sends a request in one go; bytes that the server does not take are dropped.
fn send(address: SocketAddr, head: &str, body: &[u8]) -> Outcome {
    let mut stream = connect(address);
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
    outcome(&mut stream)
}

fn put(headers: &str) -> String {
    format!("PUT /v1/cells/hostile HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n")
}

fn put_of(body: &[u8]) -> String {
    put(&format!("content-length: {}\r\n", body.len()))
}

/// Requests that are refused on sight: oversized, 1 GiB declared, deep and wide JSON, compressed bodies, heads too large, nonsense.
pub(super) fn at_once(address: SocketAddr, each: u64, tally: &mut Tally) {
    let large = vec![b'x'; 5 << 20];
    let chunked: Vec<u8> = [b"100000\r\n".as_slice(), &large[..1 << 20], b"\r\n"].concat().repeat(5);
    let deep = "[".repeat(10_000).into_bytes();
    let deeper = "[".repeat(1 << 20).into_bytes();
    let wide = format!("[{}0]", "[],".repeat(1 << 20)).into_bytes();
    let objects = format!("[{}0]", "{\"\":0},".repeat(500_000)).into_bytes();
    // The first bytes of a file that expands a thousandfold.
    let bomb = [b"\x1f\x8b\x08\0\0\0\0\0\0\x03".as_slice(), &[0; 10 << 10]].concat();
    let long_header = put(&format!("x: {}\r\n", "x".repeat(1 << 20)));
    let attacks: [(&'static str, String, &[u8], &[&str]); 10] = [
        ("5 MiB body", put_of(&large), &large, &["SH-1042"]),
        ("5 MiB in chunks", put("transfer-encoding: chunked\r\n"), &chunked, &["SH-1042"]),
        ("1 GiB declared", put("content-length: 1073741824\r\n"), b"\"", &["SH-1042"]),
        ("deep JSON", put_of(&deep), &deep, &["SH-1045"]),
        // Parsing it takes more memory than requests may use.
        ("a million deep", put_of(&deeper), &deeper, &["SH-1047", "SH-2014"]),
        ("wide JSON", put_of(&wide), &wide, &["SH-1047", "SH-2014"]),
        ("half a million objects", put_of(&objects), &objects, &["SH-1047", "SH-2014"]),
        (
            "gzip bomb",
            put(&format!("content-encoding: gzip\r\ncontent-length: {}\r\n", bomb.len())),
            &bomb,
            &["SH-1044"],
        ),
        ("1 MiB header", long_header, b"", &["SH-1040"]),
        ("nonsense", "\u{1}\u{2}\u{3}\r\n\r\n".to_owned(), b"", &["SH-1046"]),
    ];
    for (kind, head, body, codes) in &attacks {
        let promised: Vec<_> = codes.iter().map(|name| code(name)).collect();
        let outcomes = std::thread::scope(|scope| {
            let senders: Vec<_> = (0..SENDERS)
                .map(|sender| {
                    let count = each / SENDERS + u64::from(sender < each % SENDERS);
                    scope.spawn(move || (0..count).map(|_| send(address, head, body)).collect::<Vec<_>>())
                })
                .collect();
            senders.into_iter().flat_map(|sender| sender.join().expect("a sender")).collect::<Vec<_>>()
        });
        for outcome in outcomes {
            tally.add(kind, &promised, outcome);
        }
    }
}

/// Heads and bodies that trickle in byte by byte.
pub(super) fn slowly(address: SocketAddr, each: u64, tally: &mut Tally) {
    let kinds =
        [("slow head", "GET /livez HTTP/1.1\r\nhost: ".to_owned()), ("slow body", put("content-length: 1000000\r\n"))];
    let mut streams = Vec::new();
    for (kind, begin) in &kinds {
        for _ in 0..each {
            let mut stream = connect(address);
            let _ = stream.write_all(begin.as_bytes());
            streams.push((*kind, stream));
        }
    }
    for _ in 0..8 {
        std::thread::sleep(Duration::from_millis(400));
        for (_, stream) in &mut streams {
            let _ = stream.write_all(b"1");
        }
    }
    for (kind, mut stream) in streams {
        tally.add(kind, &[code("SH-1043"), code("SH-2010")], outcome(&mut stream));
    }
}

/// Clients that stop sending in the middle and stay, and clients that disconnect in the middle.
pub(super) fn half_open(address: SocketAddr, each: u64, tally: &mut Tally) {
    let mut streams = Vec::new();
    for _ in 0..each {
        let mut in_head = connect(address);
        let _ = in_head.write_all(b"GET /livez HTT");
        let mut in_body = connect(address);
        let _ =
            in_body.write_all(put("content-length: 1000\r\n").as_bytes()).and_then(|()| in_body.write_all(b"\"half"));
        for stream in [&in_head, &in_body] {
            let _ = stream.shutdown(Shutdown::Write);
        }
        let mut gone = connect(address);
        let _ = gone.write_all(put("content-length: 1000\r\n").as_bytes());
        drop(gone);
        streams.push((in_head, in_body));
    }
    for (mut in_head, mut in_body) in streams {
        // An incomplete head is not a request, so no answer is due.
        tally.add("half a head", &[Outcome::Ended, code("SH-1046")], outcome(&mut in_head));
        tally.add("half a body", &[code("SH-1046"), Outcome::Ended], outcome(&mut in_body));
    }
}

/// Streams that are not read until the server has given up.
pub(super) fn slow_readers(address: SocketAddr, readers: u64, tally: &mut Tally) {
    let client = Client::to(address);
    let data = "d".repeat(32 << 10);
    for number in 0..200 {
        let event = format!(
            "{{\"eventType\":\"Step\",\"idempotencyKey\":\"{number}\",\"emittedAt\":\"2026-02-11T10:00:00Z\",\"eventData\":{{\"d\":\"{data}\"}}}}"
        );
        client.call(Request::post("/v1/runs/hostile/events").body(event)).expect("appended");
    }
    let follow = "GET /v1/runs/hostile/events?after=0&follow=true HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
    let mut streams = Vec::new();
    for _ in 0..readers {
        let mut stream = connect(address);
        let _ = stream.write_all(follow.as_bytes());
        streams.push(stream);
    }
    // Longer than a client may stop reading.
    std::thread::sleep(Duration::from_secs(12));
    for mut stream in streams {
        let promised = [code("SH-2012"), code("SH-2010"), Outcome::Lagged, Outcome::Ended];
        let outcome = outcome(&mut stream);
        tally.add("slow reader of a stream", &promised, outcome);
    }
}

/// Idle connections.
pub(super) fn idle(address: SocketAddr, count: u64, tally: &mut Tally) {
    let streams: Vec<_> = (0..count).map(|_| connect(address)).collect();
    for mut stream in streams {
        tally.add("idle connection", &[Outcome::Ended, code("SH-2010")], outcome(&mut stream));
    }
}
