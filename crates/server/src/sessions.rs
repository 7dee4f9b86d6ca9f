//! Sessions: `POST /v1/sessions`, keep-alives, pushes, and the end. Any other request is sent in a session by the headers
//! `Statehouse-Session`, `Statehouse-Request` and `Statehouse-Lowest-Pending`.

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use contract::limits::PAGE_BYTES_MAX;
use contract::time::millis;
use serde_json::{Map, Value as JsonValue, json};
use statehouse::sessions::{Deliveries, Delivery, LifeState, SessionOptions, SessionStatus};

use crate::Server;
use crate::json::{as_text, duration, object_in, parse_object, required_number};
use crate::place::{Path, Place};
use crate::problem::{Answered, Problem, body, done, ok};
use crate::stream::{Sent, Source};

pub(crate) fn routes() -> Router<Server> {
    Router::new()
        .route("/v1/sessions", post(create).get(list))
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
    for (name, value) in object_in(&object, "capabilities")?.unwrap_or_default().iter() {
        let value = as_text(value)?.ok_or_else(|| Problem::malformed("a capability is not text"))?;
        options = options.capability(name, &*value);
    }
    let timeout_ms = millis(options.timeout);
    let session = server.house.sessions().create_later(options).await?;
    Ok(body(StatusCode::CREATED, json!({ "session": session, "timeout_ms": timeout_ms })))
}

async fn status(State(server): State<Server>, Path(id): Path<u64>) -> Answered {
    let sessions = server.house.sessions();
    let status = sessions.status(id)?.ok_or(contract::Error::from(contract::Rejection::SessionExpired))?;
    ok(session_json(id, &status, sessions.state(id)))
}

fn session_json(session: u64, status: &SessionStatus, state: LifeState) -> JsonValue {
    let state = match state {
        LifeState::Pending => "pending",
        LifeState::Connected => "connected",
        LifeState::Disconnected => "disconnected",
        LifeState::Expired => "expired",
    };
    let capabilities: Map<_, _> =
        status.row.capabilities.iter().map(|(name, value)| (name.clone(), payload_json(value.clone()))).collect();
    json!({
        "session": session,
        "state": state,
        "timeout_ms": status.row.timeout_us / 1_000,
        "capabilities": capabilities,
        "lowest_pending": status.floor,
        "last_request": status.last_request,
        "stored_answers": status.answers,
        "last_push": status.last_push,
        "acknowledged": status.acknowledged,
    })
}

async fn keep_alive(State(server): State<Server>, Path(id): Path<u64>) -> Answered {
    server.house.sessions().keep_alive(id)?;
    done()
}

async fn close(State(server): State<Server>, Path(id): Path<u64>) -> Answered {
    ok(json!({ "ended": server.house.sessions().expire_later(id).await? }))
}

/// `?after=&limit=`: the sessions, by number.
async fn list(State(server): State<Server>, place: Place) -> Answered {
    let (after, limit) = (place.number("after")?.unwrap_or(0), place.limit(100)?);
    let memory = server.reserve_page().await?;
    let found = server.call(move |house| {
        let sessions = house.sessions();
        let numbers = sessions.list(after, limit)?;
        let next_after = numbers.last().copied().filter(|_| numbers.len() == limit);
        let mut found = Vec::with_capacity(numbers.len());
        for session in numbers {
            // It may have ended since.
            found.extend(
                sessions.status(session)?.map(|status| session_json(session, &status, sessions.state(session))),
            );
        }
        Ok((found, next_after))
    });
    let (sessions, next_after) = found.await?;
    Ok(memory.hold(body(StatusCode::OK, json!({ "sessions": sessions, "next_after": next_after }))))
}

/// `?wait=10s&limit=`: the pushes that are not acknowledged, from the first on; waits for one if there is none. As a
/// stream with `?follow=true`, from behind the `Last-Event-ID` on.
async fn pushes(State(server): State<Server>, Path(id): Path<u64>, place: Place) -> Answered {
    let mut deliveries = server.house.sessions().deliveries(id)?;
    if place.wants_stream() {
        let seen = place.last_event()?.unwrap_or(0);
        return server.stream(SessionPushes { deliveries, seen });
    }
    let wait = place.wait("wait")?;
    let limit = place.limit(100)?;
    let mut memory = server.reserve_page().await?;
    let read = server.call(move |_| {
        let (mut pushes, mut bytes) = (Vec::new(), 0);
        while pushes.len() < limit
            && bytes < PAGE_BYTES_MAX
            && let Some(delivery) = deliveries.next(Duration::ZERO)?
        {
            if let Delivery::Push { payload, .. } = &delivery {
                bytes += payload.len();
            }
            pushes.extend(push_json(delivery));
        }
        Ok((pushes, deliveries))
    });
    let (mut pushes, mut deliveries) = read.await?;
    if pushes.is_empty() && !wait.is_zero() {
        memory.give_back();
        if let Some(delivery) = server.in_time(wait, deliveries.next_async()).await {
            pushes.extend(push_json(delivery?));
        }
    }
    let pushes: Vec<_> = pushes.into_iter().map(|(_, push)| push).collect();
    Ok(memory.hold(body(StatusCode::OK, json!({ "pushes": pushes }))))
}

/// The pushes of a session, for a stream.
struct SessionPushes {
    deliveries: Deliveries,
    seen: u64,
}

impl Source for SessionPushes {
    async fn next(&mut self) -> Result<Vec<Sent>, contract::Error> {
        loop {
            let push = push_json(self.deliveries.next_async().await?);
            if let Some((number, push)) = push.filter(|(number, _)| *number > self.seen) {
                self.seen = number;
                return Ok(vec![Sent::new(number, "push", push.to_string())]);
            }
        }
    }

    fn position(&mut self) -> Result<u64, contract::Error> {
        Ok(self.seen)
    }
}

/// The number of a push, and the push as JSON.
fn push_json(delivery: Delivery) -> Option<(u64, JsonValue)> {
    match delivery {
        Delivery::Push { number, payload } => {
            Some((number, json!({ "number": number, "payload": payload_json(payload) })))
        }
        _ => None,
    }
}

/// Text as text, other bytes as bytes.
pub(crate) fn payload_json(payload: Vec<u8>) -> JsonValue {
    match String::from_utf8(payload) {
        Ok(text) => text.into(),
        Err(error) => json!(contract::Value::Bytes(error.into_bytes())),
    }
}

/// `{"upto": 3}`.
async fn acknowledge(State(server): State<Server>, Path(id): Path<u64>, bytes: Bytes) -> Answered {
    let upto = required_number(&parse_object(&bytes)?, "upto")?;
    ok(json!({ "forgotten": server.house.sessions().acknowledge_later(id, upto).await? }))
}
