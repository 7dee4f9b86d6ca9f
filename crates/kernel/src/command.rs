//! The body of a command: a transaction in one group, or a command of the shard; `docs/formats/entry.md`.
//!
//! A body borrows its bytes: it is decoded once, when it is applied.

use kv::{DecodeError, Reader, Writer};

use crate::catalogue::CatalogueChange;
use crate::trim::TrimStep;
use crate::value::ValueRef;

/// What a command asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'bytes> {
    /// Operations in one group, all or nothing.
    Transact(Transact<'bytes>),
    /// A change of the catalogue.
    Catalogue(CatalogueChange),
    /// Gives up history, and what deleted branches left.
    Trim(Vec<TrimStep>),
    /// Raises the level of behaviour.
    Level(u32),
}

/// Operations in one group, applied in order, all or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transact<'bytes> {
    /// The space.
    pub space: u32,
    /// The branch.
    pub branch: u32,
    /// The group, or none if it is the name of the one thing that is touched.
    pub group: Option<&'bytes str>,
    /// What must hold.
    pub guards: Vec<Guard<'bytes>>,
    /// What to do.
    pub ops: Vec<Op<'bytes>>,
}

/// A condition that is checked before any operation of its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op<'bytes> {
    /// Creates the cell, or leaves the one that is there.
    CellInit(&'bytes str, ValueRef<'bytes>),
    /// Writes the cell.
    CellSet(&'bytes str, ValueRef<'bytes>),
    /// Writes the cell if it is at a version, or does not exist if none is given.
    CellCas(&'bytes str, Option<u64>, ValueRef<'bytes>),
    /// Deletes the cell.
    CellDelete(&'bytes str),
}

const TRANSACT: u8 = 1;
const CATALOGUE: u8 = 2;
const TRIM: u8 = 3;
const LEVEL: u8 = 4;

impl<'bytes> Body<'bytes> {
    /// Appends the body's bytes.
    pub fn encode(&self, writer: &mut Writer) {
        match self {
            Body::Transact(transact) => transact.encode(writer.u8(TRANSACT)),
            Body::Catalogue(change) => change.encode(writer.u8(CATALOGUE)),
            Body::Trim(steps) => {
                writer.u8(TRIM).u32(count(steps.len()));
                for step in steps {
                    step.encode(writer);
                }
            }
            Body::Level(level) => {
                writer.u8(LEVEL).u32(*level);
            }
        }
    }

    /// Reads a body that fills `bytes`.
    pub fn decode(bytes: &'bytes [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let body = match reader.u8()? {
            TRANSACT => Body::Transact(Transact::decode(&mut reader)?),
            CATALOGUE => Body::Catalogue(CatalogueChange::decode(&mut reader)?),
            TRIM => {
                let mut steps = Vec::new();
                for _ in 0..reader.u32()? {
                    steps.push(TrimStep::decode(&mut reader)?);
                }
                Body::Trim(steps)
            }
            LEVEL => Body::Level(reader.u32()?),
            _ => {
                return Err(DecodeError { what: "a command of an unknown kind" });
            }
        };
        reader.end()?;
        Ok(body)
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).expect("lists are bounded far below that")
}

impl<'bytes> Transact<'bytes> {
    fn encode(&self, writer: &mut Writer) {
        writer.u32(self.space).u32(self.branch);
        optional_text(writer, self.group);
        // No fence yet: a transaction that carries one begins with 1 here.
        writer.u8(0);
        writer.u32(count(self.guards.len()));
        for guard in &self.guards {
            guard.encode(writer);
        }
        writer.u32(count(self.ops.len()));
        for op in &self.ops {
            op.encode(writer);
        }
    }

    fn decode(reader: &mut Reader<'bytes>) -> Result<Self, DecodeError> {
        let space = reader.u32()?;
        let branch = reader.u32()?;
        let group = read_optional_text(reader)?;
        if reader.bool()? {
            return Err(DecodeError { what: "a fence, which this release does not know" });
        }
        let mut guards = Vec::new();
        for _ in 0..reader.u32()? {
            guards.push(Guard::decode(reader)?);
        }
        let mut ops = Vec::new();
        for _ in 0..reader.u32()? {
            ops.push(Op::decode(reader)?);
        }
        Ok(Self { space, branch, group, guards, ops })
    }
}

fn optional_text(writer: &mut Writer, text: Option<&str>) {
    match text {
        None => writer.u8(0),
        Some(text) => writer.u8(1).bytes(text.as_bytes()),
    };
}

fn read_optional_text<'bytes>(reader: &mut Reader<'bytes>) -> Result<Option<&'bytes str>, DecodeError> {
    Ok(if reader.bool()? { Some(reader.text()?) } else { None })
}

const CELL_ABSENT: u8 = 1;
const CELL_EXISTS: u8 = 2;
const CELL_VERSION_IS: u8 = 3;
const CELL_VERSION_BELOW: u8 = 4;
const CELL_UNCHANGED_SINCE: u8 = 5;
const CELLS_UNCHANGED_SINCE: u8 = 6;

