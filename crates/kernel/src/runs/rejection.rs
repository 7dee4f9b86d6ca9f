//! Rejections about runs, as bytes.

use contract::RunRejection;
use kv::{DecodeError, Reader, Writer};

use crate::command::act::unlisted;

const NO_SUCH_RUN: u8 = 19;
const SEQUENCE_CONFLICT: u8 = 20;
const KEY_REUSED: u8 = 21;
const CLOSED: u8 = 22;
const ARCHIVED: u8 = 23;

/// The codes that they begin with.
pub(crate) const CODES: &[u8] = &[NO_SUCH_RUN, SEQUENCE_CONFLICT, KEY_REUSED, CLOSED, ARCHIVED];

/// The limits that are only about runs, with the numbers of their names.
pub(crate) const LIMITS: &[(u8, &str)] = &[(9, "run_fork_depth_max"), (10, "run_fork_events_max")];

pub(crate) fn encode(writer: &mut Writer, rejection: &RunRejection) {
    match rejection {
        RunRejection::NoSuchRun { run } => {
            writer.u8(NO_SUCH_RUN).bytes(run.as_bytes());
        }
        RunRejection::SequenceConflict { run, expected, last } => {
            writer.u8(SEQUENCE_CONFLICT).bytes(run.as_bytes()).u64(*expected).u64(*last);
        }
        RunRejection::KeyReused { run, seq } => {
            writer.u8(KEY_REUSED).bytes(run.as_bytes()).u64(*seq);
        }
        RunRejection::Closed { run, last } => {
            writer.u8(CLOSED).bytes(run.as_bytes()).u64(*last);
        }
        RunRejection::Archived { run, last } => {
            writer.u8(ARCHIVED).bytes(run.as_bytes()).u64(*last);
        }
        other => unreachable!("the kernel does not give this rejection: {other}"),
    }
}

pub(crate) fn decode(code: u8, reader: &mut Reader<'_>) -> Result<RunRejection, DecodeError> {
    let run = reader.text()?.to_owned();
    Ok(match code {
        NO_SUCH_RUN => RunRejection::NoSuchRun { run },
        SEQUENCE_CONFLICT => RunRejection::SequenceConflict { run, expected: reader.u64()?, last: reader.u64()? },
        KEY_REUSED => RunRejection::KeyReused { run, seq: reader.u64()? },
        CLOSED => RunRejection::Closed { run, last: reader.u64()? },
        ARCHIVED => RunRejection::Archived { run, last: reader.u64()? },
        _ => unlisted(code),
    })
}
