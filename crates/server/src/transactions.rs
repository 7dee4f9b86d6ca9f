//! Transactions: `POST /v1/groups/{group}/txn`, operations of any contract in one commit, all or nothing.
//!
//! `{"if": [guards], "fence": {"record", "attempt"}, "do": [operations]}`. A guard or a fence that does not hold refuses
//! all of it, with what was found instead.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use contract::runs::AppendResult;
use serde_json::{Value as JsonValue, json};
use statehouse::records::Claimed;
use statehouse::runs::AppendOptions;
use statehouse::{Commit, Done, Space};

use crate::Server;
use crate::json::{
    Object, as_text, duration, fields, from_json, list, number, object_in, object_of, parse_object, required,
    required_number, text, unless_null,
};
use crate::place::{Path, Place};
use crate::problem::{Answered, Problem, body};
use crate::records::{patches_of, put_of};
use crate::runs::event_of;

/// How deep transactions may be sent within each other.
const SEND_DEPTH_MAX: usize = 8;

pub(crate) fn routes() -> Router<Server> {
    Router::new().route("/v1/groups/{*path}", post(transact))
}

async fn transact(State(server): State<Server>, Path(path): Path<String>, place: Place, bytes: Bytes) -> Answered {
    place.refuse_idempotency_key()?;
    let Some((group, "txn")) = path.rsplit_once('/') else {
        return Err(Problem::malformed("a group is posted to by /v1/groups/{group}/txn"));
    };
    let object = parse_object(&bytes)?;
    let inside = place.in_group(group.to_owned()).inside(&server.house);
    let commit = commit_of(&inside.space, group, &object, 0)?;
    let (committed, done) = commit.run_each_later().await?;
    let done: Vec<_> = done.iter().map(done_json).collect();
    Ok(inside.answer(body(StatusCode::OK, json!({ "commit": committed.commit, "done": done }))))
}

/// The commit that a body describes, in a group.
pub(crate) fn commit_of(space: &Space, group: &str, object: &Object<'_>, depth: usize) -> Result<Commit, Problem> {
    if depth > SEND_DEPTH_MAX {
        return Err(Problem::malformed("transactions are sent within each other more than 8 deep"));
    }
    let mut commit = space.group(group).commit();
    if let Some(fence) = object_in(object, "fence")? {
        commit = commit.fence(&attempt_of(&fence, "record", group)?);
    }
    for guard in list(object, "if")? {
        commit = guarded(commit, &object_of(guard, "a guard")?)?;
    }
    let operations = list(object, "do")?;
    if operations.is_empty() {
        return Err(Problem::malformed("do is missing, or empty"));
    }
    for operation in operations {
        commit = with_operation(commit, space, group, &object_of(operation, "an operation")?, depth)?;
    }
    Ok(commit)
}

fn attempt_of(object: &Object<'_>, name: &str, group: &str) -> Result<Claimed, Problem> {
    Ok(Claimed::of_attempt(&required(object, name)?, Some(group), required_number(object, "attempt")?))
}

/// `{"cell", "version"}`, `{"cell", "absent": true}`, `{"record", "version"}`, `{"record", "absent": true}`,
/// `{"record", "state_in": [...]}`, `{"record", "field", "is"}`.
fn guarded(commit: Commit, guard: &Object<'_>) -> Result<Commit, Problem> {
    let absent = guard.get("absent") == Some("true");
    let version = number(guard, "version")?;
    if let Some(cell) = text(guard, "cell")? {
        return match version {
            _ if absent => Ok(commit.if_cell_absent(&cell)),
            Some(version) => Ok(commit.if_cell_version(&cell, version)),
            None => Err(Problem::malformed("a guard of a cell has version or absent")),
        };
    }
    let record = text(guard, "record")?.ok_or_else(|| Problem::malformed("a guard names a cell or a record"))?;
    if absent {
        return Ok(commit.if_record_absent(&record));
    }
    if let Some(version) = version {
        return Ok(commit.if_record_version(&record, version));
    }
    if let Some(field) = text(guard, "field")? {
        let value = guard.get("is").map(unless_null).transpose()?.flatten();
        return Ok(commit.if_field(&record, &field, value));
    }
    let states = list(guard, "state_in")?.into_iter().map(as_text).collect::<Result<Option<Vec<_>>, _>>()?;
    match states {
        Some(states) if !states.is_empty() => {
            Ok(commit.if_state_in(&record, &states.iter().map(|state| &**state).collect::<Vec<_>>()))
        }
        _ => Err(Problem::malformed("a guard of a record has version, absent, field or a list of states in state_in")),
    }
}

