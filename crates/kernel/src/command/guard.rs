//! Guards, as encoded in a command; `docs/formats/entry.md`.

use kv::{DecodeError, Reader, Writer};

use super::{count, decode_value, encode_value};
use crate::value::ValueRef;

/// A condition checked before any operation of its transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard<'bytes> {
    /// The cell does not exist.
    CellAbsent(&'bytes str),
    /// The cell exists.
    CellExists(&'bytes str),
    /// The cell exists at this version.
    CellVersionIs(&'bytes str, u64),
    /// The cell exists at a lower version, or does not exist.
    CellVersionBelow(&'bytes str, u64),
    /// The cell was not written by a commit after this one.
    CellUnchangedSince(&'bytes str, u64),
    /// No cell with a name from the first to before the second was written by a commit after this one.
    CellsUnchangedSince(&'bytes str, Option<&'bytes str>, u64),
    /// The record does not exist.
    RecordAbsent(&'bytes str),
    /// The record exists.
    RecordExists(&'bytes str),
    /// The record exists at this version.
    RecordVersionIs(&'bytes str, u64),
    /// The field of the record holds this value, or does not exist if none is given.
    RecordFieldIs(&'bytes str, &'bytes str, Option<ValueRef<'bytes>>),
    /// The record is in one of these states.
    RecordStateIn(&'bytes str, Vec<&'bytes str>),
    /// The record is at this attempt.
    RecordAttemptIs(&'bytes str, u64),
    /// The record was not written by a commit after this one.
    RecordUnchangedSince(&'bytes str, u64),
}

const CELL_ABSENT: u8 = 1;
const CELL_EXISTS: u8 = 2;
const CELL_VERSION_IS: u8 = 3;
const CELL_VERSION_BELOW: u8 = 4;
const CELL_UNCHANGED_SINCE: u8 = 5;
const CELLS_UNCHANGED_SINCE: u8 = 6;
const RECORD_ABSENT: u8 = 7;
const RECORD_EXISTS: u8 = 8;
const RECORD_VERSION_IS: u8 = 9;
const RECORD_FIELD_IS: u8 = 10;
const RECORD_STATE_IN: u8 = 11;
const RECORD_ATTEMPT_IS: u8 = 12;
const RECORD_UNCHANGED_SINCE: u8 = 13;

impl<'bytes> Guard<'bytes> {
    /// The name that it is about; none for a range.
    pub fn name(&self) -> Option<&'bytes str> {
        match self {
            Guard::CellAbsent(name)
            | Guard::CellExists(name)
            | Guard::CellVersionIs(name, _)
            | Guard::CellVersionBelow(name, _)
            | Guard::CellUnchangedSince(name, _)
            | Guard::RecordAbsent(name)
            | Guard::RecordExists(name)
            | Guard::RecordVersionIs(name, _)
            | Guard::RecordFieldIs(name, _, _)
            | Guard::RecordStateIn(name, _)
            | Guard::RecordAttemptIs(name, _)
            | Guard::RecordUnchangedSince(name, _) => Some(name),
            Guard::CellsUnchangedSince(..) => None,
        }
    }

    pub(super) fn encode(&self, writer: &mut Writer) {
        match self {
            Guard::CellAbsent(name) => writer.u8(CELL_ABSENT).bytes(name.as_bytes()),
            Guard::CellExists(name) => writer.u8(CELL_EXISTS).bytes(name.as_bytes()),
            Guard::CellVersionIs(name, version) => writer.u8(CELL_VERSION_IS).bytes(name.as_bytes()).u64(*version),
            Guard::CellVersionBelow(name, version) => {
                writer.u8(CELL_VERSION_BELOW).bytes(name.as_bytes()).u64(*version)
            }
            Guard::CellUnchangedSince(name, commit) => {
                writer.u8(CELL_UNCHANGED_SINCE).bytes(name.as_bytes()).u64(*commit)
            }
            Guard::CellsUnchangedSince(from, to, commit) => {
                writer.u8(CELLS_UNCHANGED_SINCE).bytes(from.as_bytes()).optional_text(*to).u64(*commit)
            }
            Guard::RecordAbsent(name) => writer.u8(RECORD_ABSENT).bytes(name.as_bytes()),
            Guard::RecordExists(name) => writer.u8(RECORD_EXISTS).bytes(name.as_bytes()),
            Guard::RecordVersionIs(name, version) => writer.u8(RECORD_VERSION_IS).bytes(name.as_bytes()).u64(*version),
            Guard::RecordFieldIs(name, field, value) => {
                writer.u8(RECORD_FIELD_IS).bytes(name.as_bytes()).bytes(field.as_bytes());
                match value {
                    None => {
                        writer.u8(0);
                    }
                    Some(value) => encode_value(writer.u8(1), *value),
                }
                writer
            }
            Guard::RecordStateIn(name, states) => {
                writer.u8(RECORD_STATE_IN).bytes(name.as_bytes()).u32(count(states.len()));
                for state in states {
                    writer.bytes(state.as_bytes());
                }
                writer
            }
            Guard::RecordAttemptIs(name, attempt) => writer.u8(RECORD_ATTEMPT_IS).bytes(name.as_bytes()).u64(*attempt),
            Guard::RecordUnchangedSince(name, commit) => {
                writer.u8(RECORD_UNCHANGED_SINCE).bytes(name.as_bytes()).u64(*commit)
            }
        };
    }

    pub(super) fn decode(reader: &mut Reader<'bytes>) -> Result<Self, DecodeError> {
        Ok(match reader.u8()? {
            CELL_ABSENT => Guard::CellAbsent(reader.text()?),
            CELL_EXISTS => Guard::CellExists(reader.text()?),
            CELL_VERSION_IS => Guard::CellVersionIs(reader.text()?, reader.u64()?),
            CELL_VERSION_BELOW => Guard::CellVersionBelow(reader.text()?, reader.u64()?),
            CELL_UNCHANGED_SINCE => Guard::CellUnchangedSince(reader.text()?, reader.u64()?),
            CELLS_UNCHANGED_SINCE => Guard::CellsUnchangedSince(reader.text()?, reader.optional_text()?, reader.u64()?),
            RECORD_ABSENT => Guard::RecordAbsent(reader.text()?),
            RECORD_EXISTS => Guard::RecordExists(reader.text()?),
            RECORD_VERSION_IS => Guard::RecordVersionIs(reader.text()?, reader.u64()?),
            RECORD_FIELD_IS => {
                let (name, field) = (reader.text()?, reader.text()?);
                let value = if reader.bool()? { Some(decode_value(reader)?) } else { None };
                Guard::RecordFieldIs(name, field, value)
            }
            RECORD_STATE_IN => {
                let name = reader.text()?;
                let mut states = Vec::new();
                for _ in 0..reader.u32()? {
                    states.push(reader.text()?);
                }
                Guard::RecordStateIn(name, states)
            }
            RECORD_ATTEMPT_IS => Guard::RecordAttemptIs(reader.text()?, reader.u64()?),
            RECORD_UNCHANGED_SINCE => Guard::RecordUnchangedSince(reader.text()?, reader.u64()?),
            _ => {
                return Err(DecodeError { what: "a guard of an unknown kind" });
            }
        })
    }
}
