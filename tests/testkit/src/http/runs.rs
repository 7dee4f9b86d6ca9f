//! The run contract over the typed client.

use client::Client;
use contract::object_text::{self, Member, ObjectText};
use contract::runs::{
    AppendResult, NewEvent, RunSnapshot, RunStateStore, RunStatus, StepError, StepSnapshot, StepStatus, StoredEvent,
};
use contract::{Error, Json};
use serde_json::Value as JsonValue;
use wire::runs::ReadEvents;

use super::client::block_on;
use super::micros;
use super::refusals::error;

/// The runs of a client's place.
pub struct HttpRuns {
    client: Client,
}

impl HttpRuns {
    /// Runs in the client's place.
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

/// An event as JSON. It is written out here rather than by the contract's own code, which would refuse the events that the
/// server must refuse.
pub fn event_json(event: &NewEvent) -> String {
    let mut json = ObjectText::default();
    json.text("eventType", &event.event_type).raw("eventData", event.data.as_str());
    json.text("idempotencyKey", &event.idempotency_key);
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
        json.text_if(name, text.as_deref());
    }
    if let Some(engine_run_ref) = &event.engine_run_ref {
        json.raw("engineRunRef", engine_run_ref.as_str());
    }
    if let Some(extra) = &event.extra {
        json.members_of(extra.as_str());
    }
    json.finish()
}

/// A stored event, from its JSON.
pub fn stored_event(json: &str) -> StoredEvent {
    let members = object_text::members(json).unwrap_or_else(|error| panic!("{error} in {json}"));
    let find = |name: &str| {
        let member = members.iter().find(|member| member.name == name);
        member.unwrap_or_else(|| panic!("{name} is missing in {json}")).json
    };
    let number = |name: &str| find(name).parse().unwrap_or_else(|_| panic!("{name} is no number in {json}"));
    let text =
        |name: &str| object_text::text(find(name)).unwrap_or_else(|error| panic!("{name}: {error}")).into_owned();
    // Members added by the store are not part of the appended event.
    let mut sent = ObjectText::default();
    let given_by_the_store = ["runId", "runSeq", "prevSeq", "persistedAt", "commit"];
    for member in members.iter().filter(|member| !given_by_the_store.contains(&&*member.name)) {
        sent.members_of(&format!("{{{}:{}}}", member.spelled, member.json));
    }
    let mut event = NewEvent::from_json(&text("runId"), &sent.finish()).expect("an event that was taken");
    let (run, seq) = (text("runId"), number("runSeq"));
    // An event that came without an id got one that begins with its sequence.
    let event_id = event.event_id.take().expect("every stored event has an id");
    if !event_id.replace('-', "").starts_with(&format!("{seq:012x}8")) {
        event.event_id = Some(event_id.clone());
    }
    let persisted_at = micros(&text("persistedAt"));
    let mut stored = StoredEvent::new(run, 0, seq, number("prevSeq"), persisted_at, number("commit"), event);
    stored.event_id = event_id;
    stored
}

impl RunStateStore for HttpRuns {
    fn append_event(&self, run: &str, event: &NewEvent) -> Result<AppendResult, Error> {
        let appended = block_on(self.client.runs().append(run, event_json(event), None)).map_err(error)?;
        Ok(AppendResult {
            run_seq: appended.run_seq,
            idempotent: appended.idempotent,
            persisted: appended.persisted,
            payload_mismatch: appended.payload_mismatch,
        })
    }

    fn fetch_events(&self, run: &str, after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        let query = ReadEvents { after: Some(after_seq), limit: Some(limit as u64), ..ReadEvents::default() };
        let page = block_on(self.client.runs().events(run, &query)).map_err(error)?;
        Ok(page.events.iter().map(|event| stored_event(&event.0.0)).collect())
    }

    fn get_snapshot(&self, run: &str) -> Result<Option<RunSnapshot>, Error> {
        let found = block_on(self.client.runs().snapshot(run)).map_err(error)?;
        Ok(found.map(|found| snapshot(&found.0.0)))
    }

    fn project_snapshot(&self, run: &str) -> Result<RunSnapshot, Error> {
        Ok(snapshot(&block_on(self.client.runs().project(run)).map_err(error)?.0.0))
    }
}

/// A snapshot, or a step of one: its artifacts are text, everything else is parsed into a tree.
struct Projected<'json> {
    tree: JsonValue,
    members: Vec<Member<'json>>,
}

impl<'json> Projected<'json> {
    fn read(json: &'json str) -> Self {
        let members = object_text::members(json).unwrap_or_else(|error| panic!("{error} in {json}"));
        let plain = members.iter().filter(|member| !["artifacts", "steps"].contains(&&*member.name));
        let read = |member: &Member<'_>| serde_json::from_str::<JsonValue>(member.json).expect("JSON");
        let tree = plain.map(|member| (member.name.to_string(), read(member))).collect();
        Self { tree, members }
    }

    fn text(&self, name: &str) -> Option<String> {
        self.tree[name].as_str().map(str::to_owned)
    }

    fn list(&self, name: &str) -> Vec<&'json str> {
        let member = self.members.iter().find(|member| member.name == name).expect("a list");
        object_text::entries(member.json).expect("a list")
    }

    fn artifacts(&self) -> Vec<Json> {
        self.list("artifacts").into_iter().map(|artifact| Json::from_checked(artifact.to_owned())).collect()
    }
}

fn snapshot(json: &str) -> RunSnapshot {
    let json = Projected::read(json);
    let status = RunStatus::ALL.into_iter().find(|status| json.tree["status"] == status.name());
    RunSnapshot {
        run_id: json.text("runId").expect("a run"),
        status: status.expect("a status"),
        last_event_seq: json.tree["lastEventSeq"].as_u64().expect("a sequence"),
        steps: json.list("steps").into_iter().map(step).collect(),
        steps_left_out: json.tree["stepsLeftOut"].as_u64().unwrap_or(0),
        artifacts: json.artifacts(),
        started_at: json.text("startedAt"),
        completed_at: json.text("completedAt"),
        total_duration_ms: json.tree["totalDurationMs"].as_u64(),
    }
}

fn step(json: &str) -> StepSnapshot {
    let json = Projected::read(json);
    let status = StepStatus::ALL.into_iter().find(|status| json.tree["status"] == status.name());
    let text = |json: &JsonValue| json.as_str().expect("text").to_owned();
    let error = json.tree.get("error").map(|error| StepError {
        code: text(&error["code"]),
        message: text(&error["message"]),
        retryable: error["retryable"].as_bool().expect("yes or no"),
    });
    StepSnapshot {
        step_id: json.text("stepId").expect("a step"),
        status: status.expect("a status"),
        logical_attempt_id: json.text("logicalAttemptId").expect("an attempt"),
        engine_attempt_id: json.text("engineAttemptId"),
        started_at: json.text("startedAt"),
        completed_at: json.text("completedAt"),
        artifacts: json.artifacts(),
        error,
    }
}
