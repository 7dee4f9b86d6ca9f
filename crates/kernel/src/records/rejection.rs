//! Rejections about records, as bytes.

use contract::{RecordRejection, WantedKind};
use kv::{DecodeError, Reader, Writer};

use crate::answer::rejection::refusal_reason;
use crate::command::act::unlisted;
use crate::value::ValueRef;

const NO_SUCH_RECORD: u8 = 11;
const NO_SUCH_TYPE: u8 = 12;
const WRONG_STATE: u8 = 13;
const WRONG_KIND: u8 = 14;
const CONFLICT: u8 = 15;
const FIELD_CONFLICT: u8 = 17;
const FENCED: u8 = 18;
const HELD: u8 = 28;

/// The codes that they begin with.
pub(crate) const CODES: &[u8] =
    &[NO_SUCH_RECORD, NO_SUCH_TYPE, WRONG_STATE, WRONG_KIND, CONFLICT, FIELD_CONFLICT, FENCED, HELD];

/// The limits that are only about records, with the numbers of their names.
pub(crate) const LIMITS: &[(u8, &str)] = &[(6, "record_fields_max"), (7, "record_types_max"), (8, "record_bytes_max")];

pub(crate) fn encode(writer: &mut Writer, rejection: &RecordRejection) {
    match rejection {
        RecordRejection::NoSuchRecord { record } => {
            writer.u8(NO_SUCH_RECORD).bytes(record.as_bytes());
        }
        RecordRejection::NoSuchType { name } => {
            writer.u8(NO_SUCH_TYPE).bytes(name.as_bytes());
        }
        RecordRejection::WrongState { record, state, reason } => {
            writer.u8(WRONG_STATE).bytes(record.as_bytes()).bytes(state.as_bytes()).u8(reason.number());
        }
        RecordRejection::WrongKind { record, field, wanted } => {
            writer.u8(WRONG_KIND).bytes(record.as_bytes()).bytes(field.as_bytes()).u8(wanted.number());
        }
        RecordRejection::Conflict { record, current } => {
            writer.u8(CONFLICT).bytes(record.as_bytes()).optional_u64(*current);
        }
        RecordRejection::FieldConflict { record, field, current } => {
            writer.u8(FIELD_CONFLICT).bytes(record.as_bytes()).bytes(field.as_bytes());
            ValueRef::encode_optional(current.as_ref().map(Into::into), writer);
        }
        RecordRejection::Fenced { record, given, attempt, state, holder } => {
            writer.u8(FENCED).bytes(record.as_bytes()).u64(*given).u64(*attempt).bytes(state.as_bytes());
            writer.bytes(holder.as_deref().unwrap_or_default().as_bytes());
        }
        RecordRejection::Held { record, attempt, holder, until_ms } => {
            writer.u8(HELD).bytes(record.as_bytes()).u64(*attempt);
            writer.optional_text(holder.as_deref()).u64(*until_ms);
        }
        other => unreachable!("the kernel does not give this rejection: {other}"),
    }
}

pub(crate) fn decode(code: u8, reader: &mut Reader<'_>) -> Result<RecordRejection, DecodeError> {
    let first = reader.text()?.to_owned();
    Ok(match code {
        NO_SUCH_RECORD => RecordRejection::NoSuchRecord { record: first },
        NO_SUCH_TYPE => RecordRejection::NoSuchType { name: first },
        WRONG_STATE => RecordRejection::WrongState {
            record: first,
            state: reader.text()?.to_owned(),
            reason: refusal_reason(reader)?,
        },
        WRONG_KIND => {
            RecordRejection::WrongKind { record: first, field: reader.text()?.to_owned(), wanted: wanted_kind(reader)? }
        }
        CONFLICT => RecordRejection::Conflict { record: first, current: reader.optional_u64()? },
        FIELD_CONFLICT => RecordRejection::FieldConflict {
            record: first,
            field: reader.text()?.to_owned(),
            current: ValueRef::decode_optional(reader)?.map(ValueRef::to_value),
        },
        FENCED => RecordRejection::Fenced {
            record: first,
            given: reader.u64()?,
            attempt: reader.u64()?,
            state: reader.text()?.to_owned(),
            holder: Some(reader.text()?.to_owned()).filter(|holder| !holder.is_empty()),
        },
        HELD => RecordRejection::Held {
            record: first,
            attempt: reader.u64()?,
            holder: reader.optional_text()?.map(str::to_owned),
            until_ms: reader.u64()?,
        },
        _ => unlisted(code),
    })
}

fn wanted_kind(reader: &mut Reader<'_>) -> Result<WantedKind, DecodeError> {
    WantedKind::numbered(reader.u8()?).ok_or(DecodeError { what: "a wanted kind of an unknown number" })
}
