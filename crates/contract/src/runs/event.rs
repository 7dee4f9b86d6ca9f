//! Events of runs, as they come in and as they are stored; their JSON is spelled as the contract's origin has it.

use serde_json::{Map, Value as JsonValue};

use crate::error::Rejection;
use crate::limits::{EVENT_KEY_BYTES_MAX, EVENT_TEXT_BYTES_MAX};
use crate::time::iso;
use crate::value::Json;

/// An event to be appended. Its sequence and the time of its commit are the store's to give.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewEvent {
    /// What happened: `RunStarted`, `StepCompleted`, or a type of one's own.
    pub event_type: String,
    /// The event's content.
    pub data: Json,
    /// Tells appends of the same event from appends of others; see [`IdempotencyKey`](super::IdempotencyKey).
    pub idempotency_key: String,
    /// A UUID; made by the store if it is left out.
    pub event_id: Option<String>,
    /// The step that it is about.
    pub step_id: Option<String>,
    /// Counts what the platform tried again.
    pub engine_attempt_id: Option<String>,
    /// Counts what was decided to be tried again.
    pub logical_attempt_id: Option<String>,
    /// When it was emitted, ISO 8601; the time of its commit if it is left out.
    pub emitted_at: Option<String>,
    /// Of what emitted it.
    pub adapter_version: Option<String>,
    /// How the engine calls this run.
    pub engine_run_ref: Option<Json>,
    /// The signal that caused it, a UUID.
    pub caused_by_signal_id: Option<String>,
    /// The event that caused it, a UUID.
    pub parent_event_id: Option<String>,
}

impl NewEvent {
    /// An event with what it must have.
    pub fn new(
        event_type: impl Into<String>,
        idempotency_key: impl Into<String>,
        emitted_at: impl Into<String>,
        data: Json,
    ) -> Self {
        Self {
            event_type: event_type.into(),
            data,
            idempotency_key: idempotency_key.into(),
            event_id: None,
            step_id: None,
            engine_attempt_id: None,
            logical_attempt_id: None,
            emitted_at: Some(emitted_at.into()),
            adapter_version: None,
            engine_run_ref: None,
            caused_by_signal_id: None,
            parent_event_id: None,
        }
    }

    /// Sets the step that it is about, and its logical attempt.
    pub fn of_step(mut self, step_id: impl Into<String>, logical_attempt_id: impl Into<String>) -> Self {
        self.step_id = Some(step_id.into());
        self.logical_attempt_id = Some(logical_attempt_id.into());
        self
    }

    /// Sets its id.
    pub fn with_id(mut self, event_id: impl Into<String>) -> Self {
        self.event_id = Some(event_id.into());
        self
    }

    /// Refuses an event that no store may take.
    pub fn check(&self) -> Result<(), Rejection> {
        let invalid = |what, reason| Err(Rejection::InvalidEvent { what, reason });
        if self.event_type.is_empty() {
            return invalid("eventType", "it is empty");
        }
        if self.idempotency_key.is_empty() {
            return invalid("idempotencyKey", "it is empty");
        }
        Rejection::check_limit("event_key_bytes_max", EVENT_KEY_BYTES_MAX, self.idempotency_key.len())?;
        if self.emitted_at.as_ref().is_some_and(|at| at.parse::<jiff::Timestamp>().is_err()) {
            return invalid("emittedAt", "it is no time in ISO 8601 with an offset");
        }
        for (what, id) in [
            ("eventId", &self.event_id),
            ("causedBySignalId", &self.caused_by_signal_id),
            ("parentEventId", &self.parent_event_id),
        ] {
            if id.as_deref().is_some_and(|id| !is_uuid(id)) {
                return invalid(what, "it is no UUID");
            }
        }
        let texts = [&self.step_id, &self.engine_attempt_id, &self.logical_attempt_id, &self.adapter_version];
        let longest = texts.into_iter().flatten().map(String::len).max().unwrap_or(0).max(self.event_type.len());
        Rejection::check_limit("event_text_bytes_max", EVENT_TEXT_BYTES_MAX, longest)
    }

