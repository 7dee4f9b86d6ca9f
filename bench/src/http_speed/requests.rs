//! The bytes of requests, made before they are sent.

use std::sync::atomic::{AtomicU64, Ordering};

use testkit::http::Request;
use testkit::random::Random;

use super::CELLS;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Get,
    Claim,
    Append,
    /// Claims [`BATCH`] jobs.
    ClaimMany,
    /// Appends [`BATCH`] events.
    AppendMany,
    /// Makes a task that is claimed later.
    PutTask,
}

impl Operation {
    pub fn name(self) -> &'static str {
        match self {
            Operation::Get => "get",
            Operation::Claim => "claim",
            Operation::Append => "append",
            Operation::ClaimMany => "claim-many",
            Operation::AppendMany => "append-many",
            Operation::PutTask => "put-task",
        }
    }

    /// One request, to see how it is answered.
    pub fn sample(self) -> Request {
        match self {
            Operation::Get => Request::get(format!("/v1/cells/{}", cell(CELLS / 2))),
            Operation::Claim | Operation::ClaimMany => {
                Request::post("/v1/claims").body(r#"{"prefix":"jobs.","worker":"w1","lease":"10m"}"#)
            }
            Operation::Append | Operation::AppendMany => Request::post("/v1/runs/sample/events").body(
                r#"{"eventType":"Progress","idempotencyKey":"k","emittedAt":"2026-02-11T10:00:00Z","eventData":{}}"#,
            ),
            Operation::PutTask => put_task("sample"),
        }
    }

    /// How many jobs or events one request is about.
    pub fn each(self) -> u64 {
        match self {
            Operation::ClaimMany | Operation::AppendMany => BATCH as u64,
            Operation::Get | Operation::Claim | Operation::Append | Operation::PutTask => 1,
        }
    }

    /// What the ratio to the bare server should be.
    pub fn goal(self) -> Option<f64> {
        match self {
            Operation::Get => Some(0.6),
            Operation::Claim => Some(0.35),
            _ => None,
        }
    }
}

/// What every cell holds.
pub const VALUE: &str =
    "a value of about a hundred bytes, as a setting or a small piece of state would be, and no more";
/// Jobs or events of one request, where there are many.
pub const BATCH: usize = 64;
/// Where the digits stand that make a key unlike all others.
const DIGITS: &str = "0000000000000000";
/// More requests than one connection makes; its numbers are never those of another, so that every key is new.
const REQUESTS_MAX: u64 = 1_000_000_000;

static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

pub fn cell(number: u64) -> String {
    format!("cell.{number}")
}

pub fn put_cell(number: u64) -> Request {
    Request::put(format!("/v1/cells/{}", cell(number))).body(format!("{VALUE:?}"))
}

/// An event whose key has the digits that rise with every request.
fn event(connection: usize, suffix: &str) -> String {
    format!(
        r#"{{"eventType":"Progress","idempotencyKey":"{connection}-{DIGITS}{suffix}","emittedAt":"2026-02-11T10:00:00Z","eventData":{{"rows":7}}}}"#
    )
}

fn put_task(name: &str) -> Request {
    Request::put(format!("/v1/records/jobs.email.{name}")).body(r#"{"type":"task","fields":{"to":"ann@example.org"}}"#)
}

/// The requests of one connection, over and over.
pub struct Requests {
    prepared: Vec<Vec<u8>>,
    random: Random,
    /// Where a number is written that rises with every request.
    digits_at: Vec<usize>,
    number: u64,
    operation: Operation,
}

impl Requests {
    /// Of a connection, by its number, with what shows who sends them.
    pub fn new(operation: Operation, connection: usize, authorization: Option<&str>) -> Self {
        let mut random = Random::new(connection as u64 + 1);
        let requests: Vec<Request> = match operation {
            Operation::Get => {
                (0..256).map(|_| Request::get(format!("/v1/cells/{}", cell(random.below(CELLS))))).collect()
            }
            Operation::Claim => {
                vec![Request::post("/v1/claims").body(r#"{"prefix":"jobs.","n":1,"worker":"w1","lease":"10m"}"#)]
            }
            Operation::ClaimMany => {
                let claim = format!(r#"{{"prefix":"jobs.","n":{BATCH},"worker":"w1","lease":"10m"}}"#);
                vec![Request::post("/v1/claims").body(claim)]
            }
            Operation::Append => {
                vec![Request::post(format!("/v1/runs/run.{connection}/events")).body(event(connection, ""))]
            }
            Operation::AppendMany => {
                let events: Vec<_> = (0..BATCH).map(|number| event(connection, &format!("-{number}"))).collect();
                let body = format!("[{}]", events.join(","));
                vec![Request::post(format!("/v1/runs/many.{connection}/events")).body(body)]
            }
            Operation::PutTask => vec![put_task(&format!("{connection}-{DIGITS}"))],
        };
        let shown = |request: Request| match authorization {
            Some(shown) => request.header("authorization", shown),
            None => request,
        };
        let prepared: Vec<Vec<u8>> = requests.into_iter().map(|request| shown(request).to_bytes()).collect();
        let places = prepared[0].windows(DIGITS.len()).enumerate();
        let digits_at = places.filter(|(_, bytes)| *bytes == DIGITS.as_bytes()).map(|(at, _)| at).collect();
        let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed) * REQUESTS_MAX;
        Self { prepared, random, digits_at, number, operation }
    }

    /// The next.
    pub fn next(&mut self) -> &[u8] {
        let place = usize::try_from(self.random.below(self.prepared.len() as u64)).expect("few");
        let bytes = &mut self.prepared[place];
        self.number += 1;
        for &at in &self.digits_at {
            let mut rest = self.number;
            for digit in bytes[at..at + DIGITS.len()].iter_mut().rev() {
                *digit = b'0' + u8::try_from(rest % 10).expect("a digit");
                rest /= 10;
            }
        }
        bytes
    }

    /// Whether an answer did what was measured: a claim that finds nothing is none.
    pub fn is_done(&self, body_bytes: usize) -> bool {
        !matches!(self.operation, Operation::Claim | Operation::ClaimMany) || body_bytes > 64
    }
}