impl<'bytes> Guard<'bytes> {
    fn encode(&self, writer: &mut Writer) {
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
                writer.u8(CELLS_UNCHANGED_SINCE).bytes(from.as_bytes());
                optional_text(writer, *to);
                writer.u64(*commit)
            }
        };
    }

    fn decode(reader: &mut Reader<'bytes>) -> Result<Self, DecodeError> {
        Ok(match reader.u8()? {
            CELL_ABSENT => Guard::CellAbsent(reader.text()?),
            CELL_EXISTS => Guard::CellExists(reader.text()?),
            CELL_VERSION_IS => Guard::CellVersionIs(reader.text()?, reader.u64()?),
            CELL_VERSION_BELOW => Guard::CellVersionBelow(reader.text()?, reader.u64()?),
            CELL_UNCHANGED_SINCE => Guard::CellUnchangedSince(reader.text()?, reader.u64()?),
            CELLS_UNCHANGED_SINCE => {
                Guard::CellsUnchangedSince(reader.text()?, read_optional_text(reader)?, reader.u64()?)
            }
            _ => {
                return Err(DecodeError { what: "a guard of an unknown kind" });
            }
        })
    }
}

const CELL_INIT: u8 = 1;
const CELL_SET: u8 = 2;
const CELL_CAS: u8 = 3;
const CELL_DELETE: u8 = 4;

impl<'bytes> Op<'bytes> {
    /// The name of what it touches.
    pub fn name(&self) -> &'bytes str {
        match self {
            Op::CellInit(name, _) | Op::CellSet(name, _) | Op::CellCas(name, _, _) | Op::CellDelete(name) => name,
        }
    }

    /// The value that it writes, if it writes one.
    pub fn value(&self) -> Option<ValueRef<'bytes>> {
        match self {
            Op::CellInit(_, value) | Op::CellSet(_, value) | Op::CellCas(_, _, value) => Some(*value),
            Op::CellDelete(_) => None,
        }
    }

    fn encode(&self, writer: &mut Writer) {
        match self {
            Op::CellInit(name, value) => encode_value(writer.u8(CELL_INIT).bytes(name.as_bytes()), *value),
            Op::CellSet(name, value) => encode_value(writer.u8(CELL_SET).bytes(name.as_bytes()), *value),
            Op::CellCas(name, expected, value) => {
                writer.u8(CELL_CAS).bytes(name.as_bytes()).optional_u64(*expected);
                encode_value(writer, *value);
            }
            Op::CellDelete(name) => {
                writer.u8(CELL_DELETE).bytes(name.as_bytes());
            }
        }
    }

    fn decode(reader: &mut Reader<'bytes>) -> Result<Self, DecodeError> {
        Ok(match reader.u8()? {
            CELL_INIT => Op::CellInit(reader.text()?, decode_value(reader)?),
            CELL_SET => Op::CellSet(reader.text()?, decode_value(reader)?),
            CELL_CAS => Op::CellCas(reader.text()?, reader.optional_u64()?, decode_value(reader)?),
            CELL_DELETE => Op::CellDelete(reader.text()?),
            _ => {
                return Err(DecodeError { what: "an operation of an unknown kind" });
            }
        })
    }
}

/// A value inside a command: its length with the kind, then kind and payload.
fn encode_value(writer: &mut Writer, value: ValueRef<'_>) {
    writer.u32(count(value.len() + 1));
    value.encode(writer);
}

fn decode_value<'bytes>(reader: &mut Reader<'bytes>) -> Result<ValueRef<'bytes>, DecodeError> {
    let bytes = reader.bytes()?;
    let (kind, payload) = bytes.split_first().ok_or(DecodeError { what: "a value without a kind" })?;
    ValueRef::decode(*kind, payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_as_written() {
        let values = [
            ValueRef::Null,
            ValueRef::Boolean(true),
            ValueRef::Integer(i64::MIN),
            ValueRef::Text("text"),
            ValueRef::Json("{}"),
            ValueRef::Bytes(&[0, 255]),
        ];
        let mut ops = vec![Op::CellDelete("d"), Op::CellCas("c", None, ValueRef::Null)];
        for value in values {
            ops.extend([Op::CellInit("i", value), Op::CellSet("s", value), Op::CellCas("c", Some(7), value)]);
        }
        let guards = vec![
            Guard::CellAbsent("a"),
            Guard::CellExists("e"),
            Guard::CellVersionIs("v", 1),
            Guard::CellVersionBelow("b", 2),
            Guard::CellUnchangedSince("u", 3),
            Guard::CellsUnchangedSince("from", Some("to"), 4),
            Guard::CellsUnchangedSince("from", None, 5),
        ];
        for group in [None, Some("group")] {
            let body =
                Body::Transact(Transact { space: 1, branch: 2, group, guards: guards.clone(), ops: ops.clone() });
            let mut writer = Writer::new();
            body.encode(&mut writer);
            assert_eq!(Body::decode(writer.as_slice()), Ok(body));
        }
        assert!(Body::decode(&[99]).is_err());
    }
}
