//! Counts every request: which operation of which contract, how it was answered, how long it took.
//!
//! It stands in the way of every request, so it takes no lock and allocates nothing once an operation was seen: the
//! operation is found from the route by a few comparisons, its counters are plain atomics.
//!
//! Keeps: labels come from routes and codes, never from what users name. A request whose client has gone is counted when
//! its work is over, and as `cancelled` if it only waited; one that is refused before it reaches a route, by the code that it
//! is refused with.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::response::Response;
use statehouse::Durations;
use tower::{Layer, Service};

use super::list::{REQUEST_DURATION, REQUESTS};
use super::text::Scrape;

/// The code of a problem, carried by its answer to whoever counts.
#[derive(Clone, Copy, Debug)]
pub struct ProblemCode(pub &'static str);

const CONTRACTS: [&str; 10] =
    ["other", "cells", "records", "claims", "runs", "sessions", "changes", "transactions", "catalogue", "server"];

/// What the first word of a route below `/v1` is about, and so each route of the server itself.
const SECTIONS: [(&str, &str); 13] = [
    ("cells", "cells"),
    ("records", "records"),
    ("claims", "claims"),
    ("runs", "runs"),
    ("sessions", "sessions"),
    ("changes", "changes"),
    ("pushes", "sessions"),
    ("counts", "records"),
    ("groups", "transactions"),
    ("spaces", "catalogue"),
    ("branches", "catalogue"),
    ("types", "catalogue"),
    ("limits", "catalogue"),
];

/// What a request does, if not by its last word, then by its method.
const OPS: [&str; 47] = [
    "none",
    "refused",
    "get",
    "list",
    "put",
    "patch",
    "delete",
    "post",
    "claim",
    "counts",
    "changes",
    "create",
    "append",
    // The last words of routes.
    "events",
    "snapshot",
    "close",
    "archive",
    "fork",
    "step",
    "extend",
    "release",
    "complete",
    "fail",
    "keepalive",
    "pushes",
    "acks",
    "txn",
    "retention",
    "livez",
    "readyz",
    "startupz",
    "status",
    "version",
    "metrics",
    "docs",
    "openapi",
    "errors",
    "backup",
    "verified",
    "export",
    "import",
    "verify",
    "history",
    "limits",
    "info",
    "requests",
    "retry",
];

/// The place of requests that were refused before they reached a route: the first contract, the second operation.
const REFUSED: usize = 1;

/// Operations that are in the last word of a path, behind a name that may hold `/` too.
const BEHIND_NAMES: [&str; 10] =
    ["events", "snapshot", "close", "archive", "fork", "step", "extend", "release", "complete", "fail"];

/// Codes that are counted apart; there are fewer.
const CODES_MAX: usize = 64;
const OK: &str = "ok";
/// Of a request that waited for something and ended with its client.
const CANCELLED: &str = "cancelled";

/// See the module.
pub(crate) struct Requests {
    /// One for each operation of each contract, made when it is first used.
    operations: Vec<OnceLock<Box<Operation>>>,
    /// The codes that were seen, each at its place in [`Operation::codes`].
    codes: [OnceLock<&'static str>; CODES_MAX],
}

struct Operation {
    took: Durations,
    codes: [AtomicU64; CODES_MAX],
}

impl Operation {
    fn new() -> Box<Self> {
        Box::new(Self { took: Durations::default(), codes: [const { AtomicU64::new(0) }; CODES_MAX] })
    }
}

impl Default for Requests {
    fn default() -> Self {
        let codes = [const { OnceLock::new() }; CODES_MAX];
        let _ = codes[0].set(OK);
        let operations = (0..CONTRACTS.len() * OPS.len()).map(|_| OnceLock::new()).collect();
        Self { operations, codes }
    }
}

impl Requests {
    fn count(&self, operation: usize, code: &'static str, began: Instant) {
        let operation = self.operations[operation].get_or_init(Operation::new);
        operation.codes[self.code_place(code)].fetch_add(1, Ordering::Relaxed);
        operation.took.count(began.elapsed());
    }

    /// Counts a request that was refused before it reached a route.
    pub(crate) fn refused(&self, code: &'static str) {
        let operation = self.operations[REFUSED].get_or_init(Operation::new);
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
            let (contract, op) = (CONTRACTS[number / OPS.len()], OPS[number % OPS.len()]);
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

/// The place of the operation that a request asks for.
fn operation_of(request: &Request) -> usize {
    let method = request.method();
    let (contract, op) = match request.extensions().get::<MatchedPath>() {
        None => ("other", "none"),
        Some(route) => name_operation(method, route.as_str(), request.uri().path()),
    };
    let place = |names: &[&str], name: &str| names.iter().position(|one| *one == name).unwrap_or(0);
    place(&CONTRACTS, contract) * OPS.len() + place(&OPS, op)
}

/// The contract and the operation of a request, by its method and its route. `path` is looked at only behind a name that
/// may hold `/`, and only for words that are known.
fn name_operation<'path>(method: &Method, route: &'path str, path: &'path str) -> (&'static str, &'path str) {
    let Some(below) = route.strip_prefix("/v1/") else {
        let word = route.trim_start_matches('/').split(['/', '.']).next().unwrap_or_default();
        return ("server", word);
    };
    let (section, rest) = below.split_once('/').unwrap_or((below, ""));
    let known = SECTIONS.iter().find(|(name, _)| *name == section);
    let contract = known.map_or("server", |(_, contract)| contract);
    let last = rest.rsplit('/').next().unwrap_or_default();
    let by_method = match *method {
        Method::GET | Method::HEAD if rest.is_empty() => "list",
        Method::GET | Method::HEAD => "get",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        Method::POST if rest.is_empty() => "create",
        Method::POST => "post",
        _ => "none",
    };
    let op = match (section, last) {
        ("claims", _) => "claim",
        ("changes", _) => "changes",
        ("counts", _) => "counts",
        ("groups", _) => "txn",
        (_, "") if contract == "server" => section,
        (_, "") => by_method,
        (_, last) if last.starts_with("{*") => {
            let word = path.rsplit('/').next().unwrap_or_default();
            let acts = *method == Method::POST || section == "runs";
            if acts && BEHIND_NAMES.contains(&word) { word } else { by_method }
        }
        (_, last) if last.starts_with('{') && contract == "server" => section,
        (_, last) if last.starts_with('{') => by_method,
        (_, last) => last,
    };
    (contract, if op == "events" && *method == Method::POST { "append" } else { op })
}

/// Puts the counting around a service.
#[derive(Clone)]
pub struct CountRequests(pub(crate) Arc<Requests>);

impl<S> Layer<S> for CountRequests {
    type Service = Counting<S>;

    fn layer(&self, inner: S) -> Counting<S> {
        Counting { inner, requests: self.0.clone() }
    }
}

/// A service whose requests are counted.
#[derive(Clone)]
pub struct Counting<S> {
    inner: S,
    requests: Arc<Requests>,
}

impl<S> Service<Request> for Counting<S>
where
    S: Service<Request, Response = Response>,
    S::Future: Unpin,
{
    type Response = Response;
    type Error = S::Error;
    type Future = CountedAnswer<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> CountedAnswer<S::Future> {
        let (operation, began) = (operation_of(&request), now());
        let under_way = Some(UnderWay { requests: self.requests.clone(), operation, began, code: CANCELLED });
        CountedAnswer { inner: self.inner.call(request), under_way }
    }
}

/// An answer to come that will be counted.
pub struct CountedAnswer<F> {
    inner: F,
    under_way: Option<UnderWay>,
}

struct UnderWay {
    requests: Arc<Requests>,
    operation: usize,
    began: Instant,
    /// How it was answered.
    code: &'static str,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.requests.count(self.operation, self.code, self.began);
    }
}

impl<F: Future<Output = Result<Response, E>> + Unpin, E> Future for CountedAnswer<F> {
    type Output = Result<Response, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(Pin::new(&mut self.inner).poll(context));
        if let (Some(mut under_way), Ok(response)) = (self.under_way.take(), &answer) {
            under_way.code = code_of(response);
        }
        Poll::Ready(answer)
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
    fn operations_are_named_by_routes_and_never_by_what_users_name() {
        let cases = [
            ("GET", "/v1/cells/{*name}", "/v1/cells/a/step", ("cells", "get")),
            ("HEAD", "/v1/cells/{*name}", "/v1/cells/a", ("cells", "get")),
            ("GET", "/v1/cells", "/v1/cells", ("cells", "list")),
            ("PUT", "/v1/records/{*name}", "/v1/records/complete", ("records", "put")),
            ("POST", "/v1/records/{*name}", "/v1/records/a/complete", ("records", "complete")),
            ("POST", "/v1/records/{*name}", "/v1/records/a/secret", ("records", "post")),
            ("POST", "/v1/runs/{*path}", "/v1/runs/r/events", ("runs", "append")),
            ("GET", "/v1/runs/{*path}", "/v1/runs/r/events", ("runs", "events")),
            ("GET", "/v1/runs/{run}/events", "/v1/runs/r/events", ("runs", "events")),
            ("POST", "/v1/claims", "/v1/claims", ("claims", "claim")),
            ("POST", "/v1/sessions", "/v1/sessions", ("sessions", "create")),
            ("DELETE", "/v1/sessions/{id}", "/v1/sessions/7", ("sessions", "delete")),
            ("POST", "/v1/sessions/{id}/acks", "/v1/sessions/7/acks", ("sessions", "acks")),
            ("POST", "/v1/groups/{*path}", "/v1/groups/g/txn", ("transactions", "txn")),
            ("GET", "/v1/spaces/{name}/retention", "/v1/spaces/s/retention", ("catalogue", "retention")),
            ("GET", "/v1/errors/{code}", "/v1/errors/SH-1003", ("server", "errors")),
            ("POST", "/v1/sessions/{id}/requests", "/v1/sessions/7/requests", ("sessions", "requests")),
            ("POST", "/v1/pushes/retry", "/v1/pushes/retry", ("sessions", "retry")),
            ("GET", "/v1/counts", "/v1/counts", ("records", "counts")),
            ("GET", "/v1/backup", "/v1/backup", ("server", "backup")),
            ("POST", "/v1/backup/verified", "/v1/backup/verified", ("server", "verified")),
            ("GET", "/openapi.json", "/openapi.json", ("server", "openapi")),
            ("GET", "/livez", "/livez", ("server", "livez")),
        ];
        for (method, route, path, named) in cases {
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            assert_eq!(name_operation(&method, route, path), named, "{method} {route} {path}");
            assert!(CONTRACTS.contains(&named.0) && OPS.contains(&named.1), "{named:?} is in the tables");
        }
    }

    #[test]
    fn a_request_is_counted_once_with_its_code() {
        let requests = Requests::default();
        for code in [OK, "SH-1003", OK] {
            requests.count(2, code, now());
        }
        let counted = requests.operations[2].get().expect("used");
        let of = |code| counted.codes[requests.code_place(code)].load(Ordering::Relaxed);
        assert_eq!((of(OK), of("SH-1003"), of("SH-2001"), counted.took.counted().count()), (2, 1, 0, 3));
    }
}
