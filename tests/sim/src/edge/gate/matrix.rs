//! Every combination of the gate's inputs, sent to a real server and compared with the expected outcome. Each is written to a
//! socket as it is: a client would not send two hosts, or none.
//!
//! Keeps: the expectation is a table beside each value, never the server's own parser. Versions count the accepted writes, so
//! a refusal that wrote something is noticed.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value as JsonValue;
use testkit::arguments::Arguments;
use testkit::http::Client;
use testkit::http::message::Request;
use testkit::random::Random;
use testkit::report::Report;
use testkit::server_process::{Launch, binary};

use crate::directories::fast_directory;

/// Concurrent clients.
const SENDERS: usize = 4;

/// The name that the server is told to answer to.
const LISTED: &str = "state.internal";

/// The host headers of a request, with `PORT` for the server's; and the host as in origins, if the request is to be let in.
const HOSTS: [(&str, Option<&str>); 20] = [
    ("host: localhost:PORT\r\n", Some("localhost:PORT")),
    ("HOST: LocalHost\r\n", Some("localhost")),
    ("host: 127.0.0.1:PORT\r\n", Some("127.0.0.1:PORT")),
    ("host: 192.0.2.7\r\n", Some("192.0.2.7")),
    ("host: [::1]:PORT\r\n", Some("[::1]:PORT")),
    ("host: state.internal:PORT\r\n", Some("state.internal:PORT")),
    ("host:   localhost:PORT \t\r\nx-forwarded-host: evil.example\r\n", Some("localhost:PORT")),
    ("", None),
    ("host: \r\n", None),
    ("host: evil.example\r\n", None),
    ("host: evil.example:PORT\r\nx-forwarded-host: localhost\r\n", None),
    ("host: localhost\r\nhost: localhost\r\n", None),
    ("host: localhost\r\nhost: evil.example\r\n", None),
    ("host: localhost.\r\n", None),
    ("host: localhost.evil.example\r\n", None),
    ("host: x.state.internal\r\n", None),
    ("host: a@localhost\r\n", None),
    ("host: local host\r\n", None),
    ("host: 127.1\r\n", None),
    ("host: [::1\r\n", None),
];

/// Origin headers, with `HOST` for the correct host, and whether such a request is let in.
const ORIGINS: [(&str, bool); 9] = [
    ("", true),
    ("origin: http://HOST\r\n", true),
    ("origin: https://evil.example\r\n", false),
    ("origin: http://evil.example:PORT\r\n", false),
    ("origin: null\r\n", false),
    ("origin: \r\n", false),
    ("origin: http://HOST/\r\n", false),
    ("origin: http://HOST1\r\n", false),
    ("origin: http://HOST\r\norigin: https://evil.example\r\n", false),
];

/// Values of Sec-Fetch-Site, and whether such a request is let in.
const SITES: [(&str, bool); 7] = [
    ("", true),
    ("sec-fetch-site: none\r\n", true),
    ("sec-fetch-site: same-origin\r\n", true),
    ("sec-fetch-site: same-site\r\n", false),
    ("sec-fetch-site: cross-site\r\n", false),
    ("sec-fetch-site: Same-Origin\r\n", false),
    ("sec-fetch-site: same-origin\r\nsec-fetch-site: cross-site\r\n", false),
];

const CONTENT_TYPES: [&str; 4] = [
    "",
    "content-type: application/json\r\n",
    "content-type: text/plain\r\n",
    "content-type: application/x-www-form-urlencoded\r\n",
];

/// A request, its status when it is let in, and whether pages of other origins may send it.
struct Call {
    line: &'static str,
    body: &'static str,
    status: u16,
    is_open: bool,
}

const fn call(line: &'static str, body: &'static str, status: u16) -> Call {
    Call { line, body, status, is_open: false }
}

const fn open(line: &'static str) -> Call {
    Call { line, body: "", status: 200, is_open: true }
}

/// The data written by the calls below; each call raises its version by one.
const WRITTEN: [&str; 3] = ["/v1/cells/gate/put", "/v1/records/gate", "/v1/cells/gate/txn?group=gate"];

