//! The probes: `/livez`, `/readyz`, `/startupz`, and which version this is. `?verbose` prints each check with its reason.
//!
//! - Alive: the server answers, and its store has not stopped at a failure. It fails only if a restart helps: never
//!   because of load, lag, or a full disk.
//! - Ready: it can serve reads and writes now. False while it drains, and while the journal accepts no commands.
//! - Started: the journal has been replayed. Until then `starting` answers with the progress; here the answer is yes.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use contract::access::Verb;
use serde_json::json;
use wire::operations::{NoBody, Probe, Version};
use wire::query::NoQuery;

use crate::Server;
use crate::access::Permission;
use crate::api::call::{Answered, Call, Reply};
use crate::api::contract_versions;
use crate::api::refusal::Refusal;
use crate::http::encode::json_body;

/// A condition of a probe, whether it holds, and why.
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

/// Whoever probes needs nothing; the reasons are for who may look at the store.
pub(crate) fn probing() -> Permission<Probe, NoBody> {
    Permission::open_unless("-; read store, of every space, if verbose", |asking, needs| {
        let Probe { verbose } = asking.query;
        if *verbose == Some(true) {
            needs.store(Verb::Read);
        }
    })
}

pub(crate) async fn alive(server: Server, call: Call<Probe, NoBody>) -> Result<Response, Refusal> {
    Ok(answer("alive", &[Check::new("server", true, "answering"), store(&server)], &call.query))
}

pub(crate) async fn ready(server: Server, call: Call<Probe, NoBody>) -> Result<Response, Refusal> {
    Ok(answer("ready", &ready_checks(&server), &call.query))
}

pub(crate) async fn started(server: Server, call: Call<Probe, NoBody>) -> Result<Response, Refusal> {
    let counters = server.house.counters();
    let (entries, took_ms) = (counters.replayed_entries, counters.replay_took.as_millis());
    let replay = Check::new("replay", true, format!("replayed {entries} entries of the journal in {took_ms} ms"));
    Ok(answer("started", &[replay], &call.query))
}

/// The release, and the version of each contract.
pub(crate) async fn version(_: Server, _: Call<NoQuery, NoBody>) -> Answered<Version> {
    Ok(Reply::new(Version { statehouse: env!("CARGO_PKG_VERSION").to_owned(), contracts: contract_versions() }))
}

/// Whether the server can serve reads and writes now.
pub(crate) fn is_ready(server: &Server) -> bool {
    ready_checks(server).iter().all(|check| check.holds)
}

fn ready_checks(server: &Server) -> [Check; 3] {
    let serving = server.ready.load(Ordering::Acquire);
    let serving = Check::new("serving", serving, if serving { "accepting requests" } else { "stopping" });
    let full = server.house.counters().journal.files_full;
    let reason = if full { "its files are at their limit until the store has caught up" } else { "accepting commands" };
    [serving, store(server), Check::new("journal", !full, reason)]
}

fn store(server: &Server) -> Check {
    match server.house.failure() {
        Some(error) => Check::new("store", false, error.to_string()),
        None if !server.house.records().ping() => Check::new("store", false, "closed"),
        None => Check::new("store", true, "open"),
    }
}

/// `{"ready": true}`, or with `?verbose` a line for each check.
fn answer(what: &str, checks: &[Check], query: &Probe) -> Response {
    let holds = checks.iter().all(|check| check.holds);
    let status = if holds { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    if query.verbose != Some(true) {
        let failed: Vec<_> = checks.iter().filter(|check| !check.holds).collect();
        let why = failed.iter().map(|check| format!("{}: {}", check.name, check.reason)).collect::<Vec<_>>().join("; ");
        let said = if holds { json!({ what: true }) } else { json!({ what: false, "detail": why }) };
        return json_body(status, &said);
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
