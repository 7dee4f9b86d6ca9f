//! Records on the status page.

use serde_json::{Value as JsonValue, json};
use statehouse::records::RecordsOverview;

pub(in crate::api) fn members(records: &RecordsOverview) -> Vec<(&'static str, JsonValue)> {
    let counts = records.by_state.iter();
    let counts =
        counts.map(|((record_type, state), count)| json!({ "type": record_type, "state": state, "count": count }));
    vec![("records", counts.collect())]
}

pub(in crate::api) fn lines(records: &RecordsOverview) -> Vec<String> {
    records.by_state.iter().map(|((record_type, state), count)| format!("{count} {record_type} {state}")).collect()
}
