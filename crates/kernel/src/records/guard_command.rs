//! Conditions on records, as encoded in a command; `docs/formats/entry.md`.

use kv::{DecodeError, Reader, Writer};
use session::Digester;

use super::command::digest_patch;
use crate::command::act::{Condition, unlisted};
use crate::command::count;
use crate::value::ValueRef;

/// A condition on a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordGuard<'bytes> {
    /// It does not exist.
    Absent(&'bytes str),
    /// It exists.
    Exists(&'bytes str),
    /// It exists at this version.
    VersionIs(&'bytes str, u64),
    /// Its field holds this value, or does not exist if none is given.
    FieldIs(&'bytes str, &'bytes str, Option<ValueRef<'bytes>>),
    /// It is in one of these states.
    StateIn(&'bytes str, Vec<&'bytes str>),
    /// It is at this attempt.
    AttemptIs(&'bytes str, u64),
    /// It was not written by a commit after this one.
    UnchangedSince(&'bytes str, u64),
}

const ABSENT: u8 = 7;
const EXISTS: u8 = 8;
const VERSION_IS: u8 = 9;
const FIELD_IS: u8 = 10;
const STATE_IN: u8 = 11;
const ATTEMPT_IS: u8 = 12;
const UNCHANGED_SINCE: u8 = 13;

impl<'bytes> Condition<'bytes> for RecordGuard<'bytes> {
    const CODES: &'static [u8] = &[ABSENT, EXISTS, VERSION_IS, FIELD_IS, STATE_IN, ATTEMPT_IS, UNCHANGED_SINCE];

    fn name(&self) -> Option<&'bytes str> {
        match self {
            RecordGuard::Absent(name)
            | RecordGuard::Exists(name)
            | RecordGuard::VersionIs(name, _)
            | RecordGuard::FieldIs(name, _, _)
            | RecordGuard::StateIn(name, _)
            | RecordGuard::AttemptIs(name, _)
            | RecordGuard::UnchangedSince(name, _) => Some(name),
        }
    }

    fn encode(&self, writer: &mut Writer) {
        match self {
            RecordGuard::Absent(name) => writer.u8(ABSENT).bytes(name.as_bytes()),
            RecordGuard::Exists(name) => writer.u8(EXISTS).bytes(name.as_bytes()),
            RecordGuard::VersionIs(name, version) => writer.u8(VERSION_IS).bytes(name.as_bytes()).u64(*version),
            RecordGuard::FieldIs(name, field, value) => {
                ValueRef::encode_optional(*value, writer.u8(FIELD_IS).bytes(name.as_bytes()).bytes(field.as_bytes()));
                writer
            }
            RecordGuard::StateIn(name, states) => {
                writer.u8(STATE_IN).bytes(name.as_bytes()).u32(count(states.len()));
                for state in states {
                    writer.bytes(state.as_bytes());
                }
                writer
            }
            RecordGuard::AttemptIs(name, attempt) => writer.u8(ATTEMPT_IS).bytes(name.as_bytes()).u64(*attempt),
            RecordGuard::UnchangedSince(name, commit) => writer.u8(UNCHANGED_SINCE).bytes(name.as_bytes()).u64(*commit),
        };
    }

    fn decode(code: u8, reader: &mut Reader<'bytes>) -> Result<Self, DecodeError> {
        let name = reader.text()?;
        Ok(match code {
            ABSENT => RecordGuard::Absent(name),
            EXISTS => RecordGuard::Exists(name),
            VERSION_IS => RecordGuard::VersionIs(name, reader.u64()?),
            FIELD_IS => RecordGuard::FieldIs(name, reader.text()?, ValueRef::decode_optional(reader)?),
            STATE_IN => {
                let mut states = Vec::new();
                for _ in 0..reader.u32()? {
                    states.push(reader.text()?);
                }
                RecordGuard::StateIn(name, states)
            }
            ATTEMPT_IS => RecordGuard::AttemptIs(name, reader.u64()?),
            UNCHANGED_SINCE => RecordGuard::UnchangedSince(name, reader.u64()?),
            _ => unlisted(code),
        })
    }

    fn digest(&self, digester: &mut Digester) {
        let mut begin = |kind: &str, name: &str| {
            digester.text("if", kind).text("name", name);
        };
        match self {
            RecordGuard::Absent(name) => begin("record-absent", name),
            RecordGuard::Exists(name) => begin("record-exists", name),
            RecordGuard::VersionIs(name, version) => {
                begin("record-version-is", name);
                digester.number("version", *version);
            }
            RecordGuard::FieldIs(name, field, value) => {
                begin("record-field-is", name);
                digest_patch(digester, &(*field, *value));
            }
            RecordGuard::StateIn(name, states) => {
                begin("record-state-in", name);
                for state in states {
                    digester.text("state", state);
                }
            }
            RecordGuard::AttemptIs(name, attempt) => {
                begin("record-attempt-is", name);
                digester.number("attempt", *attempt);
            }
            RecordGuard::UnchangedSince(name, commit) => {
                begin("record-unchanged", name);
                digester.number("commit", *commit);
            }
        }
    }
}
