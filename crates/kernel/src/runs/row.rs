//! The rows of a run, as bytes; `docs/formats/runs.md` is the specification.

use contract::Json;
use contract::runs::{RunStatus, StepError, StepSnapshot, StepStatus};
use kv::{DecodeError, Reader, Writer};
use session::Halt;

use crate::held::Was;
use crate::runs::command::EventRef;

const FORMAT: u8 = 1;
/// Format 1 had no extra members, and always a time.
const EVENT_FORMAT: u8 = 2;

/// The head of a run: its numbers, and its projection without the steps.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RunHead {
    /// Its kind, as its maker called it.
    pub run_type: String,
    /// Nothing more is appended.
    pub closed: bool,
    /// Its events are gone, or going.
    pub deleted: bool,
    /// The last event.
    pub last_seq: u64,
    /// The number of the command that wrote it last.
    pub commit: u64,
    /// When it was created, wall time in µs.
    pub created_us: u64,
    /// When it last got an event, wall time in µs.
    pub last_event_us: u64,
    /// Its time in the index of its status and type: the time of its last event, or a little earlier.
    pub index_us: u64,
    /// The run whose events it shares, and up to which.
    pub parent: Option<(String, u64)>,
    /// The number of forks between it and a run without a parent.
    pub depth: u32,
    /// The number of runs that share its events.
    pub forks: u64,
    /// Its status.
    pub status: RunStatus,
    /// Steps that have rows.
    pub steps: u64,
    /// The number of events of steps beyond the maximum.
    pub steps_left_out: u64,
    /// When it started, according to its event.
    pub started_at: Option<String>,
    /// When it ended, according to its event.
    pub completed_at: Option<String>,
    /// Artifacts of the run as a whole.
    pub artifacts: Vec<String>,
    /// The length of the row that it was read from; 0 if it is yet to be written.
    pub row_bytes: usize,
}

const CLOSED: u8 = 1;
const DELETED: u8 = 2;

impl RunHead {
    pub(crate) fn encode(&self, writer: &mut Writer) {
        let flags = if self.closed { CLOSED } else { 0 } | if self.deleted { DELETED } else { 0 };
        writer.u8(FORMAT).u8(flags).u8(self.status as u8).bytes(self.run_type.as_bytes());
        writer.u64(self.last_seq).u64(self.commit);
        writer.u64(self.created_us).u64(self.last_event_us).u64(self.index_us);
        match &self.parent {
            None => writer.u8(0),
            Some((name, seq)) => writer.u8(1).bytes(name.as_bytes()).u64(*seq),
        };
        writer.u32(self.depth).u64(self.forks).u64(self.steps).u64(self.steps_left_out);
        writer.optional_text(self.started_at.as_deref()).optional_text(self.completed_at.as_deref());
        encode_texts(writer, &self.artifacts);
    }

    /// Reads the row.
    pub fn decode(bytes: &[u8]) -> Result<Self, Halt> {
        let read = || {
            let mut reader = Reader::new(bytes);
            reader.format(FORMAT)?;
            let flags = reader.u8()?;
            let status = RunStatus::ALL.get(usize::from(reader.u8()?)).copied();
            let head = Self {
                closed: flags & CLOSED != 0,
                deleted: flags & DELETED != 0,
                status: status.ok_or(DecodeError { what: "a status of an unknown number" })?,
                run_type: reader.text()?.to_owned(),
                last_seq: reader.u64()?,
                commit: reader.u64()?,
                created_us: reader.u64()?,
                last_event_us: reader.u64()?,
                index_us: reader.u64()?,
                parent: if reader.bool()? { Some((reader.text()?.to_owned(), reader.u64()?)) } else { None },
                depth: reader.u32()?,
                forks: reader.u64()?,
                steps: reader.u64()?,
                steps_left_out: reader.u64()?,
                started_at: reader.optional_text()?.map(str::to_owned),
                completed_at: reader.optional_text()?.map(str::to_owned),
                artifacts: decode_texts(&mut reader)?,
                row_bytes: bytes.len(),
            };
            reader.end().map(|()| head)
        };
        read().map_err(|error| Halt::Undecodable { what: "the head of a run", error })
    }

