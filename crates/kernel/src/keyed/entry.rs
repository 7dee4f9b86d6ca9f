//! The entry of a key, and the position of an input; `docs/formats/keyed.md` is the specification.

use contract::keyed::{InputPosition, LogicalTime};
use kv::{DecodeError, Reader, Writer};
use session::Halt;

use crate::value::ValueRef;

const PUT: u8 = 0x11;
const MERGED: u8 = 0x12;
const DELETED: u8 = 0x13;
const POSITION_FORMAT: u8 = 1;

/// What is known of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'row> {
    /// The command that wrote it.
    pub commit: u64,
    /// What it wrote.
    pub state: KeyState<'row>,
}

/// The state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState<'row> {
    /// It has a value that was put.
    Put {
        /// With this version.
        version: LogicalTime,
        /// The value's kind and payload.
        value: &'row [u8],
    },
    /// It has an integer that others are merged into.
    Merged(i64),
    /// It was deleted with this version.
    Deleted(LogicalTime),
}

impl<'row> Entry<'row> {
    /// Appends the row.
    pub(crate) fn encode(&self, writer: &mut Writer) {
        match self.state {
            KeyState::Put { version, value } => encode_version(writer.u8(PUT).varint(self.commit), version).raw(value),
            KeyState::Merged(value) => writer.u8(MERGED).varint(self.commit).i64(value),
            KeyState::Deleted(version) => encode_version(writer.u8(DELETED).varint(self.commit), version),
        };
    }

    /// Reads the row.
    pub fn decode(row: &'row [u8]) -> Result<Self, Halt> {
        let read = || {
            let mut reader = Reader::new(row);
            let kind = reader.u8()?;
            let commit = reader.varint()?;
            let state = match kind {
                PUT => {
                    let version = decode_version(&mut reader)?;
                    let value = reader.raw(reader.rest().len())?;
                    KeyState::Put { version, value }
                }
                MERGED => KeyState::Merged(reader.i64()?),
                DELETED => KeyState::Deleted(decode_version(&mut reader)?),
                _ => return Err(DecodeError { what: "an entry of an unknown kind or format" }),
            };
            reader.end().map(|()| Self { commit, state })
        };
        read().map_err(|error| Halt::Undecodable { what: "a key of a map", error })
    }

    /// Its value, unless it was deleted.
    pub fn value(&self) -> Result<Option<ValueRef<'row>>, Halt> {
        Ok(match self.state {
            KeyState::Put { value, .. } => Some(decode_value(value)?),
            KeyState::Merged(value) => Some(ValueRef::Integer(value)),
            KeyState::Deleted(_) => None,
        })
    }
}

/// Reads a value's kind and payload.
pub(crate) fn decode_value(value: &[u8]) -> Result<ValueRef<'_>, Halt> {
    let read = || {
        let (kind, payload) = value.split_first().ok_or(DecodeError { what: "a value without a kind" })?;
        ValueRef::decode(*kind, payload)
    };
    read().map_err(|error| Halt::Undecodable { what: "the value of a key", error })
}

/// Appends a version.
pub(crate) fn encode_version(writer: &mut Writer, version: LogicalTime) -> &mut Writer {
    writer.varint(version.epoch).varint(version.round)
}

/// Reads a version.
pub(crate) fn decode_version(reader: &mut Reader<'_>) -> Result<LogicalTime, DecodeError> {
    Ok(LogicalTime::new(reader.varint()?, reader.varint()?))
}

/// Appends the row of an input's position.
pub(crate) fn encode_position(writer: &mut Writer, position: &InputPosition) {
    writer.u8(POSITION_FORMAT).u64(position.position).u64(position.commit).u64(position.updated_at);
}

/// Reads the row of an input's position.
pub fn decode_position(row: &[u8]) -> Result<InputPosition, Halt> {
    let read = || {
        let mut reader = Reader::new(row);
        reader.format(POSITION_FORMAT)?;
        let position = InputPosition::new(reader.u64()?, reader.u64()?, reader.u64()?);
        reader.end().map(|()| position)
    };
    read().map_err(|error| Halt::Undecodable { what: "the position of an input", error })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Part of the stored format; `docs/formats/keyed.md`.
    #[test]
    fn golden_entries() {
        let states: [(KeyState<'_>, &[u8]); 3] = [
            (KeyState::Put { version: LogicalTime::new(1, 300), value: &[3, b'x'] }, &[0x11, 5, 1, 0xac, 2, 3, b'x']),
            (KeyState::Merged(-2), &[0x12, 5, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            (KeyState::Deleted(LogicalTime::from(7)), &[0x13, 5, 0, 7]),
        ];
        for (state, bytes) in states {
            let (entry, mut writer) = (Entry { commit: 5, state }, Writer::new());
            entry.encode(&mut writer);
            assert_eq!(writer.as_slice(), bytes);
            assert_eq!(Entry::decode(bytes).expect("an entry"), entry);
        }
        for wrong in [&[][..], &[0x11, 5, 1], &[0x12, 5, 1], &[0x13, 5, 0, 7, 0], &[0x14, 5, 0, 7], &[0x01, 5, 0, 7]] {
            assert!(Entry::decode(wrong).is_err(), "{wrong:?}");
        }
    }

    /// Part of the stored format; `docs/formats/keyed.md`.
    #[test]
    fn golden_position() {
        let (position, mut writer) = (InputPosition::new(258, 2, 3), Writer::new());
        encode_position(&mut writer, &position);
        let bytes =
            [&[1][..], &[2, 1, 0, 0, 0, 0, 0, 0], &[2, 0, 0, 0, 0, 0, 0, 0], &[3, 0, 0, 0, 0, 0, 0, 0]].concat();
        assert_eq!(writer.as_slice(), bytes);
        assert_eq!(decode_position(&bytes).expect("a position"), position);
        assert!(decode_position(&bytes[1..]).is_err());
    }
}
