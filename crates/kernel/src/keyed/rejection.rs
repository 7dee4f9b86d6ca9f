//! Rejections about keyed state, as bytes.

use contract::KeyedRejection;
use kv::{DecodeError, Reader, Writer};

use crate::command::act::unlisted;

const NO_SUCH_MAP: u8 = 40;
const WRONG_USE: u8 = 41;
const OVERFLOW: u8 = 42;
const MERGE_OUTSIDE_COMMIT: u8 = 43;
const COMMIT_REUSED: u8 = 44;
const COMMIT_OUT_OF_ORDER: u8 = 45;
const POSITION_BEHIND: u8 = 46;
const CONFLICT: u8 = 47;
const POSITION_CONFLICT: u8 = 48;
const WRONG_POLICY: u8 = 49;
const OTHER_POLICY: u8 = 50;
const RESTORE_LOST: u8 = 51;
const RESTORE_INCOMPLETE: u8 = 52;
const NO_SUCH_CHECKPOINT: u8 = 53;

/// The codes that they begin with.
pub(crate) const CODES: &[u8] = &[
    NO_SUCH_MAP,
    WRONG_USE,
    OVERFLOW,
    MERGE_OUTSIDE_COMMIT,
    COMMIT_REUSED,
    COMMIT_OUT_OF_ORDER,
    POSITION_BEHIND,
    CONFLICT,
    POSITION_CONFLICT,
    WRONG_POLICY,
    OTHER_POLICY,
    RESTORE_LOST,
    RESTORE_INCOMPLETE,
    NO_SUCH_CHECKPOINT,
];

/// The limits that are only about keyed state, with the numbers of their names.
pub(crate) const LIMITS: &[(u8, &str)] =
    &[(18, "keyed_updates_max"), (19, "keyed_positions_max"), (20, "keyed_contents_max"), (21, "keyed_waiting_max")];

pub(crate) fn encode(writer: &mut Writer, rejection: &KeyedRejection) {
    let mut begin = |code: u8, map: &str| {
        writer.u8(code).bytes(map.as_bytes());
    };
    match rejection {
        KeyedRejection::NoSuchMap { map } => begin(NO_SUCH_MAP, map),
        KeyedRejection::WrongUse { map, key, is_merged } => {
            begin(WRONG_USE, map);
            writer.bytes(key.as_bytes()).bool(*is_merged);
        }
        KeyedRejection::Overflow { map, key, value, operand } => {
            begin(OVERFLOW, map);
            writer.bytes(key.as_bytes()).i64(*value).i64(*operand);
        }
        KeyedRejection::MergeOutsideCommit { map, key } => {
            begin(MERGE_OUTSIDE_COMMIT, map);
            writer.bytes(key.as_bytes());
        }
        KeyedRejection::CommitReused { map, number } => {
            begin(COMMIT_REUSED, map);
            writer.u64(*number);
        }
        KeyedRejection::CommitOutOfOrder { map, number, next } => {
            begin(COMMIT_OUT_OF_ORDER, map);
            writer.u64(*number).u64(*next);
        }
        KeyedRejection::PositionBehind { map, input, current, given } => {
            begin(POSITION_BEHIND, map);
            writer.bytes(input.as_bytes()).u64(*current).u64(*given);
        }
        KeyedRejection::Conflict { map, key, current } => {
            begin(CONFLICT, map);
            writer.bytes(key.as_bytes()).optional_text(current.as_deref());
        }
        KeyedRejection::PositionConflict { map, input, current } => {
            begin(POSITION_CONFLICT, map);
            writer.bytes(input.as_bytes()).optional_u64(*current);
        }
        KeyedRejection::WrongPolicy { map, key, is_ordered } => {
            begin(WRONG_POLICY, map);
            writer.bytes(key.as_bytes()).bool(*is_ordered);
        }
        KeyedRejection::OtherPolicy { map, is_ordered } => {
            begin(OTHER_POLICY, map);
            writer.bool(*is_ordered);
        }
        KeyedRejection::RestoreLost { map, number } => {
            begin(RESTORE_LOST, map);
            writer.u32(*number);
        }
        KeyedRejection::RestoreIncomplete { map, number } => {
            begin(RESTORE_INCOMPLETE, map);
            writer.u32(*number);
        }
        KeyedRejection::NoSuchCheckpoint { map, number } => {
            begin(NO_SUCH_CHECKPOINT, map);
            writer.u64(*number);
        }
        other => unreachable!("the kernel does not give this rejection: {other}"),
    }
}

pub(crate) fn decode(code: u8, reader: &mut Reader<'_>) -> Result<KeyedRejection, DecodeError> {
    let map = reader.text()?.to_owned();
    let text = |reader: &mut Reader<'_>| Ok::<_, DecodeError>(reader.text()?.to_owned());
    Ok(match code {
        NO_SUCH_MAP => KeyedRejection::NoSuchMap { map },
        WRONG_USE => KeyedRejection::WrongUse { map, key: text(reader)?, is_merged: reader.bool()? },
        OVERFLOW => KeyedRejection::Overflow { map, key: text(reader)?, value: reader.i64()?, operand: reader.i64()? },
        MERGE_OUTSIDE_COMMIT => KeyedRejection::MergeOutsideCommit { map, key: text(reader)? },
        COMMIT_REUSED => KeyedRejection::CommitReused { map, number: reader.u64()? },
        COMMIT_OUT_OF_ORDER => KeyedRejection::CommitOutOfOrder { map, number: reader.u64()?, next: reader.u64()? },
        POSITION_BEHIND => {
            let (input, current, given) = (text(reader)?, reader.u64()?, reader.u64()?);
            KeyedRejection::PositionBehind { map, input, current, given }
        }
        CONFLICT => {
            let (key, current) = (text(reader)?, reader.optional_text()?.map(str::to_owned));
            KeyedRejection::Conflict { map, key, current }
        }
        POSITION_CONFLICT => {
            KeyedRejection::PositionConflict { map, input: text(reader)?, current: reader.optional_u64()? }
        }
        WRONG_POLICY => KeyedRejection::WrongPolicy { map, key: text(reader)?, is_ordered: reader.bool()? },
        OTHER_POLICY => KeyedRejection::OtherPolicy { map, is_ordered: reader.bool()? },
        RESTORE_LOST => KeyedRejection::RestoreLost { map, number: reader.u32()? },
        RESTORE_INCOMPLETE => KeyedRejection::RestoreIncomplete { map, number: reader.u32()? },
        NO_SUCH_CHECKPOINT => KeyedRejection::NoSuchCheckpoint { map, number: reader.u64()? },
        _ => unlisted(code),
    })
}