    /// Reads an event from JSON as the contract spells it. `runId`, `runSeq` and `persistedAt` are ignored.
    pub fn from_json(text: &str) -> Result<Self, Rejection> {
        let invalid = |what, reason| Rejection::InvalidEvent { what, reason };
        let event: JsonValue = serde_json::from_str(text).map_err(|_| invalid("event", "it is not JSON"))?;
        let event = event.as_object().ok_or_else(|| invalid("event", "it is no JSON object"))?;
        let optional = |what: &'static str| match event.get(what) {
            None | Some(JsonValue::Null) => Ok(None),
            Some(JsonValue::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(invalid(what, "it is not text")),
        };
        let required = |what| optional(what)?.ok_or_else(|| invalid(what, "it is missing"));
        let json = |what: &str| event.get(what).map(|value| Json::from_checked(value.to_string()));
        let read = Self {
            event_type: required("eventType")?,
            data: json("eventData").unwrap_or_else(|| Json::from_checked("null".to_owned())),
            idempotency_key: required("idempotencyKey")?,
            event_id: optional("eventId")?,
            step_id: optional("stepId")?,
            engine_attempt_id: optional("engineAttemptId")?,
            logical_attempt_id: optional("logicalAttemptId")?,
            emitted_at: optional("emittedAt")?,
            adapter_version: optional("adapterVersion")?,
            engine_run_ref: json("engineRunRef").filter(|json| json.as_str() != "null"),
            caused_by_signal_id: optional("causedBySignalId")?,
            parent_event_id: optional("parentEventId")?,
        };
        read.check()?;
        Ok(read)
    }
}

fn is_uuid(text: &str) -> bool {
    let dashes = [8, 13, 18, 23];
    text.len() == 36
        && text.bytes().enumerate().all(|(place, byte)| match dashes.contains(&place) {
            true => byte == b'-',
            false => byte.is_ascii_hexdigit(),
        })
}

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredEvent {
    /// The run.
    pub run_id: String,
    /// Its place in the run, from 1.
    pub run_seq: u64,
    /// The event before it; 0 for the first.
    pub prev_seq: u64,
    /// Its id.
    pub event_id: String,
    /// When it was committed, µs since 1970 in UTC.
    pub persisted_at: u64,
    /// The number of the command that appended it.
    pub commit: u64,
    /// What was appended.
    pub event: NewEvent,
}

impl StoredEvent {
    /// An event, for those who implement the contract. If it came without an id, or without saying when it was emitted, both
    /// are made here.
    pub fn new(
        run_id: String,
        run_seq: u64,
        prev_seq: u64,
        persisted_at: u64,
        commit: u64,
        mut event: NewEvent,
    ) -> Self {
        let event_id = event.event_id.clone().unwrap_or_else(|| derived_id(&run_id, run_seq, commit));
        event.emitted_at.get_or_insert_with(|| iso(persisted_at));
        Self { run_id, run_seq, prev_seq, event_id, persisted_at, commit, event }
    }

    /// The event as JSON, spelled as the contract has it. What is not there is left out.
    pub fn to_json(&self) -> String {
        let mut json = Map::new();
        let mut put = |name: &str, value: Option<JsonValue>| {
            if let Some(value) = value {
                json.insert(name.to_owned(), value);
            }
        };
        let text = |text: &Option<String>| text.clone().map(JsonValue::String);
        let event = &self.event;
        put("runId", Some(self.run_id.clone().into()));
        put("runSeq", Some(self.run_seq.into()));
        put("prevSeq", Some(self.prev_seq.into()));
        put("eventId", Some(self.event_id.clone().into()));
        put("stepId", text(&event.step_id));
        put("engineAttemptId", text(&event.engine_attempt_id));
        put("logicalAttemptId", text(&event.logical_attempt_id));
        put("eventType", Some(event.event_type.clone().into()));
        put("eventData", Some(event.data.parsed()));
        put("idempotencyKey", Some(event.idempotency_key.clone().into()));
        put("emittedAt", text(&event.emitted_at));
        put("persistedAt", Some(iso(self.persisted_at).into()));
        put("adapterVersion", text(&event.adapter_version));
        put("engineRunRef", event.engine_run_ref.as_ref().map(Json::parsed));
        put("causedBySignalId", text(&event.caused_by_signal_id));
        put("parentEventId", text(&event.parent_event_id));
        JsonValue::Object(json).to_string()
    }
}

