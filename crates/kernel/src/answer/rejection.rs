//! Rejections as bytes; `docs/formats/entry.md`. Reasons and names are numbers in an answer.

use contract::{CellRejection, RecordRejection, RefusalReason, Rejection, RunRejection, WantedKind};
use kv::{DecodeError, Reader, Writer};

use crate::value::ValueRef;

/// The limits that the kernel itself checks; their names are numbers in an answer.
const LIMIT_NAMES: [&str; 16] = [
    "value_bytes_max",
    "transaction_ops_max",
    "transaction_bytes_max",
    "spaces_max",
    "branches_per_space_max",
    "name_bytes_max",
    "record_fields_max",
    "record_types_max",
    "record_bytes_max",
    "run_fork_depth_max",
    "run_fork_events_max",
    "worker_bytes_max",
    "transaction_guards_max",
    "message_depth_max",
    "messages_waiting_max",
    "transaction_range_cells_max",
];

/// The kinds of things that can already exist.
const EXISTING_KINDS: [&str; 3] = ["space", "branch", "run"];

pub(super) fn encode_rejection(writer: &mut Writer, rejection: &Rejection) {
    match rejection {
        Rejection::LimitExceeded { limit, max, got } => {
            let number = LIMIT_NAMES.iter().position(|name| name == limit).expect("the kernel's limits are listed");
            writer.u8(2).u8(small(number)).u64(*max).u64(*got);
        }
        Rejection::Cell(CellRejection::Conflict { cell, current }) => {
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
        Rejection::TwoGroups { group, other } => {
            writer.u8(10).bytes(group.as_bytes()).bytes(other.as_bytes());
        }
        Rejection::Record(RecordRejection::NoSuchRecord { record }) => {
            writer.u8(11).bytes(record.as_bytes());
        }
        Rejection::Record(RecordRejection::NoSuchType { name }) => {
            writer.u8(12).bytes(name.as_bytes());
        }
        Rejection::Record(RecordRejection::WrongState { record, state, reason }) => {
            writer.u8(13).bytes(record.as_bytes()).bytes(state.as_bytes()).u8(reason.number());
        }
        Rejection::Record(RecordRejection::WrongKind { record, field, wanted }) => {
            writer.u8(14).bytes(record.as_bytes()).bytes(field.as_bytes()).u8(wanted.number());
        }
        Rejection::Record(RecordRejection::Conflict { record, current }) => {
            writer.u8(15).bytes(record.as_bytes()).optional_u64(*current);
        }
        Rejection::InvalidDeclaration { what, reason } => {
            writer.u8(16).bytes(what.as_bytes()).u8(reason.number());
        }
        Rejection::Record(RecordRejection::FieldConflict { record, field, current }) => {
            writer.u8(17).bytes(record.as_bytes()).bytes(field.as_bytes());
            ValueRef::encode_optional(current.as_ref().map(Into::into), writer);
        }
        Rejection::Record(RecordRejection::Fenced { record, given, attempt, state, holder }) => {
            writer.u8(18).bytes(record.as_bytes()).u64(*given).u64(*attempt).bytes(state.as_bytes());
            writer.bytes(holder.as_deref().unwrap_or_default().as_bytes());
        }
        Rejection::Run(RunRejection::NoSuchRun { run }) => {
            writer.u8(19).bytes(run.as_bytes());
        }
        Rejection::Run(RunRejection::SequenceConflict { run, expected, last }) => {
            writer.u8(20).bytes(run.as_bytes()).u64(*expected).u64(*last);
        }
        Rejection::Run(RunRejection::KeyReused { run, seq }) => {
            writer.u8(21).bytes(run.as_bytes()).u64(*seq);
        }
        Rejection::Run(RunRejection::Closed { run, last }) => {
            writer.u8(22).bytes(run.as_bytes()).u64(*last);
        }
        Rejection::Run(RunRejection::Archived { run, last }) => {
            writer.u8(23).bytes(run.as_bytes()).u64(*last);
        }
        Rejection::Damaged { from, to } => {
            writer.u8(24).bytes(from.as_bytes()).bytes(to.as_bytes());
        }
        other => unreachable!("the kernel does not give this rejection: {other}"),
    }
}

fn small(number: usize) -> u8 {
    u8::try_from(number).expect("a short list")
}

fn refusal_reason(reader: &mut Reader<'_>) -> Result<RefusalReason, DecodeError> {
    RefusalReason::numbered(reader.u8()?).ok_or(DecodeError { what: "a reason of an unknown number" })
}

fn wanted_kind(reader: &mut Reader<'_>) -> Result<WantedKind, DecodeError> {
    WantedKind::numbered(reader.u8()?).ok_or(DecodeError { what: "a wanted kind of an unknown number" })
}

pub(super) fn decode_rejection(reader: &mut Reader<'_>) -> Result<Rejection, DecodeError> {
    let named = |names: &[&'static str], number: u8| {
        names.get(usize::from(number)).copied().ok_or(DecodeError { what: "a name of an unknown number" })
    };
    Ok(match reader.u8()? {
        2 => Rejection::LimitExceeded {
            limit: named(&LIMIT_NAMES, reader.u8()?)?,
            max: reader.u64()?,
            got: reader.u64()?,
        },
        3 => Rejection::Cell(CellRejection::Conflict {
            cell: reader.text()?.to_owned(),
            current: reader.optional_u64()?,
        }),
        5 => Rejection::NoSuchSpace { space: reader.text()?.to_owned() },
        6 => Rejection::NoSuchBranch { branch: reader.text()?.to_owned() },
        7 => Rejection::AlreadyExists { what: named(&EXISTING_KINDS, reader.u8()?)?, name: reader.text()?.to_owned() },
        8 => Rejection::MainBranch,
        9 => Rejection::CatalogueBehind { needed: reader.u64()?, have: reader.u64()? },
        10 => Rejection::TwoGroups { group: reader.text()?.to_owned(), other: reader.text()?.to_owned() },
        11 => Rejection::Record(RecordRejection::NoSuchRecord { record: reader.text()?.to_owned() }),
        12 => Rejection::Record(RecordRejection::NoSuchType { name: reader.text()?.to_owned() }),
        13 => Rejection::Record(RecordRejection::WrongState {
            record: reader.text()?.to_owned(),
            state: reader.text()?.to_owned(),
            reason: refusal_reason(reader)?,
        }),
        14 => Rejection::Record(RecordRejection::WrongKind {
            record: reader.text()?.to_owned(),
            field: reader.text()?.to_owned(),
            wanted: wanted_kind(reader)?,
        }),
        15 => Rejection::Record(RecordRejection::Conflict {
            record: reader.text()?.to_owned(),
            current: reader.optional_u64()?,
        }),
        16 => Rejection::InvalidDeclaration { what: reader.text()?.to_owned(), reason: refusal_reason(reader)? },
        17 => Rejection::Record(RecordRejection::FieldConflict {
            record: reader.text()?.to_owned(),
            field: reader.text()?.to_owned(),
            current: ValueRef::decode_optional(reader)?.map(ValueRef::to_value),
        }),
        18 => Rejection::Record(RecordRejection::Fenced {
            record: reader.text()?.to_owned(),
            given: reader.u64()?,
            attempt: reader.u64()?,
            state: reader.text()?.to_owned(),
            holder: Some(reader.text()?.to_owned()).filter(|holder| !holder.is_empty()),
        }),
        19 => Rejection::Run(RunRejection::NoSuchRun { run: reader.text()?.to_owned() }),
        20 => Rejection::Run(RunRejection::SequenceConflict {
            run: reader.text()?.to_owned(),
            expected: reader.u64()?,
            last: reader.u64()?,
        }),
        21 => Rejection::Run(RunRejection::KeyReused { run: reader.text()?.to_owned(), seq: reader.u64()? }),
        22 => Rejection::Run(RunRejection::Closed { run: reader.text()?.to_owned(), last: reader.u64()? }),
        23 => Rejection::Run(RunRejection::Archived { run: reader.text()?.to_owned(), last: reader.u64()? }),
        24 => Rejection::Damaged { from: reader.text()?.to_owned(), to: reader.text()?.to_owned() },
        _ => {
            return Err(DecodeError { what: "a rejection of an unknown kind" });
        }
    })
}
