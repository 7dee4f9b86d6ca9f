//! Counts every request: its contract and operation, its answer, its duration.
//!
//! It runs for every request, so it takes no lock and allocates nothing after an operation was first seen: an operation
//! is an entry of the table of routes, its counters are plain atomics.
//!
//! Keeps: labels come from the table and codes, never from user names. A request whose client has disconnected is
//! counted when its work is done, and as `cancelled` if it only waited; a request refused before it reaches a route, by
//! its error code.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::response::Response;
use statehouse::Durations;

use super::Metrics;
use super::list::{REQUEST_DURATION, REQUESTS};
use super::text::Scrape;
use crate::http::table;
use crate::problem::ProblemCode;

/// The index for requests without a route, and for those refused before routing.
const NONE: usize = 0;
const REFUSED: usize = 1;
/// The number of counters before the entries of the table.
const BESIDE: usize = 2;

/// The operation of a request: a route of the table, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation(usize);

impl Operation {
    /// No route.
    pub(crate) const NONE: Self = Self(NONE);

    /// The route at this index of the table.
    pub(crate) fn of_entry(place: usize) -> Self {
        Self(place + BESIDE)
    }

    /// Its contract and operation.
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

/// The number of codes counted separately; there are fewer.
const CODES_MAX: usize = 128;
const OK: &str = "ok";
/// The code of a request that waited and ended with its client.
const CANCELLED: &str = "cancelled";

/// The counters of all requests.
pub(crate) struct Requests {
    /// One per operation and contract, created on first use.
    operations: Vec<OnceLock<Box<Counts>>>,
    /// The codes seen, each at its index in [`Counts::codes`].
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

    /// Counts a request refused before it reached a route.
    pub(crate) fn refused(&self, code: &'static str) {
        let operation = self.operations[REFUSED].get_or_init(Counts::new);
        operation.codes[self.code_place(code)].fetch_add(1, Ordering::Relaxed);
    }

    /// The index of a code. There are fewer codes than indexes; otherwise the last index would be shared.
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

/// A request in progress. It is counted when answered, and as cancelled if dropped before.
pub(crate) struct Counted {
    requests: Arc<Requests>,
    operation: Operation,
    began: Instant,
    /// The code of its answer.
    code: &'static str,
}

impl Counted {
    /// Starts counting.
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

/// The duration of a request decides nothing, so this reads the machine's clock directly.
#[allow(clippy::disallowed_methods)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn operations_are_named_by_their_routes() {
        let claim = table::entries().iter().find(|entry| entry.route.path == wire::routes::RECORDS_CLAIM.path);
        let operation = Operation::of_entry(claim.expect("an entry").place);
        assert_eq!(operation.labels(), ("records", "claim"));
        assert_eq!(Operation::NONE.labels(), ("other", "none"));
    }

    #[test]
    fn every_code_has_a_place_of_its_own() {
        let others = [OK, CANCELLED, "http-4xx", "http-5xx"];
        let requests = Requests::default();
        let places: BTreeSet<_> = crate::errors::codes().chain(others).map(|code| requests.code_place(code)).collect();
        assert_eq!(places.len(), crate::errors::codes().count() + others.len());
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
