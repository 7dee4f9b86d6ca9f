//! What a store is told once: spaces and how much history they keep, branches, record types; and the limits that are in
//! force.

use std::borrow::Cow;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, put};
use contract::records::types::{Backoff, IndexKind, ReadyOrder, RecordType, State as RecordState, StateKind};
use contract::time::millis;
use contract::{Limits, Retention};
use serde_json::{Map, Value as JsonValue, json};

use crate::Server;
use crate::json::{
    Object, as_text, duration, list as list_in, number, object_in, object_of, parse_object, required, text,
};
use crate::place::{Path, Place};
use crate::problem::{Answered, Problem, body, done, ok};

pub(crate) fn routes() -> Router<Server> {
    Router::new()
        .route("/v1/spaces", get(spaces))
        .route("/v1/spaces/{space}", put(create_space))
        .route("/v1/spaces/{space}/retention", get(retention).put(set_retention))
        .route("/v1/branches", get(branches))
        .route("/v1/branches/{branch}", put(create_branch).delete(delete_branch))
        .route("/v1/types", get(types))
        .route("/v1/types/{*prefix}", put(declare_type))
        .route("/v1/limits", get(limits))
}

async fn spaces(State(server): State<Server>) -> Answered {
    ok(json!({ "spaces": server.house.spaces()? }))
}

async fn create_space(State(server): State<Server>, Path(space): Path<String>) -> Answered {
    let name = space.clone();
    server.call(move |house| house.create_space(&name).map(drop)).await?;
    Ok(body(StatusCode::CREATED, json!({ "space": space })))
}

/// `{"versions": 100, "age": "7d"}`; `null` for all of them, and for ever.
async fn retention(State(server): State<Server>, Path(space): Path<String>) -> Answered {
    let Retention { versions_max, age_us_max } = server.house.space(&space).retention()?;
    let bound = |bound: u64, shown: u64| (bound != u64::MAX).then_some(shown);
    ok(json!({
        "versions": bound(versions_max, versions_max),
        "age_ms": bound(age_us_max, age_us_max / 1_000),
    }))
}

async fn set_retention(State(server): State<Server>, Path(space): Path<String>, bytes: Bytes) -> Answered {
    let object = parse_object(&bytes)?;
    let versions = number(&object, "versions")?.unwrap_or(u64::MAX);
    let retention = match duration(&object, "age")?.or(number(&object, "age_ms")?.map(Duration::from_millis)) {
        Some(age) => Retention::within(versions, age),
        None => Retention::versions(versions),
    };
    server.call(move |house| house.space(&space).set_retention(retention)).await?;
    done()
}

async fn branches(State(server): State<Server>, place: Place) -> Answered {
    ok(json!({ "branches": place.inside(&server.house).space.branches()? }))
}

async fn create_branch(State(server): State<Server>, Path(branch): Path<String>, place: Place) -> Answered {
    let name = branch.clone();
    server.call(move |house| place.inside(house).space.create_branch(&name).map(drop)).await?;
    Ok(body(StatusCode::CREATED, json!({ "branch": branch })))
}

async fn delete_branch(State(server): State<Server>, Path(branch): Path<String>, place: Place) -> Answered {
    server.call(move |house| place.inside(house).space.delete_branch(&branch)).await?;
    done()
}

async fn limits(State(server): State<Server>) -> Answered {
    let limits: Limits = server.house.limits()?;
    ok(json!({
        "value_bytes_max": limits.value_bytes_max,
        "transaction_ops_max": limits.transaction_ops_max,
        "transaction_bytes_max": limits.transaction_bytes_max,
        "spaces_max": limits.spaces_max,
        "branches_per_space_max": limits.branches_per_space_max,
        "changes_commits_max": limits.changes_commits_max,
        "changes_age_us_max": limits.changes_age_us_max,
        "record_fields_max": limits.record_fields_max,
        "record_bytes_max": limits.record_bytes_max,
        "claim_records_max": limits.claim_records_max,
        "claim_bytes_max": limits.claim_bytes_max,
        "sessions_max": limits.sessions_max,
        "session_answers_max": limits.session_answers_max,
        "session_answer_bytes_max": limits.session_answer_bytes_max,
        "session_pushes_max": limits.session_pushes_max,
        "session_push_bytes_max": limits.session_push_bytes_max,
    }))
}

async fn types(State(server): State<Server>, place: Place) -> Answered {
    let types = place.inside(&server.house).space.types()?;
    let types: Vec<_> = types.iter().map(|(prefixes, declared)| type_json(prefixes, declared)).collect();
    ok(json!({ "types": types }))
}

/// Declares a type for the records whose names begin with the prefix. What is left out is as the built-in type `task` has
/// it.
async fn declare_type(
    State(server): State<Server>,
    Path(prefix): Path<String>,
    place: Place,
    bytes: Bytes,
) -> Answered {
    let declared = type_of(&parse_object(&bytes)?)?;
    let answer = type_json(std::slice::from_ref(&prefix), &declared);
    server.call(move |house| place.inside(house).space.declare_type(&prefix, declared)).await?;
    ok(answer)
}