/// The id of an event that came without one: a UUID of version 8, the same wherever it is read.
fn derived_id(run_id: &str, run_seq: u64, commit: u64) -> String {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new();
    hash.update(run_id.as_bytes());
    hash.update(run_seq.to_le_bytes());
    hash.update(commit.to_le_bytes());
    let hash = hash.finalize();
    let mut bytes: [u8; 16] = *hash.first_chunk().expect("a hash of 32 bytes");
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_spelled_as_the_contract_has_it() {
        let text = r#"{"runId":"r1","eventId":"0190c4d0-7a3b-7def-8000-1234567890ab","stepId":"s1","engineAttemptId":"3",
            "logicalAttemptId":"1","eventType":"StepCompleted","eventData":{"rows":7},"idempotencyKey":"abc123",
            "emittedAt":"2026-02-11T10:00:00Z","adapterVersion":"1.2","engineRunRef":{"workflowId":"w"},
            "causedBySignalId":"0190c4d0-7a3b-7def-8000-1234567890ac"}"#;
        let event = NewEvent::from_json(text).expect("well formed");
        let stored = StoredEvent::new("r1".into(), 10, 9, 1_770_804_000_123_456, 44, event.clone());
        let json: JsonValue = serde_json::from_str(&stored.to_json()).expect("JSON");
        let expected = r#"{"runId":"r1","runSeq":10,"prevSeq":9,"eventId":"0190c4d0-7a3b-7def-8000-1234567890ab","stepId":"s1",
            "engineAttemptId":"3","logicalAttemptId":"1","eventType":"StepCompleted","eventData":{"rows":7},
            "idempotencyKey":"abc123","emittedAt":"2026-02-11T10:00:00Z","persistedAt":"2026-02-11T10:00:00.123456Z",
            "adapterVersion":"1.2","engineRunRef":{"workflowId":"w"},
            "causedBySignalId":"0190c4d0-7a3b-7def-8000-1234567890ac"}"#;
        assert_eq!(json, serde_json::from_str::<JsonValue>(expected).expect("JSON"));
        assert_eq!(NewEvent::from_json(&stored.to_json()), Ok(event));
    }

    #[test]
    fn what_no_store_may_take_is_refused() {
        let good = || NewEvent::new("T", "k", "2026-02-11T10:00:00+01:00", Json::from_checked("1".into()));
        assert_eq!(good().check(), Ok(()));
        let code = |event: NewEvent| event.check().expect_err("refused").code();
        assert_eq!(code(NewEvent { event_type: String::new(), ..good() }), "SH-3001");
        assert_eq!(code(NewEvent { idempotency_key: String::new(), ..good() }), "SH-3001");
        assert_eq!(code(NewEvent { emitted_at: Some("yesterday".into()), ..good() }), "SH-3001");
        assert_eq!(code(good().with_id("0190c4d0")), "SH-3001");
        assert_eq!(code(NewEvent { idempotency_key: "k".repeat(257), ..good() }), "SH-1002");
        assert!(NewEvent::from_json("{\"eventType\":\"T\"}").is_err());
        let left_out = NewEvent::from_json(r#"{"eventType":"T","idempotencyKey":"k"}"#).expect("the store says when");
        let stored = StoredEvent::new("r".into(), 1, 0, 1_770_804_000_123_456, 7, left_out);
        assert_eq!(stored.event.emitted_at.as_deref(), Some("2026-02-11T10:00:00.123456Z"));
    }

    #[test]
    fn an_id_that_is_made_is_a_uuid_and_stays_the_same() {
        let event = NewEvent::new("T", "k", "2026-02-11T10:00:00Z", Json::from_checked("1".into()));
        let id = |seq| StoredEvent::new("r".into(), seq, seq - 1, 0, 7, event.clone()).event_id;
        assert!(is_uuid(&id(1)));
        assert_eq!(id(1), id(1));
        assert_ne!(id(1), id(2));
    }
}
