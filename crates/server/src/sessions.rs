//! Sessions: `POST /v1/sessions`, keep-alives, pushes, and the end. Any other request is sent in a session by the headers
//! `Statehouse-Session`, `Statehouse-Request` and `Statehouse-Lowest-Pending`.

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use serde_json::{Value as JsonValue, json};
use statehouse::sessions::{Delivery, LifeState, SessionOptions};

use crate::Server;
use crate::json::{duration, number, parse_object, to_json};
use crate::place::Place;
use crate::problem::{Answered, Problem, body, done, ok};

pub(crate) fn routes() -> Router<Server> {
    Router::new()
        .route("/v1/sessions", post(create))
        .route("/v1/sessions/{id}", get(status).delete(close))
        .route("/v1/sessions/{id}/keepalive", post(keep_alive))
        .route("/v1/sessions/{id}/pushes", get(pushes))
        .route("/v1/sessions/{id}/acks", post(acknowledge))
}

/// `{"timeout": "30s", "capabilities": {"client": "curl"}}`.
async fn create(State(server): State<Server>, bytes: Bytes) -> Answered {
    let object = parse_object(&bytes)?;
    let mut options = SessionOptions::default();
    if let Some(timeout) = duration(&object, "timeout")? {
        options = options.timeout(timeout);
    }
    for (name, value) in object.get("capabilities").and_then(JsonValue::as_object).into_iter().flatten() {
        let value = value.as_str().ok_or_else(|| Problem::malformed("a capability is not text"))?;
        options = options.capability(name, value);
    }
    let timeout_ms = u64::try_from(options.timeout.as_millis()).unwrap_or(u64::MAX);
    let session = server.call(move |house| house.sessions().create(options)).await?;
    Ok(body(StatusCode::CREATED, json!({ "session": session, "timeout_ms": timeout_ms })))
}

async fn status(State(server): State<Server>, Path(id): Path<u64>) -> Answered {
    let found = server.call(move |house| {
        let sessions = house.sessions();
        Ok((sessions.status(id)?, sessions.state(id)))
    });
    let (status, state) = found.await?;
    let status = status.ok_or_else(|| Problem::from(contract::Error::from(contract::Rejection::SessionExpired)))?;
    let state = match state {
        LifeState::Pending => "pending",
        LifeState::Connected => "connected",
        LifeState::Disconnected => "disconnected",
        LifeState::Expired => "expired",
    };
    ok(json!({
        "session": id,
        "state": state,
        "timeout_ms": status.row.timeout_us / 1_000,
        "lowest_pending": status.floor,
        "last_request": status.last_request,
        "stored_answers": status.answers,
        "last_push": status.last_push,
        "acknowledged": status.acknowledged,
    }))
}

async fn keep_alive(State(server): State<Server>, Path(id): Path<u64>) -> Answered {
    server.call(move |house| house.sessions().keep_alive(id)).await?;
    done()
}

async fn close(State(server): State<Server>, Path(id): Path<u64>) -> Answered {
    let ended = server.call(move |house| house.sessions().expire(id)).await?;
    ok(json!({ "ended": ended }))
}

/// `?wait=10s&limit=`: the pushes that are not acknowledged, from the first on; waits for one if there is none.
async fn pushes(State(server): State<Server>, Path(id): Path<u64>, place: Place) -> Answered {
    let wait = place.wait("wait")?;
    let limit = place.limit(100)?;
    let pushes = server.call(move |house| {
        let mut deliveries = house.sessions().deliveries(id)?;
        let mut pushes = Vec::new();
        let mut wait = wait;
        while pushes.len() < limit
            && let Some(delivery) = deliveries.next(wait)?
        {
            wait = Duration::ZERO;
            if let Delivery::Push { number, payload } = delivery {
                pushes.push(json!({ "number": number, "payload": payload_json(payload) }));
            }
        }
        Ok(pushes)
    });
    ok(json!({ "pushes": pushes.await? }))
}

/// Text as text, other bytes as bytes.
pub(crate) fn payload_json(payload: Vec<u8>) -> JsonValue {
    match String::from_utf8(payload) {
        Ok(text) => text.into(),
        Err(error) => to_json(&contract::Value::Bytes(error.into_bytes())),
    }
}

/// `{"upto": 3}`.
async fn acknowledge(State(server): State<Server>, Path(id): Path<u64>, bytes: Bytes) -> Answered {
    let object = parse_object(&bytes)?;
    let upto = number(&object, "upto")?.ok_or_else(|| Problem::malformed("upto is missing"))?;
    let forgotten = server.call(move |house| house.sessions().acknowledge(id, upto)).await?;
    ok(json!({ "forgotten": forgotten }))
}