fn type_json(prefixes: &[String], declared: &RecordType) -> JsonValue {
    let states: Vec<_> =
        declared.states.iter().map(|state| json!({ "name": state.name, "kind": state_kind(state.kind) })).collect();
    let indexes: Map<_, _> =
        declared.indexes.iter().map(|(field, kind)| (field.clone(), index_kind(*kind).into())).collect();
    json!({
        "name": declared.name,
        "prefixes": prefixes,
        "state_field": declared.state_field,
        "states": states,
        "completed": declared.completed,
        "failed": declared.failed,
        "indexes": indexes,
        "default_ttl_ms": declared.default_ttl.map(millis),
        "terminal_ttl_ms": declared.terminal_ttl.map(millis),
        "lease_ms": millis(declared.lease),
        "attempts_max": declared.attempts_max,
        "backoff": { "first_ms": millis(declared.backoff.first), "max_ms": millis(declared.backoff.max) },
        "ready_order": match &declared.ready_order {
            ReadyOrder::Oldest => JsonValue::Null,
            ReadyOrder::Field(field) => field.clone().into(),
        },
        "rescued_to": declared.rescued_to,
        "exhausted_to": declared.exhausted_to,
    })
}

/// A duration under its own name, or in ms under the name that it is shown with.
fn time(object: &Object<'_>, name: &str) -> Result<Option<Duration>, Problem> {
    let shown = number(object, &format!("{name}_ms"))?;
    Ok(duration(object, name)?.or(shown.map(Duration::from_millis)))
}

fn type_of(object: &Object<'_>) -> Result<RecordType, Problem> {
    let mut declared = RecordType::task().named(&*required(object, "name")?);
    if let Some(field) = text(object, "state_field")? {
        declared.state_field = field.into_owned();
    }
    let states = list_in(object, "states")?;
    if !states.is_empty() {
        declared.states = states.into_iter().map(state_of).collect::<Result<_, _>>()?;
    }
    if let Some(completed) = text(object, "completed")? {
        declared.completed = completed.into_owned();
    }
    if let Some(failed) = text(object, "failed")? {
        declared.failed = failed.into_owned();
    }
    for (field, kind) in object_in(object, "indexes")?.unwrap_or_default().iter() {
        let kind = as_text(kind)?.and_then(|name| INDEX_KINDS.into_iter().find(|kind| index_kind(*kind) == name));
        let kind = kind.ok_or_else(|| Problem::malformed("an index is bytes, unsigned, signed, text or time"))?;
        declared = declared.index(field, kind);
    }
    declared.default_ttl = time(object, "default_ttl")?;
    declared.terminal_ttl = time(object, "terminal_ttl")?;
    declared.lease = time(object, "lease")?.unwrap_or(declared.lease);
    declared.attempts_max = number(object, "attempts_max")?.unwrap_or(declared.attempts_max);
    if let Some(backoff) = object_in(object, "backoff")? {
        let first = time(&backoff, "first")?.unwrap_or(declared.backoff.first);
        let max = time(&backoff, "max")?.unwrap_or(declared.backoff.max);
        declared.backoff = Backoff { first, max };
    }
    if let Some(field) = text(object, "ready_order")? {
        declared.ready_order = ReadyOrder::Field(field.into_owned());
    }
    declared.rescued_to = text(object, "rescued_to")?.map(Cow::into_owned);
    declared.exhausted_to = text(object, "exhausted_to")?.map(Cow::into_owned);
    Ok(declared)
}

const STATE_KINDS: [StateKind; 3] = [StateKind::Ready, StateKind::Held, StateKind::Terminal];
const INDEX_KINDS: [IndexKind; 5] =
    [IndexKind::Bytes, IndexKind::Unsigned, IndexKind::Signed, IndexKind::Text, IndexKind::Time];

fn state_of(json: &str) -> Result<RecordState, Problem> {
    let object = object_of(json, "a state")?;
    let kind = required(&object, "kind")?;
    let kind = STATE_KINDS.into_iter().find(|known| state_kind(*known) == kind);
    let kind = kind.ok_or_else(|| Problem::malformed("a state's kind is ready, held or terminal"))?;
    Ok(RecordState { name: required(&object, "name")?.into_owned(), kind })
}

fn state_kind(kind: StateKind) -> &'static str {
    match kind {
        StateKind::Ready => "ready",
        StateKind::Held => "held",
        StateKind::Terminal => "terminal",
    }
}

fn index_kind(kind: IndexKind) -> &'static str {
    match kind {
        IndexKind::Bytes => "bytes",
        IndexKind::Unsigned => "unsigned",
        IndexKind::Signed => "signed",
        IndexKind::Text => "text",
        IndexKind::Time => "time",
    }
}
