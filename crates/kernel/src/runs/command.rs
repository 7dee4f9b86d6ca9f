//! Operations on runs, and conditions on them, as encoded in a command; `docs/formats/entry.md`.

use contract::Json;
use contract::runs::NewEvent;
use kv::{DecodeError, Reader, Writer};
use session::Digester;

use crate::command::act::{Act, Condition, Open, unless_empty};

/// An event, borrowed from the command that appends it or from its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRef<'bytes> {
    /// What happened.
    pub event_type: &'bytes str,
    /// JSON.
    pub data: &'bytes str,
    /// Identifies repeated appends of the same event.
    pub idempotency_key: &'bytes str,
    /// A UUID, if it came with one.
    pub event_id: Option<&'bytes str>,
    /// The step.
    pub step_id: Option<&'bytes str>,
    /// Counts retries by the platform.
    pub engine_attempt_id: Option<&'bytes str>,
    /// Counts retries by decision.
    pub logical_attempt_id: Option<&'bytes str>,
    /// ISO 8601; none in a command that leaves it to the store.
    pub emitted_at: Option<&'bytes str>,
    /// Of what emitted it.
    pub adapter_version: Option<&'bytes str>,
    /// JSON.
    pub engine_run_ref: Option<&'bytes str>,
    /// A UUID.
    pub caused_by_signal_id: Option<&'bytes str>,
    /// A UUID.
    pub parent_event_id: Option<&'bytes str>,
    /// A JSON object: members that the contract does not name.
    pub extra: Option<&'bytes str>,
}

impl<'bytes> EventRef<'bytes> {
    /// An event that says nothing.
    pub(crate) const EMPTY: Self = Self {
        event_type: "",
        data: "null",
        idempotency_key: "",
        event_id: None,
        step_id: None,
        engine_attempt_id: None,
        logical_attempt_id: None,
        emitted_at: None,
        adapter_version: None,
        engine_run_ref: None,
        caused_by_signal_id: None,
        parent_event_id: None,
        extra: None,
    };

    /// Appends the event's bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.bytes(self.event_type.as_bytes()).bytes(self.data.as_bytes());
        writer.bytes(self.idempotency_key.as_bytes());
        for optional in self.optionals() {
            writer.optional_text(optional);
        }
    }

    fn optionals(&self) -> [Option<&'bytes str>; 10] {
        [
            self.emitted_at,
            self.event_id,
            self.step_id,
            self.engine_attempt_id,
            self.logical_attempt_id,
            self.adapter_version,
            self.engine_run_ref,
            self.caused_by_signal_id,
            self.parent_event_id,
            self.extra,
        ]
    }

    /// Reads an event.
    pub fn decode(reader: &mut Reader<'bytes>) -> Result<Self, DecodeError> {
        Ok(Self {
            event_type: reader.text()?,
            data: reader.text()?,
            idempotency_key: reader.text()?,
            emitted_at: reader.optional_text()?,
            event_id: reader.optional_text()?,
            step_id: reader.optional_text()?,
            engine_attempt_id: reader.optional_text()?,
            logical_attempt_id: reader.optional_text()?,
            adapter_version: reader.optional_text()?,
            engine_run_ref: reader.optional_text()?,
            caused_by_signal_id: reader.optional_text()?,
            parent_event_id: reader.optional_text()?,
            extra: reader.optional_text()?,
        })
    }

    /// The event with owned texts.
    pub fn to_new_event(&self) -> NewEvent {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let data = Json::from_checked(self.data.to_owned());
        let mut event = NewEvent::new(self.event_type, self.idempotency_key, "", data);
        event.emitted_at = text(self.emitted_at);
        event.event_id = text(self.event_id);
        event.step_id = text(self.step_id);
        event.engine_attempt_id = text(self.engine_attempt_id);
        event.logical_attempt_id = text(self.logical_attempt_id);
        event.adapter_version = text(self.adapter_version);
        event.engine_run_ref = self.engine_run_ref.map(|json| Json::from_checked(json.to_owned()));
        event.caused_by_signal_id = text(self.caused_by_signal_id);
        event.parent_event_id = text(self.parent_event_id);
        event.extra = self.extra.map(|json| Json::from_checked(json.to_owned()));
        event
    }
}