    /// The row that it was read from, as it counts to its space.
    pub(crate) fn counted(&self) -> Was {
        assert!(self.row_bytes > 0, "U1: only a head that was read is replaced");
        Was { bytes: self.row_bytes, exists: !self.deleted }
    }
}

fn encode_texts(writer: &mut Writer, texts: &[String]) {
    writer.varint(texts.len() as u64);
    for text in texts {
        writer.bytes(text.as_bytes());
    }
}

fn decode_texts(reader: &mut Reader<'_>) -> Result<Vec<String>, DecodeError> {
    let mut texts = Vec::new();
    for _ in 0..reader.varint()? {
        texts.push(reader.text()?.to_owned());
    }
    Ok(texts)
}

/// An event as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRow<'bytes> {
    /// When it was committed, wall time in µs.
    pub persisted_us: u64,
    /// The number of the command that appended it.
    pub commit: u64,
    /// The event before it.
    pub prev_seq: u64,
    /// The event.
    pub event: EventRef<'bytes>,
}

impl<'bytes> EventRow<'bytes> {
    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.u8(EVENT_FORMAT).u64(self.persisted_us).u64(self.commit).u64(self.prev_seq);
        self.event.encode(writer);
    }

    /// Reads the row.
    pub fn decode(bytes: &'bytes [u8]) -> Result<Self, Halt> {
        let read = || {
            let mut reader = Reader::new(bytes);
            reader.format(EVENT_FORMAT)?;
            let (persisted_us, commit, prev_seq) = (reader.u64()?, reader.u64()?, reader.u64()?);
            let event = EventRef::decode(&mut reader)?;
            reader.end().map(|()| Self { persisted_us, commit, prev_seq, event })
        };
        read().map_err(|error| Halt::Undecodable { what: "an event of a run", error })
    }
}

/// The sequence and content digest of the event with a key or an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) seq: u64,
    /// Of its content; see [`digest`].
    pub(crate) digest: u64,
}

