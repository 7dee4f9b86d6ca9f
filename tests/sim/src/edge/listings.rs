//! `sim edge-listings --listings 1024 --seconds 10 --rounds 3`: clients ask a server in 512 MiB for listings of 4 MiB and read
//! none of them: they have sockets of their own, because a client reads. The server is never killed, and a client that behaves
//! hardly notices.
//!
//! Touches: a process of its own, and a control group below the one that this program is in. Never: takes a refusal of the
//! client that behaves for an answer.

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

/// What the process may take.
const MEMORY_BYTES: u64 = 512 << 20;

/// Rows of each listing, and bytes of each row: a page ends with the row that reaches 4 MiB.
const ROWS: usize = 5;
const ROW_BYTES: usize = 1_000_000;

/// What is listed. The feed has names only, and many of them.
const LISTINGS: [&str; 5] = [
    "/v1/cells?prefix=large/&limit=1000",
    "/v1/cells/versions?view=history",
    "/v1/records?prefix=large.&limit=1000",
    "/v1/runs/large/events",
    "/v1/changes?from=c-0&limit=1000",
];

/// How often each client asks again, on the same connection, without having read anything. They do not ask all at once.
const AGAIN_EVERY: Duration = Duration::from_secs(1);

/// Leaves listings unread, and measures a well-behaved client meanwhile.
pub(crate) fn run(arguments: &Arguments) -> Report {
    server::descriptors::raise(&mut server::limits::ServerLimits::default());
    let listings = arguments.number("listings", 1024);
    let rounds = arguments.number("rounds", 3);
    let seconds = arguments.number("seconds", 10);
    // Not in memory: that would count against the server's.
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
    // With few requests a percentile means little, so a small run does not judge it.
    match arguments.flag("small") {
        true => println!("its p99 was {ratio:.2} times the one before"),
        false => {
            report.add("listings.p99", format!("{ratio:.2}x"), "<=3 times its quiet p99", ratio <= 3.0);
        }
    }
    report
}

/// Writes what is listed.
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

/// Asks for listings, each on a connection of its own, and reads nothing; says what each was answered first.
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
            // One that was refused asks again; one whose answer is unread has to wait for that.
            let _ = stream.write(request.as_bytes());
            std::thread::sleep(pause);
        }
    }
    for (stream, _, outcome) in asked {
        let outcome = outcome.or_else(|| peeked(&stream)).unwrap_or_else(|| "nothing".to_owned());
        *tally.entry(outcome).or_default() += 1;
    }
}

/// What is answered, without taking it: the status, and the code of a refusal. None if that has not come.
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