impl<'event> From<&'event NewEvent> for EventRef<'event> {
    fn from(event: &'event NewEvent) -> Self {
        Self {
            event_type: &event.event_type,
            data: event.data.as_str(),
            idempotency_key: &event.idempotency_key,
            event_id: event.event_id.as_deref(),
            step_id: event.step_id.as_deref(),
            engine_attempt_id: event.engine_attempt_id.as_deref(),
            logical_attempt_id: event.logical_attempt_id.as_deref(),
            emitted_at: event.emitted_at.as_deref(),
            adapter_version: event.adapter_version.as_deref(),
            engine_run_ref: event.engine_run_ref.as_ref().map(Json::as_str),
            caused_by_signal_id: event.caused_by_signal_id.as_deref(),
            parent_event_id: event.parent_event_id.as_deref(),
            extra: event.extra.as_ref().map(Json::as_str),
        }
    }
}

/// The fate of an append with a known key or id. The numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Duplicates {
    /// It is answered with the first one's sequence.
    Answer = 0,
    /// The same, but one with another content is refused.
    RefuseOthers = 1,
    /// It is refused, so that the rest of its commit does not happen a second time.
    Refuse = 2,
}

/// An event to append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Append<'bytes> {
    /// The run's last sequence must be this one.
    pub expected_last: Option<u64>,
    /// The fate of the append if its key or id is known.
    pub duplicates: Duplicates,
    /// The kind of the run, if this append creates it.
    pub run_type: &'bytes str,
    /// The event.
    pub event: EventRef<'bytes>,
}

/// An operation on a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunAct<'bytes> {
    /// Appends an event; creates the run if needed.
    Append(Box<Append<'bytes>>),
    /// Lets nothing more be appended.
    Close,
    /// Deletes it. Only a tombstone remains, to answer late appends.
    Delete,
    /// Creates it as a fork: it shares the events of another run of its group, up to a sequence.
    Fork {
        /// The other run.
        from: &'bytes str,
        /// The last event that they share.
        at: u64,
    },
}

const APPEND: u8 = 1;
const CLOSE: u8 = 2;
const DELETE: u8 = 3;
const FORK: u8 = 4;

impl<'bytes> RunAct<'bytes> {
    fn encode_act(&self, writer: &mut Writer) {
        match self {
            RunAct::Append(append) => {
                let Append { expected_last, duplicates, run_type, event } = &**append;
                writer.u8(APPEND).optional_u64(*expected_last).u8(*duplicates as u8).bytes(run_type.as_bytes());
                event.encode(writer);
            }
            RunAct::Close => {
                writer.u8(CLOSE);
            }
            RunAct::Delete => {
                writer.u8(DELETE);
            }
            RunAct::Fork { from, at } => {
                writer.u8(FORK).bytes(from.as_bytes()).u64(*at);
            }
        }
    }

    fn decode_act(reader: &mut Reader<'bytes>) -> Result<Self, DecodeError> {
        Ok(match reader.u8()? {
            APPEND => RunAct::Append(Box::new(Append {
                expected_last: reader.optional_u64()?,
                duplicates: match reader.u8()? {
                    0 => Duplicates::Answer,
                    1 => Duplicates::RefuseOthers,
                    2 => Duplicates::Refuse,
                    _ => return Err(DecodeError { what: "an unknown way with duplicates" }),
                },
                run_type: reader.text()?,
                event: EventRef::decode(reader)?,
            })),
            CLOSE => RunAct::Close,
            DELETE => RunAct::Delete,
            FORK => RunAct::Fork { from: reader.text()?, at: reader.u64()? },
            _ => {
                return Err(DecodeError { what: "an act on a run of an unknown kind" });
            }
        })
    }
}

const RUN: u8 = 8;

