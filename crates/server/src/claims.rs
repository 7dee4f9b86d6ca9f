//! Claims: `POST /v1/claims` takes the next jobs, and waits for one if it is asked to.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use statehouse::records::ClaimOptions;

use crate::Server;
use crate::json::{duration, number, parse_object, text};
use crate::place::Place;
use crate::problem::{Answered, Problem, body};
use crate::record_json::ClaimedJson;

/// A claim waits no longer than this; then the client asks again.
const WAIT_MAX: Duration = Duration::from_secs(60);

pub(crate) fn routes() -> Router<Server> {
    Router::new().route("/v1/claims", post(claim))
}

/// `{"prefix": "jobs.", "n": 1, "worker": "w1", "lease": "30s", "wait": "10s"}`, or `name` instead of `prefix` for one
/// record.
async fn claim(State(server): State<Server>, place: Place, bytes: Bytes) -> Answered {
    place.refuse_idempotency_key()?;
    let object = parse_object(&bytes)?;
    let records_max = number(&object, "n")?.unwrap_or(1);
    let records_max = u32::try_from(records_max).map_err(|_| Problem::malformed("n is too large"))?;
    let mut options = ClaimOptions::worker(&*text(&object, "worker")?.unwrap_or_default());
    if let Some(lease) = duration(&object, "lease")? {
        options = options.lease(lease);
    }
    let wait = duration(&object, "wait")?.unwrap_or_default().min(WAIT_MAX);
    let inside = place.inside(&server.house);
    let claimed = match (text(&object, "name")?, text(&object, "prefix")?.unwrap_or_default()) {
        (Some(name), _) => vec![inside.records().claim_later(&name, &options).await?],
        (None, prefix) if wait.is_zero() => inside.records().claim_next_later(&prefix, records_max, &options).await?,
        (None, prefix) => {
            // When the server stops, whoever waits is told to ask again, another server or this one when it is back.
            let time_over = async {
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = server.stopping.cancelled() => {}
                }
            };
            inside.records().claim_next_until(&prefix, records_max, &options, time_over).await?
        }
    };
    let claimed: Vec<_> = claimed.into_iter().map(ClaimedJson).collect();
    Ok(inside.answer(body(StatusCode::OK, BTreeMap::from([("claimed", claimed)]))))
}
