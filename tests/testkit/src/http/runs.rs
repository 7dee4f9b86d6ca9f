//! The contract of runs, over HTTP.

use contract::runs::{
    AppendResult, NewEvent, RunSnapshot, RunStateStore, RunStatus, StepError, StepSnapshot, StepStatus, StoredEvent,
};
use contract::{Error, Json};
use serde_json::{Map, Value as JsonValue};

use super::client::Client;
use super::message::{Request, path_of};
use super::refusals::{NOT_FOUND, code, refusal};
use super::values::micros;

/// The runs of a client's place.
pub struct HttpRuns {
    client: Client,
}

impl HttpRuns {
    /// Runs where the client is.
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

fn path(run: &str, part: &str) -> String {
    format!("/v1/runs/{}/{part}", path_of(run))
}

/// An event as JSON. It is spelled out here and not by the contract's own code, which would refuse what the server is to
/// refuse.
pub fn event_json(event: &NewEvent) -> JsonValue {
    let parsed = |json: &Json| serde_json::from_str::<JsonValue>(json.as_str()).expect("JSON");
    let mut json = Map::new();
    json.insert("eventType".into(), event.event_type.clone().into());
    json.insert("eventData".into(), parsed(&event.data));
    json.insert("idempotencyKey".into(), event.idempotency_key.clone().into());
    for (name, text) in [
        ("emittedAt", &event.emitted_at),
        ("eventId", &event.event_id),
        ("stepId", &event.step_id),
        ("engineAttemptId", &event.engine_attempt_id),
        ("logicalAttemptId", &event.logical_attempt_id),
        ("adapterVersion", &event.adapter_version),
        ("causedBySignalId", &event.caused_by_signal_id),
        ("parentEventId", &event.parent_event_id),
    ] {
        if let Some(text) = text {
            json.insert(name.into(), text.clone().into());
        }
    }
    if let Some(engine_run_ref) = &event.engine_run_ref {
        json.insert("engineRunRef".into(), parsed(engine_run_ref));
    }
    json.into()
}

/// An event that is stored, from its JSON.
pub fn stored_event(json: &JsonValue) -> StoredEvent {
    let number = |name: &str| json[name].as_u64().unwrap_or_else(|| panic!("{name} is missing in {json}"));
    let text = |name: &str| json[name].as_str().unwrap_or_else(|| panic!("{name} is missing in {json}")).to_owned();
    let mut event = NewEvent::from_json(&json.to_string()).expect("an event that was taken");
    let given = event.event_id.take();
    let stored = |event| {
        let persisted_at = micros(&text("persistedAt"));
        StoredEvent::new(text("runId"), number("runSeq"), number("prevSeq"), persisted_at, number("commit"), event)
    };
    // One that came without an id got the one that the contract derives.
    let derived = stored(event.clone());
    if given.as_ref() == Some(&derived.event_id) {
        return derived;
    }
    event.event_id = given;
    stored(event)
}

impl RunStateStore for HttpRuns {
    fn append_event(&self, run: &str, event: &NewEvent) -> Result<AppendResult, Error> {
        let answer = self.client.call(Request::post(path(run, "events")).body(event_json(event).to_string()))?.json();
        let is = |name: &str| answer[name].as_bool().unwrap_or_else(|| panic!("{name} is missing in {answer}"));
        Ok(AppendResult {
            run_seq: answer["runSeq"].as_u64().expect("a sequence"),
            idempotent: is("idempotent"),
            persisted: is("persisted"),
            payload_mismatch: is("payloadMismatch"),
        })
    }

    fn fetch_events(&self, run: &str, after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        let request = Request::get(path(run, "events")).query("after", after_seq).query("limit", limit);
        let answer = self.client.call(request)?.json();
        Ok(answer["events"].as_array().expect("events").iter().map(stored_event).collect())
    }

    fn get_snapshot(&self, run: &str) -> Result<Option<RunSnapshot>, Error> {
        let response = self.client.send(Request::get(path(run, "snapshot"))).expect("an answer");
        match response.status {
            200 => Ok(Some(snapshot(&response.json()))),
            404 if code(&response) == NOT_FOUND => Ok(None),
            _ => Err(refusal(&response)),
        }
    }

    fn project_snapshot(&self, run: &str) -> Result<RunSnapshot, Error> {
        Ok(snapshot(&self.client.call(Request::get(path(run, "snapshot")).query("project", "true"))?.json()))
    }
}

fn text(json: &JsonValue) -> Option<String> {
    json.as_str().map(str::to_owned)
}

fn artifacts(json: &JsonValue) -> Vec<Json> {
    let list = json.as_array().into_iter().flatten();
    list.map(|artifact| Json::from_checked(artifact.to_string())).collect()
}

fn snapshot(json: &JsonValue) -> RunSnapshot {
    let status = RunStatus::ALL.into_iter().find(|status| json["status"] == status.name());
    RunSnapshot {
        run_id: text(&json["runId"]).expect("a run"),
        status: status.expect("a status"),
        last_event_seq: json["lastEventSeq"].as_u64().expect("a sequence"),
        steps: json["steps"].as_array().expect("steps").iter().map(step).collect(),
        steps_left_out: json["stepsLeftOut"].as_u64().unwrap_or(0),
        artifacts: artifacts(&json["artifacts"]),
        started_at: text(&json["startedAt"]),
        completed_at: text(&json["completedAt"]),
        total_duration_ms: json["totalDurationMs"].as_u64(),
    }
}

fn step(json: &JsonValue) -> StepSnapshot {
    let status = StepStatus::ALL.into_iter().find(|status| json["status"] == status.name());
    let error = json.get("error").map(|error| StepError {
        code: text(&error["code"]).expect("a code"),
        message: text(&error["message"]).expect("a message"),
        retryable: error["retryable"].as_bool().expect("yes or no"),
    });
    StepSnapshot {
        step_id: text(&json["stepId"]).expect("a step"),
        status: status.expect("a status"),
        logical_attempt_id: text(&json["logicalAttemptId"]).expect("an attempt"),
        engine_attempt_id: text(&json["engineAttemptId"]),
        started_at: text(&json["startedAt"]),
        completed_at: text(&json["completedAt"]),
        artifacts: artifacts(&json["artifacts"]),
        error,
    }
}
