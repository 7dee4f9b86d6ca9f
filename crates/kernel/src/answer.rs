//! Answers to commands, as bytes that can be stored and sent again; `docs/formats/entry.md`.

mod access;
pub(crate) mod rejection;

use contract::{Rejection, Updated};
use kv::{DecodeError, Reader, Writer};
use session::Stamp;

use crate::{decode_updated, encode_updated};
use rejection::{decode_rejection, encode_rejection};

/// The answer to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was done.
    Done {
        /// The command's number.
        commit: u64,
        /// The result of each operation, in order; empty for commands of the shard.
        outcomes: Vec<OpOutcome>,
    },
    /// It was refused and changed nothing.
    Rejected(Rejection),
}

/// The result of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpOutcome {
    /// The cell or record was written and has this version.
    Written(u64),
    /// The cell already existed, at this version, and was left unchanged.
    Existing(u64),
    /// There was nothing to delete.
    Nothing,
    /// A number that the catalogue gave out.
    Assigned(u32),
    /// The record was claimed.
    Claimed(Box<ClaimedOutcome>),
    /// The field was counted up or down.
    Counted {
        /// The record's version.
        version: u64,
        /// The new value of the field.
        value: i64,
    },
    /// The attempt is over, and the record will be ready again after a pause.
    Retried {
        /// The record's version.
        version: u64,
        /// The pause, in µs.
        pause_us: u64,
    },
    /// The attempt is over, and it was the last.
    Exhausted {
        /// The record's version.
        version: u64,
    },
    /// The message is on its way.
    Sent,
    /// The event is in the run.
    Appended {
        /// Its sequence.
        seq: u64,
        /// Whether it was there already.
        idempotent: bool,
        /// Whether it was there already with another content.
        payload_mismatch: bool,
    },
    /// The keys of the map were updated, or some of them.
    Updated(Updated),
    /// The answer of a user's machine.
    Hosted(Vec<u8>),
    /// The claim has corrected as many lanes as a command may, and found no record yet: it must be repeated.
    Unfinished,
}

/// A claimed record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedOutcome {
    /// Its name.
    pub name: String,
    /// Its group, or none if it has none.
    pub group: Option<String>,
    /// Its space.
    pub space: u32,
    /// When it was claimed.
    pub stamp: Stamp,
    /// Its row, with every value in its place.
    pub row: Vec<u8>,
}

impl ClaimedOutcome {
    fn encode<'writer>(&self, writer: &'writer mut Writer) -> &'writer mut Writer {
        writer.bytes(self.name.as_bytes()).optional_text(self.group.as_deref());
        writer.u32(self.space).u64(self.stamp.wall_us).u64(self.stamp.cluster_us).bytes(&self.row)
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let name = reader.text()?.to_owned();
        let group = reader.optional_text()?.map(str::to_owned);
        let space = reader.u32()?;
        let stamp = Stamp { wall_us: reader.u64()?, cluster_us: reader.u64()? };
        Ok(Self { name, group, space, stamp, row: reader.bytes()?.to_vec() })
    }
}

const DONE: u8 = 0;
const REJECTED: u8 = 1;

