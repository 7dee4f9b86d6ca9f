//! Counts every request: which operation of which contract, how it was answered, how long it took.
//!
//! It stands in the way of every request, so it takes no lock and allocates nothing once an operation was seen: an operation is
//! an entry of the table of routes, its counters are plain atomics.
//!
//! Keeps: labels come from the table and codes, never from what users name. A request whose client has gone is counted when
//! its work is over, and as `cancelled` if it only waited; one that is refused before it reaches a route, by the code that it
//! is refused with.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::response::Response;
use statehouse::Durations;

use super::Metrics;
use super::list::{REQUEST_DURATION, REQUESTS};
use super::text::Scrape;
use crate::http::table;

/// The code of a problem, carried by its answer to whoever counts.
#[derive(Clone, Copy, Debug)]
pub struct ProblemCode(pub &'static str);

/// The place of requests that have no route, and of those that were refused before one was looked for.
const NONE: usize = 0;
const REFUSED: usize = 1;
/// What is counted before the entries of the table.
const BESIDE: usize = 2;

/// What a request does: a route of the table, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation(usize);

impl Operation {
    /// No route.
    pub(crate) const NONE: Self = Self(NONE);

    /// The route at this place of the table.
    pub(crate) fn of_entry(place: usize) -> Self {
        Self(place + BESIDE)
    }

    /// What it is about, and what it does.
    fn labels(self) -> (&'static str, &'static str) {
        match self.0 {
            NONE => ("other", "none"),
            REFUSED => ("other", "refused"),
            place => {
                let route = table::entries()[place - BESIDE].route;
                (route.subject(), route.verb())
            }
        }
    }
}

/// Codes that are counted apart; there are fewer.
const CODES_MAX: usize = 64;
const OK: &str = "ok";
/// Of a request that waited for something and ended with its client.
const CANCELLED: &str = "cancelled";

/// See the module.
pub(crate) struct Requests {
    /// One for each operation of each contract, made when it is first used.
    operations: Vec<OnceLock<Box<Counts>>>,
    /// The codes that were seen, each at its place in [`Counts::codes`].
    codes: [OnceLock<&'static str>; CODES_MAX],
}

struct Counts {
    took: Durations,
    codes: [AtomicU64; CODES_MAX],
}

impl Counts {
    fn new() -> Box<Self> {
        Box::new(Self { took: Durations::default(), codes: [const { AtomicU64::new(0) }; CODES_MAX] })
    }
}

impl Default for Requests {
    fn default() -> Self {
        let codes = [const { OnceLock::new() }; CODES_MAX];
        let _ = codes[0].set(OK);
        let operations = (0..table::entries().len() + BESIDE).map(|_| OnceLock::new()).collect();
        Self { operations, codes }
    }
}

impl Requests {
    fn count(&self, operation: Operation, code: &'static str, began: Instant) {
        let operation = self.operations[operation.0].get_or_init(Counts::new);
        operation.codes[self.code_place(code)].fetch_add(1, Ordering::Relaxed);
        operation.took.count(began.elapsed());
    }

    /// Counts a request that was refused before it reached a route.
    pub(crate) fn refused(&self, code: &'static str) {
        let operation = self.operations[REFUSED].get_or_init(Counts::new);
        operation.codes[self.code_place(code)].fetch_add(1, Ordering::Relaxed);
    }

    /// Where a code is counted. There are fewer codes than places; were there more, the last place would be of several.
    fn code_place(&self, code: &'static str) -> usize {
        let at = self.codes.iter().position(|place| *place.get_or_init(|| code) == code);
        at.unwrap_or(CODES_MAX - 1)
    }

    pub(crate) fn write(&self, scrape: &mut Scrape) {
        for (number, operation) in self.operations.iter().enumerate() {
            let Some(operation) = operation.get() else {
                continue;
            };
            let (contract, op) = Operation(number).labels();
            for (code, count) in self.codes.iter().zip(&operation.codes) {
                let count = count.load(Ordering::Relaxed);
                if let (Some(code), true) = (code.get(), count > 0) {
                    scrape.whole(&REQUESTS, &[contract, op, code], count);
                }
            }
            if number != REFUSED {
                scrape.durations(&REQUEST_DURATION, &[contract, op], operation.took.counted());
            }
        }
    }
}

/// A request that is under way. It is counted when it is answered, and as cancelled if it is dropped before.
pub(crate) struct Counted {
    requests: Arc<Requests>,
    operation: Operation,
    began: Instant,
    /// How it was answered.
    code: &'static str,
}

impl Counted {
    /// Begins to count.
    pub(crate) fn new(metrics: &Metrics, operation: Operation) -> Self {
        Self { requests: metrics.requests.clone(), operation, began: now(), code: CANCELLED }
    }

    /// Counts the answer.
    pub(crate) fn finish(mut self, response: Response) -> Response {
        self.code = code_of(&response);
        response
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.requests.count(self.operation, self.code, self.began);
    }
}

fn code_of(response: &Response) -> &'static str {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return OK;
    }
    match response.extensions().get::<ProblemCode>() {
        Some(ProblemCode(code)) => code,
        None if status.is_server_error() => "http-5xx",
        None => "http-4xx",
    }
}

/// How long a request took decides nothing, so this reads the machine's clock directly.
#[allow(clippy::disallowed_methods)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_named_by_their_routes() {
        let claim = table::entries().iter().find(|entry| entry.route.path == wire::routes::RECORDS_CLAIM.path);
        let operation = Operation::of_entry(claim.expect("an entry").place);
        assert_eq!(operation.labels(), ("records", "claim"));
        assert_eq!(Operation::NONE.labels(), ("other", "none"));
    }

    #[test]
    fn a_request_is_counted_once_with_its_code() {
        let requests = Requests::default();
        for code in [OK, "SH-1003", OK] {
            requests.count(Operation::of_entry(0), code, now());
        }
        let counted = requests.operations[BESIDE].get().expect("used");
        let of = |code| counted.codes[requests.code_place(code)].load(Ordering::Relaxed);
        assert_eq!((of(OK), of("SH-1003"), of("SH-2001"), counted.took.counted().count()), (2, 1, 0, 3));
    }
}