impl<'bytes> Act<'bytes> for RunAct<'bytes> {
    const CODES: &'static [u8] = &[RUN];

    fn encode(&self, name: &str, writer: &mut Writer) {
        self.encode_act(writer.u8(RUN).bytes(name.as_bytes()));
    }

    fn decode(_: u8, reader: &mut Reader<'bytes>) -> Result<(&'bytes str, Self), DecodeError> {
        Ok((reader.text()?, Self::decode_act(reader)?))
    }

    fn open(&self, _: &str) -> Open {
        match self {
            RunAct::Append(_) => Open::Always,
            // A fork keeps the events of another run.
            RunAct::Close | RunAct::Delete | RunAct::Fork { .. } => Open::Never,
        }
    }

    fn grows(&self) -> bool {
        matches!(self, RunAct::Append(_) | RunAct::Fork { .. })
    }

    fn value_bytes(&self) -> usize {
        match self {
            RunAct::Append(append) => {
                let EventRef { data, engine_run_ref, .. } = append.event;
                data.len().max(engine_run_ref.map_or(0, str::len))
            }
            _ => 0,
        }
    }

    fn digest(&self, name: &str, digester: &mut Digester) {
        match self {
            RunAct::Append(append) => {
                let Append { expected_last, duplicates, run_type, event: one } = &**append;
                digester.text("do", "run-append").text("name", name).optional_number("expected", *expected_last);
                match duplicates {
                    Duplicates::Answer => {}
                    Duplicates::RefuseOthers | Duplicates::Refuse => {
                        digester.number("duplicates", u64::from(*duplicates as u8));
                    }
                }
                digester.optional_text("type", unless_empty(run_type));
                digest_event(digester, one);
            }
            RunAct::Close => {
                digester.text("do", "run-close").text("name", name);
            }
            RunAct::Delete => {
                digester.text("do", "run-delete").text("name", name);
            }
            RunAct::Fork { from, at } => {
                digester.text("do", "run-fork").text("name", name).text("from", from).number("at", *at);
            }
        }
    }
}

fn digest_event(digester: &mut Digester, event: &EventRef<'_>) {
    let EventRef {
        event_type,
        data,
        idempotency_key,
        event_id,
        step_id,
        engine_attempt_id,
        logical_attempt_id,
        emitted_at,
        adapter_version,
        engine_run_ref,
        caused_by_signal_id,
        parent_event_id,
        extra,
    } = event;
    digester.text("eventType", event_type).text("eventData", data).text("idempotencyKey", idempotency_key);
    let optionals = [
        ("eventId", event_id),
        ("stepId", step_id),
        ("engineAttemptId", engine_attempt_id),
        ("logicalAttemptId", logical_attempt_id),
        ("emittedAt", emitted_at),
        ("adapterVersion", adapter_version),
        ("engineRunRef", engine_run_ref),
        ("causedBySignalId", caused_by_signal_id),
        ("parentEventId", parent_event_id),
        ("extra", extra),
    ];
    for (name, text) in optionals {
        digester.optional_text(name, *text);
    }
}

/// A condition on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunGuard<'bytes> {
    /// The last event of the run has this sequence; 0 if there was never such a run. A deleted run is refused.
    LastIs(&'bytes str, u64),
}

const LAST_IS: u8 = 14;

impl<'bytes> Condition<'bytes> for RunGuard<'bytes> {
    const CODES: &'static [u8] = &[LAST_IS];

    fn name(&self) -> Option<&'bytes str> {
        let RunGuard::LastIs(name, _) = self;
        Some(name)
    }

    fn encode(&self, writer: &mut Writer) {
        let RunGuard::LastIs(name, seq) = self;
        writer.u8(LAST_IS).bytes(name.as_bytes()).u64(*seq);
    }

    fn decode(_: u8, reader: &mut Reader<'bytes>) -> Result<Self, DecodeError> {
        Ok(RunGuard::LastIs(reader.text()?, reader.u64()?))
    }

    fn digest(&self, digester: &mut Digester) {
        let RunGuard::LastIs(name, seq) = self;
        digester.text("if", "run-last-is").text("name", name).number("seq", *seq);
    }
}
