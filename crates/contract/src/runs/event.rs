//! Events of runs, as they come in and as they are stored; their JSON is spelled as the contract's origin has it.
//!
//! Keeps: an event's content, the engine's reference and the members that the contract does not name are the text that was
//! given, from an append to every answer. Never: accepts a member twice, or one that is the store's to give.

use super::event_members::{check_extra, check_names, extra, invalid};
use crate::error::Rejection;
use crate::limits::{EVENT_KEY_BYTES_MAX, EVENT_TEXT_BYTES_MAX};
use crate::object_text::{self, ObjectText};
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
    /// Members that the contract does not name, as one JSON object. They are given back as they are.
    pub extra: Option<Json>,
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
            extra: None,
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

    /// Sets the members that the contract does not name, as one JSON object.
    pub fn with_extra(mut self, members: Json) -> Self {
        self.extra = Some(members);
        self
    }

    /// Refuses an event that no store may take.
    pub fn check(&self) -> Result<(), Rejection> {
        if self.event_type.is_empty() {
            return Err(invalid("eventType", "it is empty"));
        }
        if self.idempotency_key.is_empty() {
            return Err(invalid("idempotencyKey", "it is empty"));
        }
        Rejection::check_limit("event_key_bytes_max", EVENT_KEY_BYTES_MAX, self.idempotency_key.len())?;
        if self.emitted_at.as_ref().is_some_and(|at| at.parse::<jiff::Timestamp>().is_err()) {
            return Err(invalid("emittedAt", "it is no time in ISO 8601 with an offset"));
        }
        for (what, id) in [
            ("eventId", &self.event_id),
            ("causedBySignalId", &self.caused_by_signal_id),
            ("parentEventId", &self.parent_event_id),
        ] {
            if id.as_deref().is_some_and(|id| !is_uuid(id)) {
                return Err(invalid(what, "it is no UUID"));
            }
        }
        let texts = [&self.step_id, &self.engine_attempt_id, &self.logical_attempt_id, &self.adapter_version];
        let longest = texts.into_iter().flatten().map(String::len).max().unwrap_or(0).max(self.event_type.len());
        Rejection::check_limit("event_text_bytes_max", EVENT_TEXT_BYTES_MAX, longest)?;
        match &self.extra {
            Some(extra) => check_extra(extra),
            None => Ok(()),
        }
    }

    /// Reads an event for a run from JSON as the contract spells it. It may name the run, if it is this one. A member that
    /// the contract does not name is kept. A member that is there twice is refused, and so is one that only the store can give:
    /// `runSeq`, `prevSeq`, `persistedAt`, `commit`.
    ///
    /// ```
    /// use statehouse_contract::runs::NewEvent;
    /// let event = |more: &str| {
    ///     let text = r#"{"eventType":"Paid","idempotencyKey":"k","emittedAt":"2026-02-11T10:00:00Z""#;
    ///     NewEvent::from_json("orders", &format!("{text},{more}}}"))
    /// };
    /// let paid = event(r#""eventData": {"cents": 1.50}, "traceId": "7""#)?;
    /// assert_eq!(paid.data.as_str(), r#"{"cents": 1.50}"#);
    /// assert_eq!(paid.extra.map(|extra| extra.into_string()).as_deref(), Some(r#"{"traceId":"7"}"#));
    /// assert!(event(r#""runId":"orders""#).is_ok());
    /// assert!(event(r#""runId":"invoices""#).is_err());
    /// assert!(event(r#""runSeq":1"#).is_err());
    /// # Ok::<(), statehouse_contract::Rejection>(())
    /// ```
    pub fn from_json(run_id: &str, text: &str) -> Result<Self, Rejection> {
        let members = object_text::members(text).map_err(|error| invalid("event", error.to_string()))?;
        check_names(&members)?;
        let find = |what: &str| members.iter().find(|member| member.name == what).map(|member| member.json);
        let optional = |what: &'static str| match find(what) {
            None | Some("null") => Ok(None),
            Some(json) if json.starts_with('"') => {
                let text = object_text::text(json).map_err(|error| invalid(what, error.to_string()))?;
                Ok(Some(text.into_owned()))
            }
            Some(_) => Err(invalid(what, "it is not text")),
        };
        let required = |what| optional(what)?.ok_or_else(|| invalid(what, "it is missing"));
        let json = |what: &'static str| {
            find(what).map(|json| Json::new(json).map_err(|error| invalid(what, error.to_string()))).transpose()
        };
        if optional("runId")?.is_some_and(|named| named != run_id) {
            return Err(invalid("runId", "it is not the run that the event is appended to"));
        }
        let read = Self {
            event_type: required("eventType")?,
            data: json("eventData")?.unwrap_or_else(|| Json::from_checked("null".to_owned())),
            idempotency_key: required("idempotencyKey")?,
            event_id: optional("eventId")?,
            step_id: optional("stepId")?,
            engine_attempt_id: optional("engineAttemptId")?,
            logical_attempt_id: optional("logicalAttemptId")?,
            emitted_at: optional("emittedAt")?,
            adapter_version: optional("adapterVersion")?,
            engine_run_ref: json("engineRunRef")?.filter(|json| json.as_str() != "null"),
            caused_by_signal_id: optional("causedBySignalId")?,
            parent_event_id: optional("parentEventId")?,
            extra: extra(&members)?,
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

    /// The event as JSON, spelled as the contract has it; extra members are last. What is not there is left out.
    pub fn to_json(&self) -> String {
        let event = &self.event;
        let mut json = ObjectText::default();
        json.text("runId", &self.run_id).number("runSeq", self.run_seq).number("prevSeq", self.prev_seq);
        json.text("eventId", &self.event_id).text_if("stepId", event.step_id.as_deref());
        json.text_if("engineAttemptId", event.engine_attempt_id.as_deref());
        json.text_if("logicalAttemptId", event.logical_attempt_id.as_deref());
        json.text("eventType", &event.event_type).raw("eventData", event.data.as_str());
        json.text("idempotencyKey", &event.idempotency_key).text_if("emittedAt", event.emitted_at.as_deref());
        json.text("persistedAt", &iso(self.persisted_at));
        json.text_if("adapterVersion", event.adapter_version.as_deref());
        if let Some(reference) = &event.engine_run_ref {
            json.raw("engineRunRef", reference.as_str());
        }
        json.text_if("causedBySignalId", event.caused_by_signal_id.as_deref());
        json.text_if("parentEventId", event.parent_event_id.as_deref());
        if let Some(extra) = &event.extra {
            json.members_of(extra.as_str());
        }
        json.finish()
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
    use super::super::event_members::{GIVEN_BY_THE_STORE, MEMBERS};
    use super::*;
    use crate::limits::EVENT_EXTRA_BYTES_MAX;

    const EVENT: &str = r#""eventType":"T","idempotencyKey":"k","emittedAt":"2026-02-11T10:00:00Z""#;

    fn read(more: &str) -> Result<NewEvent, Rejection> {
        NewEvent::from_json("r1", &format!("{{{EVENT},{more}}}"))
    }

    #[test]
    fn an_event_is_spelled_as_the_contract_has_it() {
        let text = r#"{"runId":"r1","eventId":"0190c4d0-7a3b-7def-8000-1234567890ab","stepId":"s1","engineAttemptId":"3",
            "logicalAttemptId":"1","eventType":"StepCompleted","eventData":{"rows":7},"idempotencyKey":"abc123",
            "emittedAt":"2026-02-11T10:00:00Z","adapterVersion":"1.2","engineRunRef":{"workflowId":"w"},
            "causedBySignalId":"0190c4d0-7a3b-7def-8000-1234567890ac"}"#;
        let event = NewEvent::from_json("r1", text).expect("well formed");
        let stored = StoredEvent::new("r1".into(), 10, 9, 1_770_804_000_123_456, 44, event);
        let expected = concat!(
            r#"{"runId":"r1","runSeq":10,"prevSeq":9,"eventId":"0190c4d0-7a3b-7def-8000-1234567890ab","stepId":"s1","#,
            r#""engineAttemptId":"3","logicalAttemptId":"1","eventType":"StepCompleted","eventData":{"rows":7},"#,
            r#""idempotencyKey":"abc123","emittedAt":"2026-02-11T10:00:00Z","persistedAt":"2026-02-11T10:00:00.123456Z","#,
            r#""adapterVersion":"1.2","engineRunRef":{"workflowId":"w"},"#,
            r#""causedBySignalId":"0190c4d0-7a3b-7def-8000-1234567890ac"}"#,
        );
        assert_eq!(stored.to_json(), expected);
    }

    #[test]
    fn user_json_and_members_that_the_contract_does_not_name_come_back_as_they_were() {
        let (data, reference) = (r#"{"b": 12345678901234567890, "a":1.0, "b":-0}"#, r#"[ 1e400, "\u0041" ]"#);
        let extra = r#""trace\u0049d": 1E2 , "z":{ "x" : null, "x":1 },"data" :[]"#;
        let event = read(&format!("\"eventData\": {data} ,\"engineRunRef\":{reference},{extra}")).expect("well formed");
        assert_eq!(event.data.as_str(), data);
        let stored = StoredEvent::new("r1".into(), 1, 0, 0, 1, event).to_json();
        assert!(stored.contains(&format!(r#""eventData":{data},"idem"#)), "{stored}");
        assert!(stored.contains(&format!(r#""engineRunRef":{reference},"#)), "{stored}");
        let extra = r#","trace\u0049d":1E2,"z":{ "x" : null, "x":1 },"data":[]}"#;
        assert!(stored.ends_with(extra), "in their order, each spelled as it was: {stored}");
    }

    #[test]
    fn a_member_that_is_not_the_senders_or_is_there_twice_is_refused_by_name() {
        for name in GIVEN_BY_THE_STORE {
            let refused = read(&format!("\"{name}\":\"r2\"")).expect_err(name);
            assert!(matches!(refused, Rejection::InvalidEvent { what, .. } if what == name), "{name}");
        }
        assert!(read(r#""runId":"r1""#).is_ok(), "this is the run");
        for name in MEMBERS.iter().chain(&["runId", "unknown", "a\"b"]) {
            let spelled = serde_json::to_string(name).expect("JSON");
            let twice = format!(
                "{spelled}:null,\"{}\":null",
                name.bytes().map(|byte| format!("\\u{byte:04x}")).collect::<String>()
            );
            let refused = read(&twice).expect_err(name);
            assert!(matches!(&refused, Rejection::InvalidEvent { what, .. } if what == name), "{name}: {refused}");
        }
        for extra in ["[]", r#"{"a":1,"a":2}"#, r#"{"runSeq":1}"#, r#"{"event\u0054ype":"T"}"#] {
            let event = read(r#""x":1"#).expect("well formed").with_extra(Json::new(extra).expect("JSON"));
            assert_eq!(event.check().expect_err(extra).code(), "SH-3001");
        }
        let large = format!("\"x\":\"{}\"", "x".repeat(EVENT_EXTRA_BYTES_MAX));
        assert_eq!(read(&large).expect_err("too large").code(), "SH-1002");
    }

    #[test]
    fn half_a_surrogate_pair_is_refused_wherever_it_is() {
        for (more, what) in [
            (r#""eventData":{"a":"\ud800"}"#, "eventData"),
            (r#""engineRunRef":"\udc00""#, "engineRunRef"),
            (r#""stepId":"\ud800""#, "stepId"),
            (r#""extra":["\ud800"]"#, "extra"),
            (r#""\ud800":1"#, "event"),
        ] {
            let refused = read(more).expect_err(more);
            assert!(
                matches!(&refused, Rejection::InvalidEvent { what: found, reason } if found == what && reason.contains("lone surrogate")),
                "{refused}"
            );
        }
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
        assert!(NewEvent::from_json("r", "{\"eventType\":\"T\"}").is_err());
        let left_out =
            NewEvent::from_json("r", r#"{"eventType":"T","idempotencyKey":"k"}"#).expect("the store says when");
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