impl Answer {
    /// The answer's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        self.encode_into(&mut writer);
        writer.finish()
    }

    /// Appends the answer's bytes.
    pub fn encode_into(&self, writer: &mut Writer) {
        match self {
            Answer::Done { commit, outcomes } => {
                writer.u8(DONE).u64(*commit);
                for outcome in outcomes {
                    match outcome {
                        OpOutcome::Written(version) => writer.u8(1).u64(*version),
                        OpOutcome::Existing(version) => writer.u8(2).u64(*version),
                        OpOutcome::Nothing => writer.u8(3),
                        OpOutcome::Assigned(number) => writer.u8(4).u32(*number),
                        OpOutcome::Claimed(claimed) => claimed.encode(writer.u8(5)),
                        OpOutcome::Counted { version, value } => writer.u8(6).u64(*version).i64(*value),
                        OpOutcome::Retried { version, pause_us } => writer.u8(7).u64(*version).u64(*pause_us),
                        OpOutcome::Exhausted { version } => writer.u8(8).u64(*version),
                        OpOutcome::Sent => writer.u8(9),
                        OpOutcome::Hosted(answer) => writer.u8(10).bytes(answer),
                        OpOutcome::Unfinished => writer.u8(12),
                        OpOutcome::Updated(updated) => encode_updated(writer.u8(20), updated),
                        OpOutcome::Appended { seq, idempotent, payload_mismatch } => {
                            writer.u8(11).u64(*seq).bool(*idempotent).bool(*payload_mismatch)
                        }
                    };
                }
            }
            Answer::Rejected(rejection) => encode_rejection(writer.u8(REJECTED), rejection),
        }
    }

    /// Reads an answer that fills `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        match reader.u8()? {
            DONE => {
                let commit = reader.u64()?;
                let mut outcomes = Vec::new();
                while !reader.rest().is_empty() {
                    outcomes.push(match reader.u8()? {
                        1 => OpOutcome::Written(reader.u64()?),
                        2 => OpOutcome::Existing(reader.u64()?),
                        3 => OpOutcome::Nothing,
                        4 => OpOutcome::Assigned(reader.u32()?),
                        5 => OpOutcome::Claimed(Box::new(ClaimedOutcome::decode(&mut reader)?)),
                        6 => OpOutcome::Counted { version: reader.u64()?, value: reader.i64()? },
                        7 => OpOutcome::Retried { version: reader.u64()?, pause_us: reader.u64()? },
                        8 => OpOutcome::Exhausted { version: reader.u64()? },
                        9 => OpOutcome::Sent,
                        10 => OpOutcome::Hosted(reader.bytes()?.to_vec()),
                        11 => OpOutcome::Appended {
                            seq: reader.u64()?,
                            idempotent: reader.bool()?,
                            payload_mismatch: reader.bool()?,
                        },
                        12 => OpOutcome::Unfinished,
                        20 => OpOutcome::Updated(decode_updated(&mut reader)?),
                        _ => {
                            return Err(DecodeError { what: "an outcome of an unknown kind" });
                        }
                    });
                }
                Ok(Answer::Done { commit, outcomes })
            }
            REJECTED => {
                let rejection = decode_rejection(&mut reader)?;
                reader.end()?;
                Ok(Answer::Rejected(rejection))
            }
            _ => Err(DecodeError { what: "an answer of an unknown kind" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use contract::{CellRejection, RecordRejection, RefusalReason, RunRejection, WantedKind};

    use super::*;

    #[test]
    fn an_answer_is_read_as_written() {
        let rejections = [
            Rejection::LimitExceeded { limit: "value_bytes_max", max: 1, got: 2 },
            Rejection::Cell(CellRejection::Conflict { cell: "c".into(), current: Some(3) }),
            Rejection::Damaged { from: "a".into(), to: "b".into() },
            Rejection::Cell(CellRejection::Conflict { cell: "c".into(), current: None }),
            Rejection::NoSuchSpace { space: "s".into() },
            Rejection::NoSuchBranch { branch: "b".into() },
            Rejection::AlreadyExists { what: "branch", name: "b".into() },
            Rejection::MainBranch,
            Rejection::CatalogueBehind { needed: 2, have: 1 },
            Rejection::TwoGroups { group: "a".into(), other: "b".into() },
            Rejection::Record(RecordRejection::NoSuchRecord { record: "r".into() }),
            Rejection::Record(RecordRejection::NoSuchType { name: "t".into() }),
            Rejection::Record(RecordRejection::WrongState {
                record: "r".into(),
                state: "s".into(),
                reason: RefusalReason::Finished,
            }),
            Rejection::Record(RecordRejection::WrongKind {
                record: "r".into(),
                field: "f".into(),
                wanted: WantedKind::Integer,
            }),
            Rejection::Record(RecordRejection::Conflict { record: "r".into(), current: None }),
            Rejection::InvalidDeclaration { what: "w".into(), reason: RefusalReason::NotReady },
            Rejection::Record(RecordRejection::FieldConflict {
                record: "r".into(),
                field: "f".into(),
                current: Some(7.into()),
            }),
            Rejection::Record(RecordRejection::FieldConflict { record: "r".into(), field: "f".into(), current: None }),
            Rejection::Run(RunRejection::NoSuchRun { run: "r".into() }),
            Rejection::Run(RunRejection::SequenceConflict { run: "r".into(), expected: 1, last: 2 }),
            Rejection::Run(RunRejection::KeyReused { run: "r".into(), seq: 1 }),
            Rejection::Run(RunRejection::Closed { run: "r".into(), last: 1 }),
            Rejection::Run(RunRejection::Archived { run: "r".into(), last: 1 }),
            Rejection::AlreadyExists { what: "run", name: "r".into() },
            Rejection::Record(RecordRejection::Fenced {
                record: "r".into(),
                given: 1,
                attempt: 2,
                state: "s".into(),
                holder: Some("w".into()),
            }),
        ];
        let stamp = Stamp { wall_us: 1, cluster_us: 2 };
        let claimed = ClaimedOutcome { name: "n".into(), group: Some("g".into()), space: 3, stamp, row: vec![4] };
        let outcomes = vec![
            OpOutcome::Written(1),
            OpOutcome::Existing(2),
            OpOutcome::Nothing,
            OpOutcome::Assigned(3),
            OpOutcome::Claimed(Box::new(claimed)),
            OpOutcome::Counted { version: 1, value: -2 },
            OpOutcome::Retried { version: 1, pause_us: 2 },
            OpOutcome::Exhausted { version: 1 },
            OpOutcome::Sent,
            OpOutcome::Hosted(vec![7]),
            OpOutcome::Unfinished,
            OpOutcome::Updated(Updated::new(2, vec![(1, contract::keyed::UpdateOutcome::Duplicate)])),
            OpOutcome::Appended { seq: 3, idempotent: true, payload_mismatch: false },
        ];
        let done = Answer::Done { commit: 9, outcomes };
        for answer in rejections.map(Answer::Rejected).into_iter().chain([done]) {
            assert_eq!(Answer::decode(&answer.encode()), Ok(answer));
        }
    }
}
