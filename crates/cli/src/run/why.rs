//! Explains the state of a run.

use clap::Args;
use serde_json::{Value as JsonValue, json};
use wire::routes::{RUNS_EVENTS, RUNS_LIST, RUNS_SNAPSHOT};
use wire::runs::{ListRuns, ReadEvents};

use crate::connection::{Ask, Connection};
use crate::exit::Failure;
use crate::table::{Column, Style, ago, column, one_line, plain};
use crate::why::{Reasons, Thing, explain_all, not_there, with};

const EVENTS: &[Column] = &[
    column("WHEN", "persistedAt", Style::Ago),
    plain("SEQUENCE", "runSeq"),
    plain("WHAT", "eventType"),
    plain("STEP", "stepId"),
    plain("ATTEMPT", "logicalAttemptId"),
];

/// Explain a run: its status, the steps in progress, how long it has been quiet. Searches all groups.
///
/// Examples:
///   statehouse why run order-7
///   statehouse why run order-7 -o json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Run {
    /// The run's name.
    name: String,
}

impl Run {
    pub(crate) async fn explain(&self, connection: &Connection) -> Result<Vec<Reasons>, Failure> {
        let page = |cursor| {
            let query = ListRuns { prefix: Some(self.name.clone()), cursor, ..ListRuns::default() };
            connection.call(RUNS_LIST, &[]).query(&query)
        };
        let of_one = async |thing: Thing<'_>| reasons(connection, thing).await;
        explain_all(connection, "run", ("runs", "runId"), page, &self.name, of_one).await
    }
}

async fn reasons(connection: &Connection, thing: Thing<'_>) -> Result<Reasons, Failure> {
    let client = thing.client(connection);
    let Some(snapshot) = client.call(RUNS_SNAPSHOT, &[thing.name]).ask_if_there().await? else {
        return Err(not_there("run", thing.name, &[]));
    };
    let last = snapshot["lastEventSeq"].as_u64().unwrap_or(0);
    let query = ReadEvents { after: Some(last.saturating_sub(10)), ..ReadEvents::default() };
    let events = client.call(RUNS_EVENTS, &[thing.name]).query(&query).ask().await?;
    let events = events["events"].as_array().cloned().unwrap_or_default();
    let status = snapshot["status"].as_str().unwrap_or("?");
    let quiet = events.last().and_then(|event| event["persistedAt"].as_str()).map_or("?".into(), ago);
    let now = format!("{} is {status} at sequence {last}; its last event was {quiet}", thing.title());
    let (waits_for, next) = match status {
        "COMPLETED" | "FAILED" | "CANCELLED" => {
            let failed = steps(&snapshot, "FAILED").next();
            let why = failed.map_or(String::new(), |step| format!("; {}", failure_of(step)));
            ("nothing".to_owned(), format!("nothing; it has ended{why}"))
        }
        "PAUSED" => ("someone to resume it".to_owned(), "an event RunResumed continues it".to_owned()),
        _ => under_way(&snapshot),
    };
    let mut found = with(&snapshot, "run");
    found["group"] = thing.group.clone().into();
    found["last_event"] = events.last().cloned().unwrap_or(JsonValue::Null);
    Ok(Reasons { now, waits_for, next, found, history: events, columns: EVENTS })
}

fn steps<'json>(snapshot: &'json JsonValue, status: &str) -> impl Iterator<Item = &'json JsonValue> {
    let steps = snapshot["steps"].as_array().into_iter().flatten();
    steps.filter(move |step| step["status"] == status)
}

fn under_way(snapshot: &JsonValue) -> (String, String) {
    let running: Vec<_> = steps(snapshot, "RUNNING")
        .map(|step| {
            let since = step["startedAt"].as_str().map_or("?".into(), ago);
            let attempt = step["logicalAttemptId"].as_str().unwrap_or("?");
            format!("step {} (attempt {}, started {since})", json!(step["stepId"]), one_line(attempt))
        })
        .collect();
    let failed = steps(snapshot, "FAILED").next().map(failure_of);
    match (running.is_empty(), failed) {
        (false, _) => (running.join(", "), "someone appends StepCompleted or StepFailed for it".into()),
        (true, Some(failed)) => {
            (format!("a decision after {failed}"), "another attempt starts, or the run ends".into())
        }
        (true, None) => ("its next event; no step is in progress".into(), "its driver appends the next event".into()),
    }
}

fn failure_of(step: &JsonValue) -> String {
    let message = step["error"]["message"].as_str().unwrap_or("no message");
    format!("step {} failed: {}", json!(step["stepId"]), one_line(message))
}
