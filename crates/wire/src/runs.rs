//! Requests and answers of the routes for runs; operations and conditions on runs. Events are passed on as the text that was sent.

use serde::de::{self, Deserialize, Deserializer};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};

use crate::error::{DecodeError, pass};
use crate::follow::Follow;
use crate::reader::{from_json_text, read_as_first_of};
use crate::schema::{Described, Schemas, left_out, object, words};
use crate::transactions::guards::guards;
use crate::transactions::operation::operations;
use crate::values::{DurationText, JsonText, PageCursor};

object! {
    /// Selects runs to list.
    request ListRuns {
        /// Only names with this prefix.
        prefix: Option<String>,
        /// Only with this status.
        status: Option<StatusText>,
        /// Only of this kind.
        "type" run_type: Option<String>,
        /// Only runs without an event for this long; without a status, only unfinished ones.
        stalled: Option<DurationText>,
        /// Maximum number of runs.
        limit: Option<u64>,
        /// The cursor of the previous page.
        cursor: Option<PageCursor>,
    }

    /// Selects events to read.
    request ReadEvents {
        /// Only events after this sequence.
        after: Option<u64>,
        /// Maximum number of events.
        limit: Option<u64>,
        /// How long to wait for an event if there is none; `true` for a stream of events.
        follow: Option<Follow>,
    }

    /// Options of an append.
    request AppendEvents {
        /// The kind of the run, if this append creates it.
        "type" run_type: Option<String>,
        /// Whether to refuse a known key or id with different content.
        strict: Option<bool>,
    }

    /// Options of reading the projection.
    request ReadSnapshot {
        /// Whether to rebuild it from all events.
        project: Option<bool>,
    }

    /// Forks a run.
    request Fork {
        /// The last shared event.
        at: u64,
        /// The name of the fork.
        "as" name: String,
    }

    /// The result of an append.
    answer Appended {
        /// The event's sequence; for a repeated append, that of the first.
        "runSeq" run_seq: u64,
        /// Whether the event was already there.
        idempotent: bool,
        /// Whether this append wrote it.
        persisted: bool,
        /// Whether it was already there with different content.
        "payloadMismatch" payload_mismatch: bool,
        /// The stored event, if different content was sent for it.
        event["Option::is_none"]: Option<EventText>,
    }

    /// The results of an append of several events.
    answer AppendedAll {
        /// One result per event.
        results: Vec<Appended>,
    }

    /// A page of events.
    answer Events {
        /// The events, in order.
        events: Vec<EventText>,
        /// The run's last sequence: nothing can still appear at or below it.
        stable_seq: u64,
    }

    /// The position of a run.
    answer RunPosition {
        /// The run.
        "runId" run_id: String,
        /// Its last sequence.
        "lastEventSeq" last_event_seq: u64,
    }

    /// A run in a list.
    answer ListedRun {
        /// The run.
        "runId" run_id: String,
        /// Its group; left out if it has none.
        group["Option::is_none"]: Option<String>,
        /// Its kind.
        "type" run_type: String,
        /// Its status.
        status: StatusText,
        /// Its last sequence.
        "lastEventSeq" last_event_seq: u64,
        /// When its last event was committed.
        "lastEventAt" last_event_at: String,
    }

    /// A list of runs.
    answer RunsPage {
        /// The runs, ordered by name and group.
        runs: Vec<ListedRun>,
        /// Where the next page starts; null if there is none.
        cursor: Option<PageCursor>,
        /// The number of runs examined.
        looked_at: u64,
    }
}

object! {
    /// Appends an event to a run.
    request RunAppend {
        /// The run.
        run: String,
        /// The event.
        event: JsonText,
        /// The expected last sequence of the run.
        expect: Option<u64>,
        /// The kind of the run, if this append creates it.
        "type" run_type: Option<String>,
    }
}

operations! {
    /// An operation on a run, in a transaction.
    RunOperation {
        /// Appends an event to a run.
        Append(RunAppend) = "run.append",
    }
}

guards! {
    /// The condition on a run.
    RunGuard about {
        /// The run.
        run: String = "a run", if last;
    } conditions {
        /// The sequence of the run's last event; 0 expects that there was never such a run. A deleted run is refused.
        last: u64;
    }
}

impl RunGuard {
    fn could_hold(&self) -> Result<(), DecodeError> {
        Ok(())
    }
}

left_out! {
    ListRuns { prefix, status, run_type, stalled, limit, cursor }
    ReadEvents { after, limit, follow }
    AppendEvents { run_type, strict }
    ReadSnapshot { project }
}

