//! Claims: `POST /v1/claims` takes the next jobs, and waits for one if it is asked to.

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use serde_json::{Value as JsonValue, json};
use statehouse::records::ClaimOptions;

use crate::Server;
use crate::json::{duration, number, parse_object, text};
use crate::place::Place;
use crate::problem::{Answered, Problem, ok};
use crate::records::record_json;

/// A claim waits no longer than this; then the client asks again.
const WAIT_MAX: Duration = Duration::from_secs(60);

pub(crate) fn routes() -> Router<Server> {
    Router::new().route("/v1/claims", post(claim))
}

/// `{"prefix": "jobs.", "n": 1, "worker": "w1", "lease": "30s", "wait": "10s"}`.
async fn claim(State(server): State<Server>, place: Place, bytes: Bytes) -> Answered {
    let object = parse_object(&bytes)?;
    let prefix = text(&object, "prefix")?.unwrap_or_default().to_owned();
    let records_max = number(&object, "n")?.unwrap_or(1);
    let records_max = u32::try_from(records_max).map_err(|_| Problem::malformed("n is too large"))?;
    let mut options = ClaimOptions::worker(text(&object, "worker")?.unwrap_or_default());
    if let Some(lease) = duration(&object, "lease")? {
        options = options.lease(lease);
    }
    if let Some(wait) = duration(&object, "wait")? {
        options = options.wait(wait.min(WAIT_MAX));
    }
    let claimed = server.call(move |house| place.space(house).records().claim_next(&prefix, records_max, &options));
    let claims: Vec<JsonValue> = claimed
        .await?
        .into_iter()
        .map(|claimed| {
            let mut json = record_json(&claimed.name, &claimed.record);
            json.insert("group".into(), claimed.group.into());
            json.insert("token".into(), claimed.token.into());
            json.insert("lease_ms".into(), u64::try_from(claimed.lease.as_millis()).unwrap_or(u64::MAX).into());
            json.into()
        })
        .collect();
    ok(json!({ "claims": claims }))
}