const CALLS: [Call; 12] = [
    // In the order of WRITTEN.
    call("PUT /v1/cells/gate/put", "1", 200),
    call("PATCH /v1/records/gate", r#"{"set":{"f":1}}"#, 200),
    call("POST /v1/groups/gate/txn", r#"{"do":[{"op":"cell.set","name":"gate/txn","value":1}]}"#, 200),
    call("GET /v1/cells/gate/put", "", 200),
    call("HEAD /v1/cells/gate/put", "", 200),
    call("GET /v1/records?prefix=gate", "", 200),
    call("GET /metrics", "", 200),
    call("OPTIONS /v1/cells/gate/put", "", 405),
    call("DELETE /livez", "", 405),
    open("GET /livez"),
    open("GET /docs"),
    open("GET /v1/errors/SH-1061"),
];

/// One of each.
#[derive(Clone, Copy)]
struct Case {
    host: usize,
    origin: usize,
    site: usize,
    content_type: usize,
    call: usize,
}

impl Case {
    /// The case with a number, below [`cases`].
    fn numbered(number: usize) -> Self {
        let mut left = number;
        let mut part = |of: usize| {
            let part = left % of;
            left /= of;
            part
        };
        Self {
            call: part(CALLS.len()),
            content_type: part(CONTENT_TYPES.len()),
            site: part(SITES.len()),
            origin: part(ORIGINS.len()),
            host: part(HOSTS.len()),
        }
    }

    fn request(self, port: u16) -> String {
        let (call, (host, own)) = (&CALLS[self.call], HOSTS[self.host]);
        let origin = ORIGINS[self.origin].0.replace("HOST", own.unwrap_or("localhost:PORT"));
        let (site, content_type) = (SITES[self.site].0, CONTENT_TYPES[self.content_type]);
        let length = call.body.len();
        let head = format!("{} HTTP/1.1\r\n{host}{origin}{site}{content_type}content-length: {length}\r\n", call.line);
        format!("{}connection: close\r\n\r\n{}", head.replace("PORT", &port.to_string()), call.body)
    }

    /// The expected status, and the code if the gate refuses it.
    fn expected(self) -> (u16, Option<&'static str>) {
        let call = &CALLS[self.call];
        let is_own_page = ORIGINS[self.origin].1 && SITES[self.site].1;
        match HOSTS[self.host].1 {
            None => (421, Some("SH-1060")),
            Some(_) if call.is_open || is_own_page => (call.status, None),
            Some(_) => (403, Some("SH-1061")),
        }
    }
}

fn cases() -> usize {
    HOSTS.len() * ORIGINS.len() * SITES.len() * CONTENT_TYPES.len() * CALLS.len()
}

/// Sends all cases, or the requested number, in random order.
pub(super) fn run(arguments: &Arguments, report: &mut Report) {
    let seed = arguments.seed();
    let mut order: Vec<usize> = (0..cases()).collect();
    let mut random = Random::new(seed);
    for place in (1..order.len()).rev() {
        order.swap(place, random.index(place + 1));
    }
    order.truncate(arguments.number("cases", u64::MAX).try_into().unwrap_or(usize::MAX));

    let directory = fast_directory().expect("a directory");
    let launch = Launch::serve(binary(), directory.path().join("house"));
    let server = launch.environment("STATEHOUSE_SERVER__HOSTS", LISTED).start().expect("a server");
    let client = Client::to(server.address());
    for (path, body) in [(WRITTEN[0], "0"), (WRITTEN[1], r#"{"fields":{}}"#), (WRITTEN[2], "0")] {
        let made = client.send(Request::put(path).body(body)).expect("an answer");
        assert!(made.is_success(), "{path}: {}", made.text());
    }
    let before = WRITTEN.map(|path| version(&client, path));
    let wrong = AtomicU64::new(0);
    let passed: [AtomicU64; CALLS.len()] = std::array::from_fn(|_| AtomicU64::new(0));
    let (address, noted, counted) = (server.address(), &wrong, &passed);
    std::thread::scope(|scope| {
        for part in order.chunks(order.len().div_ceil(SENDERS)) {
            scope.spawn(move || {
                for number in part {
                    let case = Case::numbered(*number);
                    let request = case.request(address.port());
                    let (expected, got) = (case.expected(), sent(address, &request));
                    if (expected.0, expected.1.map(str::to_owned)) != got {
                        noted.fetch_add(1, Ordering::Relaxed);
                        println!("edge-gate: {got:?} instead of {expected:?} to case {number}: {request:?}");
                    }
                    if expected.1.is_none() {
                        counted[case.call].fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let after = WRITTEN.map(|path| version(&client, path));
    let unasked =
        (0..WRITTEN.len()).filter(|call| after[*call] != before[*call] + passed[*call].load(Ordering::Relaxed));
    let unasked = unasked.count();
    let let_in: u64 = passed.iter().map(|count| count.load(Ordering::Relaxed)).sum();
    let wrong = wrong.load(Ordering::Relaxed);
    let figure = format!("{}-cases {let_in}-let-in {wrong}-wrong {unasked}-changed-unasked seed-{seed}", order.len());
    let goal = ">=200 cases, each let in or refused as it must be, nothing else changed";
    report.add("gate", figure, goal, order.len() >= 200 && let_in > 0 && wrong == 0 && unasked == 0);
}

fn version(client: &Client, path: &str) -> u64 {
    let found = client.send(Request::get(path)).expect("an answer").json();
    found["version"].as_u64().unwrap_or_else(|| panic!("{path} has a version: {found}"))
}

/// The status of the answer, and its code.
fn sent(address: SocketAddr, request: &str) -> (u16, Option<String>) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer, and an end");
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
    let hardened = ["nosniff", "no-store", "default-src 'none'"].iter().all(|value| head.contains(value));
    assert!(hardened, "every answer has its headers: {head}");
    let problem: JsonValue = serde_json::from_str(body).unwrap_or_default();
    let by_gate = problem["code"].as_str().filter(|code| ["SH-1060", "SH-1061"].contains(code));
    // An answer to HEAD has no body.
    let unsaid = match status {
        421 if body.is_empty() => Some("SH-1060"),
        403 if body.is_empty() => Some("SH-1061"),
        _ => None,
    };
    (status, by_gate.or(unsaid).map(str::to_owned))
}
