//! Runs on the status page.

use contract::time::millis;
use serde_json::{Value as JsonValue, json};
use statehouse::runs::RunsOverview;
use statehouse::{Counters, Overview};

use crate::status::trouble::Trouble;

pub(in crate::api) fn members(runs: &RunsOverview) -> Vec<(&'static str, JsonValue)> {
    let counts = runs.by_status.iter();
    let counts =
        counts.map(|((run_type, status), count)| json!({ "type": run_type, "status": status.name(), "count": count }));
    let lags = runs.projectors.iter();
    let lags = lags.map(|lag| json!({ "projector": lag.name, "lag_ms": millis(lag.lag) }));
    vec![("runs", counts.collect()), ("projectors", lags.collect())]
}

pub(in crate::api) fn lines(runs: &RunsOverview) -> Vec<String> {
    let lines = runs.by_status.iter().map(|((run_type, status), count)| {
        let run_type = if run_type.is_empty() { "runs" } else { run_type };
        format!("{count} {run_type} {}", status.name())
    });
    lines.collect()
}

/// None: what the store finds when it verifies runs is a problem of the store.
pub(in crate::api) fn problems(_: &Counters, _: &Overview) -> Vec<Trouble> {
    Vec::new()
}
