//! The probes: `/livez`, `/readyz`, `/startupz`, and which version this is. `?verbose` says each check with its reason.
//!
//! - Alive: the server answers, and its store has not stopped at a failure. Only what a restart cures makes it false:
//!   never load, lag, or a disk that is full.
//! - Ready: it can serve reads and writes now. False while it drains, and while the journal takes no commands.
//! - Started: the journal was replayed. Until then `starting` answers, and says how far it is; here the answer is yes.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;

use crate::Server;
use crate::problem::{body, ok};

pub(crate) fn routes() -> Router<Server> {
    Router::new()
        .route("/livez", get(alive))
        .route("/readyz", get(ready))
        .route("/startupz", get(started))
        .route("/version", get(|| async { ok(json!({ "statehouse": env!("CARGO_PKG_VERSION") })) }))
}

/// One thing that must be so, with what is the case.
struct Check {
    name: &'static str,
    holds: bool,
    reason: String,
}

impl Check {
    fn new(name: &'static str, holds: bool, reason: impl Into<String>) -> Self {
        Self { name, holds, reason: reason.into() }
    }
}

async fn alive(State(server): State<Server>, RawQuery(query): RawQuery) -> Response {
    answer("alive", &[Check::new("server", true, "it answers"), store(&server)], query.as_deref())
}

async fn ready(State(server): State<Server>, RawQuery(query): RawQuery) -> Response {
    answer("ready", &ready_checks(&server), query.as_deref())
}

async fn started(State(server): State<Server>, RawQuery(query): RawQuery) -> Response {
    let counters = server.house.counters();
    let (entries, took_ms) = (counters.replayed_entries, counters.replay_took.as_millis());
    let replay = Check::new("replay", true, format!("{entries} entries of the journal were replayed in {took_ms} ms"));
    answer("started", &[replay], query.as_deref())
}

/// Whether the server can serve reads and writes now.
pub(crate) fn is_ready(server: &Server) -> bool {
    ready_checks(server).iter().all(|check| check.holds)
}

fn ready_checks(server: &Server) -> [Check; 3] {
    let serving = server.ready.load(Ordering::Acquire);
    let serving = Check::new("serving", serving, if serving { "it takes requests" } else { "it is told to stop" });
    let full = server.house.counters().journal.files_full;
    let reason = if full { "its files are at their bound until the store has caught up" } else { "it takes commands" };
    [serving, store(server), Check::new("journal", !full, reason)]
}

fn store(server: &Server) -> Check {
    match server.house.failure() {
        Some(error) => Check::new("store", false, error.to_string()),
        None if !server.house.records().ping() => Check::new("store", false, "it is closed"),
        None => Check::new("store", true, "it is open"),
    }
}

/// `{"ready": true}`, or with `?verbose` a line for each check.
fn answer(what: &str, checks: &[Check], query: Option<&str>) -> Response {
    let holds = checks.iter().all(|check| check.holds);
    let status = if holds { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let verbose = query.unwrap_or_default().split('&').any(|part| part == "verbose" || part.starts_with("verbose="));
    if !verbose {
        let failed: Vec<_> = checks.iter().filter(|check| !check.holds).collect();
        let why = failed.iter().map(|check| format!("{}: {}", check.name, check.reason)).collect::<Vec<_>>().join("; ");
        let said = if holds { json!({ what: true }) } else { json!({ what: false, "detail": why }) };
        return body(status, said);
    }
    let mut lines = String::new();
    for Check { name, holds, reason } in checks {
        let mark = if *holds { "ok" } else { "FAILED" };
        // Writing to a string does not fail.
        let _ = writeln!(lines, "{name}: {mark}: {reason}");
    }
    let _ = writeln!(lines, "{what}: {}", if holds { "yes" } else { "no" });
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], lines).into_response()
}
