//! Runs on the status page.

use contract::time::millis;
use serde_json::{Value as JsonValue, json};
use statehouse::runs::RunsOverview;

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
