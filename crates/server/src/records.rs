//! Records: `GET PUT PATCH DELETE /v1/records/{name}`, and how many there are in each state: `GET /v1/counts`. What an
//! attempt does to one is in `attempts.rs`, scans are in `scan.rs`.

use std::borrow::Cow;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{any, get};
use contract::{Error, Expected, Rejection, Value, Written, names};
use serde_json::{Map, Value as JsonValue, json};
use statehouse::Done;
use statehouse::records::{FieldSwapped, Put, Ttl};

use crate::Server;
use crate::attempts::act;
use crate::cells::{with_etag, written_answer};
use crate::json::{Object, as_text, duration, fields, from_json, list, object_in, parse_object, text, unless_null};
use crate::place::{Path, Place, expected, if_match};
use crate::problem::{Answered, Problem, body, no_name, ok};
use crate::record_json::RecordJson;
use crate::scan::scan;
use crate::transactions::version_of;

pub(crate) fn routes() -> Router<Server> {
    let one = get(read).put(put).patch(patch).delete(delete).post(act);
    Router::new()
        .route("/v1/records", get(scan))
        .route("/v1/records/", any(|| no_name(names::check_record)))
        .route("/v1/records/{*name}", one)
        .route("/v1/counts", get(counts))
}

async fn read(State(server): State<Server>, Path(name): Path<String>, place: Place) -> Answered {
    match place.inside(&server.house).records().get(&name)? {
        None => Err(Problem::not_found("record", &name)),
        Some(record) => {
            Ok(with_etag(body(StatusCode::OK, RecordJson { name: &name, record: &record }), record.version))
        }
    }
}

/// How a record is put: `{"fields": {...}, "ttl": "10m" | "keep" | "session", "type": "task"}`.
pub(crate) fn put_of(object: &Object<'_>) -> Result<(Vec<(String, Value)>, Put), Problem> {
    let given = object_in(object, "fields")?.ok_or_else(|| Problem::malformed("fields is missing"))?;
    let ttl = ttl_of(object)?.unwrap_or(Ttl::Persist);
    Ok((fields(&given)?, Put { ttl, record_type: text(object, "type")?.map(Cow::into_owned) }))
}

/// How long a record is to exist: a duration, `keep`, `session`, or `forever`.
fn ttl_of(object: &Object<'_>) -> Result<Option<Ttl>, Problem> {
    Ok(match object.get("ttl").map(as_text).transpose()?.flatten().as_deref() {
        Some("keep") => Some(Ttl::Keep),
        Some("session") => Some(Ttl::WithSession),
        Some("forever") => Some(Ttl::Persist),
        _ => duration(object, "ttl")?.map(Ttl::After),
    })
}

/// Which fields are written and removed: `{"set": {...}, "unset": [...]}`.
pub(crate) fn patches_of(object: &Object<'_>) -> Result<Vec<(String, Option<Value>)>, Problem> {
    let mut patches: Vec<_> = match object_in(object, "set")? {
        Some(set) => fields(&set)?.into_iter().map(|(name, value)| (name, Some(value))).collect(),
        None => Vec::new(),
    };
    for name in list(object, "unset")? {
        let name = as_text(name)?.ok_or_else(|| Problem::malformed("unset is no list of names"))?;
        patches.push((name.into_owned(), None));
    }
    Ok(patches)
}

async fn put(
    State(server): State<Server>,
    Path(name): Path<String>,
    place: Place,
    headers: HeaderMap,
    bytes: Bytes,
) -> Answered {
    place.refuse_idempotency_key()?;
    let (fields, put) = put_of(&parse_object(&bytes)?)?;
    let inside = place.inside(&server.house);
    let expected = expected(&headers)?;
    let commit = inside.records().commit();
    let commit = match expected {
        None => commit,
        Some(Expected::Absent) => commit.if_record_absent(&name),
        Some(Expected::Version(version)) => commit.if_record_version(&name, version),
    };
    let (committed, done) = commit
        .put_record(&name, fields, put)
        .run_each_later()
        .await
        .map_err(|error| Problem::from(error).of_header())?;
    let written = Written { version: version_of(&done).unwrap_or_default(), commit: committed.commit };
    let status = if written.version == 1 { StatusCode::CREATED } else { StatusCode::OK };
    Ok(inside.answer(written_answer(status, &name, written)))
}

/// A field that gets a new value if it holds what is expected.
struct Swap {
    field: String,
    expected: Option<Value>,
    new: Value,
}

