//! `sim edge-listings --listings 1024 --seconds 10 --rounds 3`: clients request listings of 4 MiB from a server in 512 MiB and
//! do not read them. They use their own sockets, because a real client reads. The server must not be killed, and a
//! well-behaved client must hardly notice.
//!
//! Touches: its own server process, and a control group under this program's. Never: counts a refusal of the well-behaved
//! client as an answer.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use testkit::arguments::Arguments;
use testkit::http::Client;
use testkit::http::message::Request;
use testkit::report::Report;
use testkit::server_process::binary;

use crate::hostile::honest::Honest;
use crate::hostile::limit::Limited;

/// The memory limit of the process.
const MEMORY_BYTES: u64 = 512 << 20;

/// Rows of each listing, and bytes of each row: a page ends with the row that reaches 4 MiB.
const ROWS: usize = 5;
const ROW_BYTES: usize = 1_000_000;

/// The listings. The feed has only names, but many of them.
const LISTINGS: [&str; 6] = [
    "/v1/cells?prefix=large/&limit=1000",
    "/v1/cells/versions?view=history",
    "/v1/records?prefix=large.&limit=1000",
    "/v1/runs/large/events",
    "/v1/maps/large/keys?limit=1000",
    "/v1/changes?from=c-0&limit=1000",
];

/// How often each client repeats its request on the same connection without reading anything. They do not all ask at once.
const AGAIN_EVERY: Duration = Duration::from_secs(1);

/// Leaves listings unread, and measures a well-behaved client meanwhile.
pub(crate) fn run(arguments: &Arguments) -> Report {
    server::descriptors::raise(&mut server::limits::ServerLimits::default());
    let listings = arguments.number("listings", 1024);
    let rounds = arguments.number("rounds", 3);
    let seconds = arguments.number("seconds", 10);
    // Not on a memory file system: that would count towards the server's limit.
    let directory = tempfile::tempdir().expect("a directory");
    let limited = Limited::start(&binary(), &directory.path().join("house"), MEMORY_BYTES);
    let address = limited.server.address();
    fill(address);

    let mut honest = Honest::start(address);
    std::thread::sleep(Duration::from_secs(seconds));
    let quiet = honest.so_far();
    let mut tally = BTreeMap::new();
    for _ in 0..rounds {
        leave_unread(address, listings, seconds, &mut tally);
    }
    let meanwhile = honest.so_far();
    let failures = honest.stop();
    let ended = limited.stop();
    for (outcome, count) in &tally {
        println!("{count} times {outcome}");
    }
    println!("a client that behaves: before {quiet}, meanwhile {meanwhile}, {failures} failures");

    let mut report = Report::new("edge");
    let count = |outcome: &str| tally.get(outcome).copied().unwrap_or(0);
    let (answered, refused) = (count("200"), count("429 SH-2014"));
    let as_promised = answered > 0 && answered + refused == listings * rounds;
    let figure = format!("{}-unread {answered}-answered {refused}-refused", listings * rounds);
    let goal = format!("{}, each answered or refused with SH-2014", listings * rounds);
    report.add("listings", figure, &goal, as_promised);
    let alive = if ended.is_alive { "never-killed" } else { "killed" };
    let figure = format!("{alive} {failures}-honest-failures");
    report.add("listings.alive", figure, "never killed, no failure of a client that behaves", {
        ended.is_alive && failures == 0
    });
    let figure = format!("{}MiB-in-{}", ended.peak_bytes >> 20, ended.by);
    report.add("listings.memory", figure, "<=512MiB", ended.is_alive && ended.peak_bytes <= MEMORY_BYTES);
    let ratio = meanwhile.p99.as_secs_f64() / quiet.p99.as_secs_f64();
    // A small run has too few requests for a meaningful percentile, so it is not judged.
    match arguments.flag("small") {
        true => println!("its p99 was {ratio:.2} times the one before"),
        false => {
            report.add("listings.p99", format!("{ratio:.2}x"), "<=3 times its quiet p99", ratio <= 3.0);
        }
    }
    report
}

