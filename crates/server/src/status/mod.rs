//! `/status`: the state of the server on one screen. JSON, or text for `Accept: text/plain`.
//!
//! - `problems`: current problems, each with the object, the number, the threshold and one safe command.
//!   [`trouble`]: one of them.
//!   `letters`, `transport`: problems of dead letters, and of what connections come over.
//! - `screen`: the same as text.
//!
//! Keeps: the fields that `docs/operations.md` lists; new fields are only added.

mod letters;
mod problems;
mod screen;
mod transport;
pub(crate) mod trouble;

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use contract::time::millis;
use serde_json::{Value as JsonValue, json};
use statehouse::{Counters, DiskSpace, FoundDamage, Overview, ScrubProgress, StoreWait};
use wire::operations::NoBody;
use wire::query::NoQuery;

use crate::api::call::Call;
use crate::api::contract_status;
use crate::api::refusal::Refusal;
use crate::health::is_ready;
use crate::http::encode::json_body;
use crate::{Server, TransportState};
use trouble::{Severity, Trouble};

/// Everything on the page.
struct Now {
    uptime: Duration,
    ready: bool,
    counters: Counters,
    /// None once the store is closed.
    status: Option<statehouse::Status>,
    overview: Overview,
    disk: Option<DiskSpace>,
    waits: Vec<StoreWait>,
    damage: Vec<FoundDamage>,
    scrub: ScrubProgress,
    /// The used-up limits, with their values.
    used_up: Vec<(&'static str, usize)>,
    /// What connections come over.
    transport: TransportState,
    /// Current problems.
    troubles: Vec<Trouble>,
    /// Current notes.
    notes: Vec<Trouble>,
}

impl Now {
    fn read(server: &Server) -> Self {
        let (house, load) = (&server.house, server.load());
        let counters = house.counters();
        let status = house.status().ok();
        let overview = house.overview().unwrap_or_default();
        let gates = [
            ("connections_max", &load.connections),
            ("handshakes_max", &load.handshakes),
            ("requests_max", &load.requests),
            ("waits_max", &load.waits),
            ("streams_max", &load.streams),
        ];
        let used_up = gates.iter().filter(|(_, gate)| gate.used() >= gate.max());
        let mut now = Self {
            uptime: server.metrics.uptime(),
            ready: is_ready(server),
            counters,
            status,
            overview,
            disk: house.disk(),
            waits: house.store_waits(),
            damage: house.damage().unwrap_or_default(),
            scrub: house.scrub(),
            used_up: used_up.map(|(limit, gate)| (*limit, gate.max())).collect(),
            transport: server.transport.clone(),
            troubles: Vec::new(),
            notes: Vec::new(),
        };
        let mut found = problems::find(house.failure().as_ref(), &now);
        found.extend(server.reloading.troubles());
        found.sort_by_key(|trouble| trouble.severity);
        (now.notes, now.troubles) = found.into_iter().partition(|trouble| trouble.severity == Severity::Note);
        now
    }

    fn word(&self) -> &'static str {
        let stopped = self.troubles.iter().any(|trouble| trouble.problem == "store_stopped");
        match (stopped, self.troubles.is_empty()) {
            (true, _) => "stopped",
            (false, false) => "degraded",
            (false, true) => "ok",
        }
    }
}

pub(crate) async fn status(server: Server, call: Call<NoQuery, NoBody>) -> Result<Response, Refusal> {
    let as_text = call.takes.is_some_and(|takes| takes.contains("text/plain"));
    let read = tokio::task::spawn_blocking(move || Now::read(&server));
    let now = read.await.map_err(|_| Refusal::Internal("the status could not be read"))?;
    if as_text {
        let content_type = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
        return Ok((StatusCode::OK, content_type, screen::write(&now)).into_response());
    }
    Ok(json_body(StatusCode::OK, &json(&now)))
}

fn damage(damage: &FoundDamage) -> JsonValue {
    json!({
        "file": damage.file,
        "offset": damage.offset,
        "reason": damage.reason,
        "effect": damage.effect.name(),
        "from": damage.from,
        "to": damage.to,
        "from_entry": damage.from_entry,
        "in_replay": damage.in_replay,
    })
}

fn json(now: &Now) -> JsonValue {
    let Now { counters, overview, status, .. } = now;
    let sessions = overview.sessions;
    let mut members = json!({
        "status": now.word(),
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_ms": millis(now.uptime),
        "ready": now.ready,
        "problems": now.troubles.iter().map(Trouble::json).collect::<Vec<_>>(),
        "notes": now.notes.iter().map(Trouble::json).collect::<Vec<_>>(),
        "commit": status.map(|status| status.commit),
        "applied_index": counters.applied_index,
        "durable_index": counters.journal.durable_index,
        "apply_lag_entries": counters.journal.durable_index.saturating_sub(counters.applied_index),
        "journal_bytes": status.map(|status| status.journal_bytes),
        "journal_queue_bytes": counters.journal.queue_bytes,
        "journal_slowest_sync_ms": counters.journal.slowest_recent_sync.as_secs_f64() * 1e3,
        "store_bytes": status.map(|status| status.store_bytes),
        "disk_free_bytes": now.disk.map(|disk| disk.free_bytes),
        "disk_low_bytes": now.disk.map(|disk| disk.reserve_bytes),
        "damage": now.damage.iter().map(damage).collect::<Vec<_>>(),
        "scrub": { "bytes": now.scrub.bytes, "passes": now.scrub.passes },
        "memory_bytes": status.map(|status| status.memory_bytes),
        "runs_verified": status.map(|status| status.runs_verified),
        "run_differences": status.map(|status| status.run_differences),
        "sessions": {
            "pending": sessions.pending,
            "connected": sessions.connected,
            "disconnected": sessions.disconnected,
            "push_backlog": sessions.pushes_waiting,
        },
        "claimers_waiting": overview.claimers_waiting,
        "messages_waiting": overview.messages.by_word().into_iter().collect::<BTreeMap<_, _>>(),
    });
    for (name, member) in contract_status(overview) {
        assert!(members.get(name).is_none(), "two members of the status are called {name}");
        members[name] = member;
    }
    members
}
