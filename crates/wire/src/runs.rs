//! Runs: what their routes are asked, and what they answer. Events are handed over as the text that was sent.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};

use crate::error::pass;
use crate::reader::{from_json_text, read_as_first_of};
use crate::schema::{Described, Schemas, object, words};
use crate::values::{DurationText, JsonText, PageCursor};

object! {
    /// Which runs are listed.
    request ListRuns {
        /// Only names that begin so.
        prefix: Option<String>,
        /// Only with this status.
        status: Option<StatusText>,
        /// Only of this kind.
        "type" run_type: Option<String>,
        /// Only those without an event for so long; of every status, those that are not finished.
        stalled: Option<DurationText>,
        /// How many at most.
        limit: Option<u64>,
        /// Where the page before ended.
        cursor: Option<PageCursor>,
    }

    /// Which events are read.
    request ReadEvents {
        /// Only those behind this sequence.
        after: Option<u64>,
        /// How many at most.
        limit: Option<u64>,
        /// How long to wait for an event if there is none; `true` for a stream of events.
        follow: Option<Follow>,
    }

    /// How events are appended.
    request AppendEvents {
        /// What kind of run it is, if this makes it.
        "type" run_type: Option<String>,
        /// Whether a key or an id that is known is refused if it comes with another content.
        strict: Option<bool>,
    }

    /// How the projection is read.
    request ReadSnapshot {
        /// Made anew from all events.
        project: Option<bool>,
    }

    /// How a run is forked.
    request Fork {
        /// Up to this sequence the events are shared.
        at: u64,
        /// The name of the fork.
        "as" name: String,
    }

    /// What an append did.
    answer Appended {
        /// The event's sequence; of one that was there already, the first one's.
        "runSeq" run_seq: u64,
        /// Whether it was there already.
        idempotent: bool,
        /// Whether it was written now.
        persisted: bool,
        /// Whether it was there already, with another content.
        "payloadMismatch" payload_mismatch: bool,
        /// The event that is stored, where another content was sent for it.
        event["Option::is_none"]: Option<EventText>,
    }

    /// What an append of several events did.
    answer AppendedAll {
        /// Of each event.
        results: Vec<Appended>,
    }

    /// A page of events.
    answer Events {
        /// The events, in order.
        events: Vec<EventText>,
        /// The run's last sequence: nothing at or below can still appear.
        stable_seq: u64,
    }

    /// Where a run is now.
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
        /// Its group, or null if that is its name.
        group: Option<String>,
        /// What kind of run it is.
        "type" run_type: String,
        /// How it is doing.
        status: StatusText,
        /// Its last sequence.
        "lastEventSeq" last_event_seq: u64,
        /// When its last event was committed.
        "lastEventAt" last_event_at: String,
    }

    /// A list of runs.
    answer RunsPage {
        /// The runs, in the order of name and group.
        runs: Vec<ListedRun>,
        /// Where the next page begins; none if there is none.
        cursor: Option<PageCursor>,
        /// How many runs were looked at.
        looked_at: u64,
    }
}

words! {
    /// How a run is doing.
    StatusText {
        /// It has events, and none that says more.
        Pending = "PENDING",
        /// It may start.
        Approved = "APPROVED",
        /// It runs.
        Running = "RUNNING",
        /// It is held.
        Paused = "PAUSED",
        /// It has ended well.
        Completed = "COMPLETED",
        /// It has ended badly.
        Failed = "FAILED",
        /// It was ended.
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

/// What an event looks like; members that are not named here are kept and given back.
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

/// A stored event, as the contract spells it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct EventText(pub JsonText);

impl Described for EventText {
    fn schema(_: &mut Schemas) -> JsonValue {
        event_schema(true)
    }
}

/// What an append of one event or of several did.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum AppendAnswer {
    /// Of a list.
    Several(AppendedAll),
    /// Of one event.
    One(Appended),
}

read_as_first_of!(AppendAnswer: Several(AppendedAll), One(Appended));

impl Described for AppendAnswer {
    fn schema(schemas: &mut Schemas) -> JsonValue {
        json!({ "anyOf": [Appended::schema(schemas), AppendedAll::schema(schemas)] })
    }
}

/// The projection of a run, as the contract spells it.
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

/// How something is followed: as a stream of events, or by waiting so long if there is nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// A stream: `true`.
    Stream,
    /// No stream and no wait: `false`.
    No,
    /// At most so long.
    Wait(DurationText),
}

impl Serialize for Follow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Follow::Stream => serializer.serialize_str("true"),
            Follow::No => serializer.serialize_str("false"),
            Follow::Wait(wait) => wait.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Follow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl Visitor<'_> for Reading {
            type Value = Follow;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("true, false or a duration")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Follow, E> {
                match text {
                    "true" => Ok(Follow::Stream),
                    "false" => Ok(Follow::No),
                    text => DurationText::parse(text).map(Follow::Wait).map_err(pass),
                }
            }
        }

        deserializer.deserialize_str(Reading)
    }
}

impl Described for Follow {
    fn schema(_: &mut Schemas) -> JsonValue {
        json!({ "type": "string", "pattern": "^(true|false|[0-9]{1,4}ms)$" })
    }
}
