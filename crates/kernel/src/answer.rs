//! What a command is answered, as bytes that can be stored and sent again; `docs/formats/entry.md`.

use contract::Rejection;
use kv::{DecodeError, Reader, Writer};

/// The answer to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was done.
    Done {
        /// The command's number.
        commit: u64,
        /// What each operation did, in order; empty for commands of the shard.
        outcomes: Vec<OpOutcome>,
    },
    /// It was refused and changed nothing.
    Rejected(Rejection),
}

/// What one operation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpOutcome {
    /// The cell was written and has this version.
    Written(u64),
    /// The cell was there already, at this version, and was left as it is.
    Existing(u64),
    /// There was nothing to delete.
    Nothing,
    /// A number that the catalogue gave out.
    Assigned(u32),
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

/// The limits that the kernel itself checks; their names are numbers in an answer.
pub(crate) const LIMIT_NAMES: [&str; 6] = [
    "value_bytes_max",
    "transaction_ops_max",
    "transaction_bytes_max",
    "spaces_max",
    "branches_per_space_max",
    "name_bytes_max",
];

/// What can exist already.
pub(crate) const EXISTING_KINDS: [&str; 2] = ["space", "branch"];

fn encode_rejection(writer: &mut Writer, rejection: &Rejection) {
    match rejection {
        Rejection::LimitExceeded { limit, max, got } => {
            let number = LIMIT_NAMES.iter().position(|name| name == limit).expect("the kernel's limits are listed");
            writer.u8(2).u8(small(number)).u64(*max).u64(*got);
        }
        Rejection::Conflict { cell, current } => {
            writer.u8(3).bytes(cell.as_bytes()).optional_u64(*current);
        }
        Rejection::NoSuchSpace { space } => {
            writer.u8(5).bytes(space.as_bytes());
        }
        Rejection::NoSuchBranch { branch } => {
            writer.u8(6).bytes(branch.as_bytes());
        }
        Rejection::AlreadyExists { what, name } => {
            let number = EXISTING_KINDS.iter().position(|kind| kind == what).expect("the kinds are listed");
            writer.u8(7).u8(small(number)).bytes(name.as_bytes());
        }
        Rejection::MainBranch => {
            writer.u8(8);
        }
        Rejection::CatalogueBehind { needed, have } => {
            writer.u8(9).u64(*needed).u64(*have);
        }
        other => unreachable!("the kernel does not give this rejection: {other}"),
    }
}

fn small(number: usize) -> u8 {
    u8::try_from(number).expect("a short list")
}

fn decode_rejection(reader: &mut Reader<'_>) -> Result<Rejection, DecodeError> {
    let named = |names: &[&'static str], number: u8| {
        names.get(usize::from(number)).copied().ok_or(DecodeError { what: "a name of an unknown number" })
    };
    Ok(match reader.u8()? {
        2 => Rejection::LimitExceeded {
            limit: named(&LIMIT_NAMES, reader.u8()?)?,
            max: reader.u64()?,
            got: reader.u64()?,
        },
        3 => Rejection::Conflict { cell: reader.text()?.to_owned(), current: reader.optional_u64()? },
        5 => Rejection::NoSuchSpace { space: reader.text()?.to_owned() },
        6 => Rejection::NoSuchBranch { branch: reader.text()?.to_owned() },
        7 => Rejection::AlreadyExists { what: named(&EXISTING_KINDS, reader.u8()?)?, name: reader.text()?.to_owned() },
        8 => Rejection::MainBranch,
        9 => Rejection::CatalogueBehind { needed: reader.u64()?, have: reader.u64()? },
        _ => {
            return Err(DecodeError { what: "a rejection of an unknown kind" });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_written() {
        let rejections = [
            Rejection::LimitExceeded { limit: "value_bytes_max", max: 1, got: 2 },
            Rejection::Conflict { cell: "c".into(), current: Some(3) },
            Rejection::Conflict { cell: "c".into(), current: None },
            Rejection::NoSuchSpace { space: "s".into() },
            Rejection::NoSuchBranch { branch: "b".into() },
            Rejection::AlreadyExists { what: "branch", name: "b".into() },
            Rejection::MainBranch,
            Rejection::CatalogueBehind { needed: 2, have: 1 },
        ];
        let outcomes = vec![OpOutcome::Written(1), OpOutcome::Existing(2), OpOutcome::Nothing, OpOutcome::Assigned(3)];
        let done = Answer::Done { commit: 9, outcomes };
        for answer in rejections.map(Answer::Rejected).into_iter().chain([done]) {
            assert_eq!(Answer::decode(&answer.encode()), Ok(answer));
        }
    }
}