impl From<contract::runs::AppendResult> for Appended {
    /// Without the stored event.
    fn from(result: contract::runs::AppendResult) -> Self {
        Self {
            run_seq: result.run_seq,
            idempotent: result.idempotent,
            persisted: result.persisted,
            payload_mismatch: result.payload_mismatch,
            event: None,
        }
    }
}

words! {
    /// The status of a run.
    StatusText {
        /// It has events, but none that sets a status.
        Pending = "PENDING",
        /// It may start.
        Approved = "APPROVED",
        /// It is running.
        Running = "RUNNING",
        /// It is paused.
        Paused = "PAUSED",
        /// It succeeded.
        Completed = "COMPLETED",
        /// It failed.
        Failed = "FAILED",
        /// It was cancelled.
        Cancelled = "CANCELLED",
    }
}

impl From<StatusText> for contract::runs::RunStatus {
    fn from(text: StatusText) -> Self {
        Self::ALL[text as usize]
    }
}

impl From<contract::runs::RunStatus> for StatusText {
    fn from(status: contract::runs::RunStatus) -> Self {
        Self::ALL[status as usize]
    }
}

/// One event or a list of them.
#[derive(Clone, Debug, PartialEq)]
pub enum NewEvents {
    /// One.
    One(JsonText),
    /// Several, in one commit.
    Several(Vec<JsonText>),
}

impl Serialize for NewEvents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            NewEvents::One(event) => event.serialize(serializer),
            NewEvents::Several(events) => events.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for NewEvents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?.get();
        match raw.starts_with('[') {
            true => from_json_text(raw).map(NewEvents::Several).map_err(pass),
            false if raw.starts_with('{') => Ok(NewEvents::One(JsonText(raw.to_owned()))),
            false => Err(de::Error::custom("it must be an event, or a list of events")),
        }
    }
}

/// The schema of an event; members not listed here are kept and returned.
fn event_schema(stored: bool) -> JsonValue {
    let mut schema = json!({
        "type": "object",
        "required": ["eventType"],
        "properties": {
            "eventType": { "type": "string" },
            "eventData": {},
            "idempotencyKey": { "type": "string" },
            "emittedAt": { "type": "string", "format": "date-time" },
            "eventId": { "type": "string", "format": "uuid" },
            "stepId": { "type": "string" },
            "logicalAttemptId": { "type": "string" },
            "engineAttemptId": { "type": "string" },
            "adapterVersion": { "type": "string" },
            "engineRunRef": {},
            "causedBySignalId": { "type": "string", "format": "uuid" },
            "parentEventId": { "type": "string", "format": "uuid" },
        },
    });
    if stored {
        schema["required"] =
            json!(["runId", "runSeq", "eventId", "eventType", "eventData", "idempotencyKey", "emittedAt"]);
        schema["properties"]["runId"] = json!({ "type": "string" });
        schema["properties"]["runSeq"] = json!({ "type": "integer", "minimum": 1 });
        schema["properties"]["prevSeq"] = json!({ "type": "integer", "minimum": 0 });
        schema["properties"]["persistedAt"] = json!({ "type": "string", "format": "date-time" });
        schema["properties"]["commit"] = json!({ "type": "integer", "minimum": 0 });
    }
    schema
}

impl Described for NewEvents {
    fn schema(_: &mut Schemas) -> JsonValue {
        json!({ "oneOf": [event_schema(false), { "type": "array", "items": event_schema(false) }] })
    }
}

/// A stored event, in the contract's JSON.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct EventText(pub JsonText);

impl Described for EventText {
    fn schema(_: &mut Schemas) -> JsonValue {
        event_schema(true)
    }
}

/// The result of appending one event or several.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum AppendAnswer {
    /// The results for a list.
    Several(AppendedAll),
    /// The result for one event.
    One(Appended),
}

read_as_first_of!(AppendAnswer: Several(AppendedAll), One(Appended));

impl Described for AppendAnswer {
    fn schema(schemas: &mut Schemas) -> JsonValue {
        json!({ "anyOf": [Appended::schema(schemas), AppendedAll::schema(schemas)] })
    }
}

/// The projection of a run, in the contract's JSON.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct SnapshotText(pub JsonText);

impl Described for SnapshotText {
    fn schema(_: &mut Schemas) -> JsonValue {
        let statuses: Vec<_> = StatusText::ALL.iter().map(|status| status.as_str()).collect();
        json!({
            "type": "object",
            "required": ["runId", "status", "lastEventSeq", "steps", "artifacts"],
            "properties": {
                "runId": { "type": "string" },
                "status": { "type": "string", "enum": statuses },
                "lastEventSeq": { "type": "integer", "minimum": 0 },
                "steps": { "type": "array", "items": { "type": "object" } },
                "artifacts": { "type": "array" },
            },
        })
    }
}
