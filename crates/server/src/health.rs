//! Whether the server lives, is ready, which version it is, and how the store is doing.

use std::sync::atomic::Ordering;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use serde_json::json;

use crate::Server;
use crate::problem::{Answered, body, ok};

pub(crate) fn routes() -> Router<Server> {
    Router::new()
        .route("/livez", get(|| async { ok(json!({ "alive": true })) }))
        .route("/readyz", get(ready))
        .route("/startupz", get(ready))
        .route("/version", get(|| async { ok(json!({ "statehouse": env!("CARGO_PKG_VERSION") })) }))
        .route("/status", get(status))
}

async fn ready(State(server): State<Server>) -> Answered {
    let ready = server.ready.load(Ordering::Acquire) && server.house.records().ping();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok(body(status, json!({ "ready": ready })))
}

async fn status(State(server): State<Server>) -> Answered {
    let (status, disk) = server.call(|house| Ok((house.status()?, house.disk()))).await?;
    // Null where the system does not say.
    let disk = disk.map(|disk| {
        json!({
            "free_bytes": disk.free_bytes,
            "total_bytes": disk.total_bytes,
            "reserve_bytes": disk.reserve_bytes,
            "low": disk.is_low(),
        })
    });
    ok(json!({
        "commit": status.commit,
        "applied_index": status.applied_index,
        "journal_bytes": status.journal_bytes,
        "store_bytes": status.store_bytes,
        "memory_bytes": status.memory_bytes,
        "disk": disk,
        "runs_verified": status.runs_verified,
        "run_differences": status.run_differences,
    }))
}