impl Known {
    pub(crate) fn encode(self, writer: &mut Writer) {
        writer.u8(FORMAT).u64(self.seq).u64(self.digest);
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Halt> {
        let read = || {
            let mut reader = Reader::new(bytes);
            reader.format(FORMAT)?;
            let known = Self { seq: reader.u64()?, digest: reader.u64()? };
            reader.end().map(|()| known)
        };
        read().map_err(|error| Halt::Undecodable { what: "the key of an event", error })
    }
}

/// Distinguishes contents: the type, the step, its logical attempt, the data and the undefined members. Not when or by
/// whom it was emitted: that differs when an event is emitted again.
pub(crate) fn digest(event: &EventRef<'_>) -> u64 {
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    let parts = [Some(event.event_type), event.step_id, event.logical_attempt_id, Some(event.data), event.extra];
    for part in parts {
        hasher.update(&part.map_or(u64::MAX, |part| part.len() as u64).to_le_bytes());
        hasher.update(part.unwrap_or_default().as_bytes());
    }
    hasher.digest()
}

pub(crate) fn encode_step(writer: &mut Writer, step: &StepSnapshot) {
    writer.u8(FORMAT).u8(step.status as u8).bytes(step.logical_attempt_id.as_bytes());
    writer.optional_text(step.engine_attempt_id.as_deref());
    writer.optional_text(step.started_at.as_deref()).optional_text(step.completed_at.as_deref());
    match &step.error {
        None => writer.u8(0),
        Some(error) => writer.u8(1).bytes(error.code.as_bytes()).bytes(error.message.as_bytes()).bool(error.retryable),
    };
    writer.varint(step.artifacts.len() as u64);
    for artifact in &step.artifacts {
        writer.bytes(artifact.as_str().as_bytes());
    }
}

pub(crate) fn decode_step(step_id: &str, bytes: &[u8]) -> Result<StepSnapshot, Halt> {
    let read = || {
        let mut reader = Reader::new(bytes);
        reader.format(FORMAT)?;
        let status = StepStatus::ALL.get(usize::from(reader.u8()?)).copied();
        let step = StepSnapshot {
            step_id: step_id.to_owned(),
            status: status.ok_or(DecodeError { what: "a status of an unknown number" })?,
            logical_attempt_id: reader.text()?.to_owned(),
            engine_attempt_id: reader.optional_text()?.map(str::to_owned),
            started_at: reader.optional_text()?.map(str::to_owned),
            completed_at: reader.optional_text()?.map(str::to_owned),
            error: if reader.bool()? {
                let (code, message) = (reader.text()?.to_owned(), reader.text()?.to_owned());
                Some(StepError { code, message, retryable: reader.bool()? })
            } else {
                None
            },
            artifacts: decode_texts(&mut reader)?.into_iter().map(Json::from_checked).collect(),
        };
        reader.end().map(|()| step)
    };
    read().map_err(|error| Halt::Undecodable { what: "a step of a run", error })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The bytes of `docs/formats/runs.md`. A change here is a change of the format.
    #[test]
    fn golden_rows() {
        let head = RunHead {
            run_type: "t".into(),
            closed: true,
            last_seq: 3,
            commit: 9,
            parent: Some(("p".into(), 2)),
            depth: 1,
            status: RunStatus::Running,
            steps: 1,
            started_at: Some("s".into()),
            artifacts: vec!["{}".into()],
            ..RunHead::default()
        };
        let mut writer = Writer::new();
        head.encode(&mut writer);
        let zero = "0000000000000000";
        let expected = "0101020100000074".to_owned()
            + "03000000000000000900000000000000"
            + &zero.repeat(3)
            + "0101000000700200000000000000"
            + "01000000"
            + zero
            + "0100000000000000"
            + zero
            + "010100000073"
            + "00"
            + "01020000007b7d";
        assert_eq!(hex(writer.as_slice()), expected);
        let row_bytes = writer.as_slice().len();
        assert_eq!(RunHead::decode(writer.as_slice()), Ok(RunHead { row_bytes, ..head }));

        let event = EventRef {
            event_type: "T",
            data: "1",
            idempotency_key: "k",
            event_id: None,
            step_id: Some("s"),
            engine_attempt_id: None,
            logical_attempt_id: None,
            emitted_at: Some("e"),
            adapter_version: None,
            engine_run_ref: None,
            caused_by_signal_id: None,
            parent_event_id: None,
            extra: Some("{}"),
        };
        let row = EventRow { persisted_us: 1, commit: 2, prev_seq: 3, event };
        let mut writer = Writer::new();
        row.encode(&mut writer);
        let expected = "02".to_owned()
            + "010000000000000002000000000000000300000000000000"
            + "0100000054010000003101000000"
            + "6b010100000065"
            + "00010100000073"
            + "000000000000"
            + "01020000007b7d";
        assert_eq!(hex(writer.as_slice()), expected);
        assert_eq!(digest(&event), 16_701_580_142_198_022_627, "the digest is stored, too");
        assert_eq!(EventRow::decode(writer.as_slice()), Ok(row));

        let step = StepSnapshot {
            step_id: "s".into(),
            status: StepStatus::Failed,
            logical_attempt_id: "1".into(),
            error: Some(StepError { code: "c".into(), message: "m".into(), retryable: true }),
            ..StepSnapshot::default()
        };
        let mut writer = Writer::new();
        encode_step(&mut writer, &step);
        assert_eq!(
            hex(writer.as_slice()),
            "0103".to_owned() + "0100000031" + "000000" + "01010000006301000000" + "6d01" + "00"
        );
        assert_eq!(decode_step("s", writer.as_slice()), Ok(step));
    }
}