/// Writes the data to list.
fn fill(address: SocketAddr) {
    let client = Client::to(address);
    let sent = |request: Request| {
        let said = format!("{} {}", request.method, request.path);
        let response = client.send(request).expect("an answer");
        assert!(response.is_success(), "{said}: {}", response.text());
    };
    let value = "v".repeat(ROW_BYTES);
    for row in 0..ROWS {
        sent(Request::put(format!("/v1/cells/large/{row}")).body(format!("\"{value}\"")));
        sent(Request::put("/v1/cells/versions").body(format!("\"{value}\"")));
        sent(Request::put(format!("/v1/records/large.{row}")).body(format!("{{\"fields\":{{\"f\":\"{value}\"}}}}")));
        sent(Request::put(format!("/v1/maps/large/keys/{row}?version=1")).body(format!("\"{value}\"")));
        let event = format!(
            "{{\"eventType\":\"Step\",\"idempotencyKey\":\"{row}\",\"emittedAt\":\"2026-02-11T10:00:00Z\",\"eventData\":{{\"d\":\"{value}\"}}}}"
        );
        sent(Request::post("/v1/runs/large/events").body(event));
    }
    let name = "n".repeat(1000);
    for commit in 0..10 {
        let set = |cell: usize| format!("{{\"op\":\"cell.set\",\"name\":\"feed/{commit}/{cell}/{name}\",\"value\":1}}");
        let operations: Vec<_> = (0..100).map(set).collect();
        sent(Request::post("/v1/groups/feed/txn").body(format!("{{\"do\":[{}]}}", operations.join(","))));
    }
    for listing in LISTINGS {
        let page = client.send(Request::get(listing)).expect("an answer");
        assert!(page.is_success() && page.body.len() > 1 << 20, "{listing}: {} bytes", page.body.len());
    }
}

/// Requests listings, each on its own connection, and reads nothing; returns the first answer of each.
fn leave_unread(address: SocketAddr, listings: u64, seconds: u64, tally: &mut BTreeMap<String, u64>) {
    let mut asked = Vec::new();
    let paths = LISTINGS.iter().cycle().zip(0..listings);
    for (path, _) in paths {
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let mut stream = TcpStream::connect(address).expect("the listener takes connections");
        stream.write_all(request.as_bytes()).expect("a new connection takes a request");
        stream.set_nonblocking(true).expect("a setting");
        asked.push((stream, request, None));
    }
    let pause = AGAIN_EVERY / u32::try_from(asked.len().max(1)).unwrap_or(u32::MAX);
    for _ in 0..seconds {
        for (stream, request, outcome) in &mut asked {
            *outcome = outcome.take().or_else(|| peeked(stream));
            // A refused client asks again; one with an unread answer must wait for it.
            let _ = stream.write(request.as_bytes());
            std::thread::sleep(pause);
        }
    }
    for (stream, _, outcome) in asked {
        let outcome = outcome.or_else(|| peeked(&stream)).unwrap_or_else(|| "nothing".to_owned());
        *tally.entry(outcome).or_default() += 1;
    }
}

/// Peeks at the answer: the status, and the code of a refusal. None if it has not arrived.
fn peeked(stream: &TcpStream) -> Option<String> {
    let mut begin = [0; 2048];
    let length = match stream.peek(&mut begin) {
        Ok(0) => return Some("the end".to_owned()),
        Ok(length) => length,
        Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
        Err(error) => return Some(error.kind().to_string()),
    };
    let text = String::from_utf8_lossy(&begin[..length]);
    let status = text.get(9..12).unwrap_or("no status").to_owned();
    match text.split_once("\"code\":\"") {
        Some((_, code)) => Some(format!("{status} {}", code.get(..7).unwrap_or_default())),
        None => Some(status),
    }
}
