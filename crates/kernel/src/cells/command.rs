//! Operations on cells, and conditions on them, as encoded in a command; `docs/formats/entry.md`.

use kv::{DecodeError, Reader, Writer};
use session::Digester;

use crate::command::act::{Act, Condition, Open, unlisted};
use crate::value::ValueRef;

/// An operation on a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellAct<'bytes> {
    /// Creates it, or leaves the existing one.
    Init(ValueRef<'bytes>),
    /// Writes it.
    Set(ValueRef<'bytes>),
    /// Writes it if it is at a version, or if it does not exist when none is given.
    Cas(Option<u64>, ValueRef<'bytes>),
    /// Deletes it.
    Delete,
}

const INIT: u8 = 1;
const SET: u8 = 2;
const CAS: u8 = 3;
const DELETE: u8 = 4;

impl<'bytes> Act<'bytes> for CellAct<'bytes> {
    const CODES: &'static [u8] = &[INIT, SET, CAS, DELETE];

    fn encode(&self, name: &str, writer: &mut Writer) {
        match self {
            CellAct::Init(value) => value.encode_framed(writer.u8(INIT).bytes(name.as_bytes())),
            CellAct::Set(value) => value.encode_framed(writer.u8(SET).bytes(name.as_bytes())),
            CellAct::Cas(expected, value) => {
                value.encode_framed(writer.u8(CAS).bytes(name.as_bytes()).optional_u64(*expected));
            }
            CellAct::Delete => {
                writer.u8(DELETE).bytes(name.as_bytes());
            }
        }
    }

    fn decode(code: u8, reader: &mut Reader<'bytes>) -> Result<(&'bytes str, Self), DecodeError> {
        let name = reader.text()?;
        let act = match code {
            INIT => CellAct::Init(ValueRef::decode_framed(reader)?),
            SET => CellAct::Set(ValueRef::decode_framed(reader)?),
            CAS => CellAct::Cas(reader.optional_u64()?, ValueRef::decode_framed(reader)?),
            DELETE => CellAct::Delete,
            _ => unlisted(code),
        };
        Ok((name, act))
    }

    fn grows(&self) -> bool {
        !matches!(self, CellAct::Delete)
    }

    fn open(&self, _: &str) -> Open {
        match self {
            CellAct::Init(_) | CellAct::Cas(None, _) => Open::Always,
            CellAct::Set(_) => Open::IfAbsent,
            CellAct::Cas(Some(_), _) | CellAct::Delete => Open::Never,
        }
    }

    fn value_bytes(&self) -> usize {
        match self {
            CellAct::Init(value) | CellAct::Set(value) | CellAct::Cas(_, value) => value.len(),
            CellAct::Delete => 0,
        }
    }

    fn digest(&self, name: &str, digester: &mut Digester) {
        match self {
            CellAct::Init(value) => value.digest("value", digester.text("do", "cell-init").text("name", name)),
            CellAct::Set(value) => value.digest("value", digester.text("do", "cell-set").text("name", name)),
            CellAct::Cas(expected, value) => {
                digester.text("do", "cell-cas").text("name", name).optional_number("expected", *expected);
                value.digest("value", digester);
            }
            CellAct::Delete => {
                digester.text("do", "cell-delete").text("name", name);
            }
        }
    }
}

/// A condition on cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellGuard<'bytes> {
    /// The cell does not exist.
    Absent(&'bytes str),
    /// The cell exists.
    Exists(&'bytes str),
    /// The cell exists at this version.
    VersionIs(&'bytes str, u64),
    /// The cell exists at a lower version, or does not exist.
    VersionBelow(&'bytes str, u64),
    /// The cell was not written by a commit after this one.
    UnchangedSince(&'bytes str, u64),
    /// No cell with a name from the first to before the second was written by a commit after this one.
    RangeUnchangedSince(&'bytes str, Option<&'bytes str>, u64),
}

const ABSENT: u8 = 1;
const EXISTS: u8 = 2;
const VERSION_IS: u8 = 3;
const VERSION_BELOW: u8 = 4;
const UNCHANGED_SINCE: u8 = 5;
const RANGE_UNCHANGED_SINCE: u8 = 6;

impl<'bytes> Condition<'bytes> for CellGuard<'bytes> {
    const CODES: &'static [u8] = &[ABSENT, EXISTS, VERSION_IS, VERSION_BELOW, UNCHANGED_SINCE, RANGE_UNCHANGED_SINCE];

    fn name(&self) -> Option<&'bytes str> {
        match self {
            CellGuard::Absent(name)
            | CellGuard::Exists(name)
            | CellGuard::VersionIs(name, _)
            | CellGuard::VersionBelow(name, _)
            | CellGuard::UnchangedSince(name, _) => Some(name),
            CellGuard::RangeUnchangedSince(..) => None,
        }
    }

    fn encode(&self, writer: &mut Writer) {
        match self {
            CellGuard::Absent(name) => writer.u8(ABSENT).bytes(name.as_bytes()),
            CellGuard::Exists(name) => writer.u8(EXISTS).bytes(name.as_bytes()),
            CellGuard::VersionIs(name, version) => writer.u8(VERSION_IS).bytes(name.as_bytes()).u64(*version),
            CellGuard::VersionBelow(name, version) => writer.u8(VERSION_BELOW).bytes(name.as_bytes()).u64(*version),
            CellGuard::UnchangedSince(name, commit) => writer.u8(UNCHANGED_SINCE).bytes(name.as_bytes()).u64(*commit),
            CellGuard::RangeUnchangedSince(from, to, commit) => {
                writer.u8(RANGE_UNCHANGED_SINCE).bytes(from.as_bytes()).optional_text(*to).u64(*commit)
            }
        };
    }

    fn decode(code: u8, reader: &mut Reader<'bytes>) -> Result<Self, DecodeError> {
        let name = reader.text()?;
        Ok(match code {
            ABSENT => CellGuard::Absent(name),
            EXISTS => CellGuard::Exists(name),
            VERSION_IS => CellGuard::VersionIs(name, reader.u64()?),
            VERSION_BELOW => CellGuard::VersionBelow(name, reader.u64()?),
            UNCHANGED_SINCE => CellGuard::UnchangedSince(name, reader.u64()?),
            RANGE_UNCHANGED_SINCE => CellGuard::RangeUnchangedSince(name, reader.optional_text()?, reader.u64()?),
            _ => unlisted(code),
        })
    }

    fn digest(&self, digester: &mut Digester) {
        let mut begin = |kind: &str, name: &str| {
            digester.text("if", kind).text("name", name);
        };
        match self {
            CellGuard::Absent(name) => begin("cell-absent", name),
            CellGuard::Exists(name) => begin("cell-exists", name),
            CellGuard::VersionIs(name, version) => {
                begin("cell-version-is", name);
                digester.number("version", *version);
            }
            CellGuard::VersionBelow(name, version) => {
                begin("cell-version-below", name);
                digester.number("version", *version);
            }
            CellGuard::UnchangedSince(name, commit) => {
                begin("cell-unchanged", name);
                digester.number("commit", *commit);
            }
            CellGuard::RangeUnchangedSince(from, to, commit) => {
                begin("cells-unchanged", from);
                digester.optional_text("to", *to).number("commit", *commit);
            }
        }
    }
}