fn with_operation(
    commit: Commit,
    space: &Space,
    group: &str,
    operation: &Object<'_>,
    depth: usize,
) -> Result<Commit, Problem> {
    let name = || required(operation, "name");
    let value = || operation.get("value").ok_or_else(|| Problem::malformed("value is missing")).and_then(from_json);
    let payload = || payload_of(operation.get("payload"));
    let after = duration(operation, "after")?;
    Ok(match &*required(operation, "op")? {
        "cell.set" => commit.set_cell(&name()?, value()?),
        "cell.init" => commit.init_cell(&name()?, value()?),
        "cell.delete" => commit.delete_cell(&name()?),
        "record.put" => {
            let (fields, put) = put_of(operation)?;
            commit.put_record(&name()?, fields, put)
        }
        "record.patch" => commit.set_fields(&name()?, patches_of(operation)?),
        "record.incr" => {
            let by = operation.get("by").map_or(Some(1), |by| by.parse().ok());
            let by = by.ok_or_else(|| Problem::malformed("by is not a whole number"))?;
            commit.increment(&name()?, &required(operation, "field")?, by)
        }
        "record.complete" => {
            let given = object_in(operation, "fields")?.as_ref().map(fields).transpose()?.unwrap_or_default();
            commit.complete(&attempt_of(operation, "name", group)?, given)
        }
        "record.delete" => commit.delete_record(&name()?),
        "run.append" => {
            let event = operation.get("event").ok_or_else(|| Problem::malformed("event is missing"))?;
            let run = required(operation, "run")?;
            let mut options = AppendOptions::run_type(&*text(operation, "type")?.unwrap_or_default());
            if let Some(last) = number(operation, "expect")? {
                options = options.expecting(last);
            }
            commit.append(&run, &event_of(&run, event, None)?, options)
        }
        "publish" => match after {
            Some(after) => commit.publish_after(after, &required(operation, "topic")?, payload()?),
            None => commit.publish(&required(operation, "topic")?, payload()?),
        },
        "push" => commit.push(required_number(operation, "session")?, payload()?),
        "send" => {
            let sent = commit_of(space, &required(operation, "group")?, operation, depth + 1)?;
            match after {
                Some(after) => commit.send_after(after, sent),
                None => commit.send(sent),
            }
        }
        other => {
            return Err(Problem::malformed(format!("{other:?} is no operation; see /v1/groups in the documentation")));
        }
    })
}

/// Text as it is, bytes as bytes, anything else as JSON.
fn payload_of(json: Option<&str>) -> Result<Vec<u8>, Problem> {
    let json = json.ok_or_else(|| Problem::malformed("payload is missing"))?;
    Ok(match from_json(json)? {
        contract::Value::Text(text) => text.into_bytes(),
        contract::Value::Bytes(bytes) => bytes,
        _ => json.as_bytes().to_vec(),
    })
}

/// The version that the last of some operations on one thing left behind.
pub(crate) fn version_of(done: &[Done]) -> Option<u64> {
    done.iter().rev().find_map(|done| match done {
        Done::Written { version } | Done::Existing { version } | Done::Counted { version, .. } => Some(*version),
        _ => None,
    })
}

fn done_json(done: &Done) -> JsonValue {
    match done {
        Done::Written { version } => json!({ "version": version }),
        Done::Existing { version } => json!({ "version": version, "existing": true }),
        Done::Counted { version, value } => json!({ "version": version, "value": value }),
        Done::Appended(result) => appended_json(result),
        Done::Nothing => json!({ "nothing": true }),
        _ => json!({}),
    }
}

/// What an append did.
pub(crate) fn appended_json(result: &AppendResult) -> JsonValue {
    json!({
        "runSeq": result.run_seq,
        "idempotent": result.idempotent,
        "persisted": result.persisted,
        "payloadMismatch": result.payload_mismatch,
    })
}