/// The one field that is to be swapped, if that is all there is to do. By a swap of its state a record can also be claimed.
fn swap_of(object: &Object<'_>) -> Result<Option<Swap>, Problem> {
    let alone = object.iter().all(|(name, _)| ["set", "expect"].contains(&name));
    let (set, expect) =
        (object_in(object, "set")?.unwrap_or_default(), object_in(object, "expect")?.unwrap_or_default());
    if !alone || set.len() != 1 || expect.len() != 1 {
        return Ok(None);
    }
    Ok(match (set.iter().next(), expect.iter().next()) {
        (Some((field, new)), Some((expected_of, expected))) if field == expected_of => {
            Some(Swap { field: field.to_owned(), expected: unless_null(expected)?, new: from_json(new)? })
        }
        _ => None,
    })
}

/// `{"set": {...}, "unset": [...], "incr": {"field": 1}, "expect": {"field": 7}, "ttl": "10m"}`: all of it in one commit.
async fn patch(
    State(server): State<Server>,
    Path(name): Path<String>,
    place: Place,
    headers: HeaderMap,
    bytes: Bytes,
) -> Answered {
    place.refuse_idempotency_key()?;
    let object = parse_object(&bytes)?;
    let inside = place.inside(&server.house);
    let version_expected = if_match(&headers)?;
    if version_expected.is_none()
        && let Some(Swap { field, expected, new }) = swap_of(&object)?
    {
        return match inside.records().compare_and_swap_later(&name, &field, expected, Some(new)).await? {
            FieldSwapped::Written(written) => Ok(inside.answer(written_answer(StatusCode::OK, &name, written))),
            FieldSwapped::Conflict { current } => {
                let conflict = Rejection::FieldConflict { record: name, field, current };
                Err(Error::from(conflict).into())
            }
        };
    }
    let mut commit = inside.records().commit();
    if let Some(version) = version_expected {
        commit = commit.if_record_version(&name, version);
    }
    for (field, value) in object_in(&object, "expect")?.unwrap_or_default().iter() {
        commit = commit.if_field(&name, field, unless_null(value)?);
    }
    let patches = patches_of(&object)?;
    let mut counted = Vec::new();
    for (field, by) in object_in(&object, "incr")?.unwrap_or_default().iter() {
        let by = by.parse().map_err(|_| Problem::malformed("incr is not of whole numbers"))?;
        counted.push(field.to_owned());
        commit = commit.increment(&name, field, by);
    }
    let ttl = ttl_of(&object)?;
    if patches.is_empty() && counted.is_empty() && ttl.is_none() {
        return Err(Problem::malformed("there is nothing to do: set, unset, incr and ttl are all missing"));
    }
    if !patches.is_empty() {
        commit = commit.set_fields(&name, patches);
    }
    if let Some(ttl) = ttl {
        commit = commit.set_ttl(&name, ttl);
    }
    let (committed, done) = commit.run_each_later().await.map_err(|error| Problem::from(error).of_header())?;
    let version = version_of(&done).unwrap_or_default();
    let mut answer = json!({ "name": name, "version": version, "commit": committed.commit });
    if !counted.is_empty() {
        let values = done.iter().filter_map(|done| match done {
            Done::Counted { value, .. } => Some(JsonValue::from(*value)),
            _ => None,
        });
        answer["values"] = counted.into_iter().zip(values).collect::<Map<_, _>>().into();
    }
    Ok(inside.answer(with_etag(body(StatusCode::OK, answer), version)))
}

async fn delete(State(server): State<Server>, Path(name): Path<String>, place: Place, headers: HeaderMap) -> Answered {
    place.refuse_idempotency_key()?;
    let inside = place.inside(&server.house);
    let mut commit = inside.records().commit();
    if let Some(version) = if_match(&headers)? {
        commit = commit.if_record_version(&name, version);
    }
    let deleted = commit.delete_record(&name).run_each_later().await;
    let (_, done) = deleted.map_err(|error| Problem::from(error).of_header())?;
    match version_of(&done) {
        Some(version) => Ok(inside.answer(body(StatusCode::OK, json!({ "name": name, "version": version })))),
        None => Err(Problem::not_found("record", &name)),
    }
}

/// `?prefix=jobs.`: how many records of each type are in each state.
async fn counts(State(server): State<Server>, place: Place) -> Answered {
    let prefix = place.query("prefix").unwrap_or_default().to_owned();
    let counts = server.call(move |house| place.inside(house).records().counts(&prefix)).await?;
    let counts: Vec<_> = counts
        .by_state
        .iter()
        .map(|((record_type, state), count)| json!({ "type": record_type, "state": state, "count": count }))
        .collect();
    ok(json!({ "counts": counts }))
}
