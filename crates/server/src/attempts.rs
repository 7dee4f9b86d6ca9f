//! What an attempt does to its record: `POST /v1/records/{name}/step`, `extend`, `release`, `complete`, `fail`.
//!
//! Keeps: every one carries the attempt, and is refused once that is over (SH-4002).

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use contract::time::millis;
use serde_json::json;
use statehouse::records::{Claimed, Retry};

use crate::Server;
use crate::json::{duration, fields, number, object_in, parse_object, text};
use crate::place::{Path, Place};
use crate::problem::{Answered, Problem, body};

/// The last part of the path says what, the body has the attempt.
pub(crate) async fn act(
    State(server): State<Server>,
    Path(path): Path<String>,
    place: Place,
    bytes: Bytes,
) -> Answered {
    place.refuse_idempotency_key()?;
    let (name, action) = path.rsplit_once('/').ok_or_else(no_such_action)?;
    let object = parse_object(&bytes)?;
    let attempt = number(&object, "attempt")?.ok_or_else(|| Problem::malformed("attempt is missing"))?;
    let given = object_in(&object, "fields")?.as_ref().map(fields).transpose()?.unwrap_or_default();
    let lease = duration(&object, "lease")?;
    let error = text(&object, "error")?.unwrap_or_default();
    let inside = place.inside(&server.house);
    let records = inside.records();
    let claimed = Claimed::of_attempt(name, place.group.as_deref(), attempt);
    let written = match action {
        "step" => records.step_later(&claimed, given).await?,
        "extend" => records.extend_later(&claimed, lease).await?,
        "release" => records.release_later(&claimed).await?,
        "complete" => records.complete_later(&claimed, given).await?,
        "fail" => {
            let answer = match records.fail_later(&claimed, &error).await? {
                Retry::After(pause) => json!({ "name": name, "retry_in_ms": millis(pause), "exhausted": false }),
                Retry::Exhausted => json!({ "name": name, "retry_in_ms": null, "exhausted": true }),
            };
            return Ok(inside.answer(body(StatusCode::OK, answer)));
        }
        _ => return Err(no_such_action()),
    };
    let answer = json!({ "name": name, "version": written.version, "commit": written.commit });
    Ok(inside.answer(body(StatusCode::OK, answer)))
}

fn no_such_action() -> Problem {
    Problem::malformed("a record is posted to by /step, /extend, /release, /complete or /fail")
}
