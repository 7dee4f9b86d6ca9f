//! The entry of a key, and the position of an input; `docs/formats/keyed.md` is the specification.

use contract::keyed::{InputPosition, LogicalTime};
use kv::{DecodeError, Reader, Writer};
use session::Halt;

use crate::value::ValueRef;

const PUT: u8 = 0x11;
const MERGED: u8 = 0x12;
const DELETED: u8 = 0x13;
/// The same, with updates that wait.
const PUT_WAITING: u8 = 0x21;
const MERGED_WAITING: u8 = 0x22;
const NOTHING_WAITING: u8 = 0x24;
const POSITION_FORMAT: u8 = 1;

/// What is known of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'row> {
    /// The command that changed its value last. Of a key that has had none since its row was made: the last command that changed
    /// a key without a row, which may have been this one.
    pub commit: u64,
    /// Updates of it that wait, in an ordered map.
    pub waiting: Waiting,
    /// Its state.
    pub state: KeyState<'row>,
}

/// The updates of a key that wait, as numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// How many there are.
    pub count: u32,
    /// How far the value can move by those that are added: the sum of their sizes.
    pub added: u64,
    /// The largest size of those that were merged by min or max since updates began to wait: the value may become one of them.
    pub extreme: u64,
}

/// What a key that has no value is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Only deletions wait: that is not known.
    Unknown,
    /// Values are put.
    Put,
    /// Integers are merged.
    Merged,
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
    /// It has no value, but updates wait.
    Nothing(Use),
}

impl<'row> Entry<'row> {
    /// Appends the row.
    pub fn encode(&self, writer: &mut Writer) {
        let waits = self.waiting.count > 0;
        writer.u8(match self.state {
            KeyState::Put { .. } if waits => PUT_WAITING,
            KeyState::Put { .. } => PUT,
            KeyState::Merged(_) if waits => MERGED_WAITING,
            KeyState::Merged(_) => MERGED,
            KeyState::Deleted(_) => DELETED,
            KeyState::Nothing(_) => NOTHING_WAITING,
        });
        writer.varint(self.commit);
        if waits {
            let Waiting { count, added, extreme } = self.waiting;
            writer.varint(count.into()).varint(added).varint(extreme);
        }
        match self.state {
            KeyState::Put { version, value } => encode_version(writer, version).raw(value),
            KeyState::Merged(value) => writer.i64(value),
            KeyState::Deleted(version) => encode_version(writer, version),
            KeyState::Nothing(of) => writer.u8(of as u8),
        };
    }

    /// Reads the row.
    pub fn decode(row: &'row [u8]) -> Result<Self, Halt> {
        let read = || {
            let mut reader = Reader::new(row);
            let kind = reader.u8()?;
            let commit = reader.varint()?;
            let waiting = match kind {
                PUT_WAITING | MERGED_WAITING | NOTHING_WAITING => {
                    let count = u32::try_from(reader.varint()?).ok().filter(|count| *count > 0);
                    let count = count.ok_or(DecodeError { what: "a number of waiting updates that cannot be" })?;
                    Waiting { count, added: reader.varint()?, extreme: reader.varint()? }
                }
                _ => Waiting::default(),
            };
            let state = match kind {
                PUT | PUT_WAITING => {
                    let version = decode_version(&mut reader)?;
                    let value = reader.raw(reader.rest().len())?;
                    KeyState::Put { version, value }
                }
                MERGED | MERGED_WAITING => KeyState::Merged(reader.i64()?),
                NOTHING_WAITING => KeyState::Nothing(match reader.u8()? {
                    0 => Use::Unknown,
                    1 => Use::Put,
                    2 => Use::Merged,
                    _ => return Err(DecodeError { what: "an unknown use of a key" }),
                }),
                DELETED => KeyState::Deleted(decode_version(&mut reader)?),
                _ => return Err(DecodeError { what: "an entry of an unknown kind or format" }),
            };
            reader.end().map(|()| Self { commit, waiting, state })
        };
        read().map_err(|error| Halt::Undecodable { what: "a key of a map", error })
    }

    /// Its value, if it has one.
    pub fn value(&self) -> Result<Option<ValueRef<'row>>, Halt> {
        Ok(match self.state {
            KeyState::Put { value, .. } => Some(decode_value(value)?),
            KeyState::Merged(value) => Some(ValueRef::Integer(value)),
            KeyState::Deleted(_) | KeyState::Nothing(_) => None,
        })
    }

    /// Whether it has a value.
    pub fn has_value(&self) -> bool {
        matches!(self.state, KeyState::Put { .. } | KeyState::Merged(_))
    }

    /// The version that its value was put with.
    pub fn version(&self) -> Option<LogicalTime> {
        match self.state {
            KeyState::Put { version, .. } => Some(version),
            KeyState::Merged(_) | KeyState::Deleted(_) | KeyState::Nothing(_) => None,
        }
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
        let (none, two) = (Waiting::default(), Waiting { count: 2, added: 300, extreme: 1 });
        let put = KeyState::Put { version: LogicalTime::from(7), value: &[3, b'x'] };
        let states: [(KeyState<'_>, Waiting, &[u8]); 6] = [
            (put, two, &[0x21, 5, 2, 0xac, 2, 1, 0, 7, 3, b'x']),
            (KeyState::Merged(1), two, &[0x22, 5, 2, 0xac, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0]),
            (KeyState::Nothing(Use::Merged), two, &[0x24, 5, 2, 0xac, 2, 1, 2]),
            (
                KeyState::Put { version: LogicalTime::new(1, 300), value: &[3, b'x'] },
                none,
                &[0x11, 5, 1, 0xac, 2, 3, b'x'],
            ),
            (KeyState::Merged(-2), none, &[0x12, 5, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            (KeyState::Deleted(LogicalTime::from(7)), none, &[0x13, 5, 0, 7]),
        ];
        for (state, waiting, bytes) in states {
            let (entry, mut writer) = (Entry { commit: 5, waiting, state }, Writer::new());
            entry.encode(&mut writer);
            assert_eq!(writer.as_slice(), bytes);
            assert_eq!(Entry::decode(bytes).expect("an entry"), entry);
        }
        for wrong in [
            &[0x24, 5, 2, 0, 0, 3][..],
            &[0x24, 5, 0, 0, 0, 1],
            &[0x21, 5, 0, 0, 0, 0, 7, 3],
            &[],
            &[0x11, 5, 1],
            &[0x12, 5, 1],
            &[0x13, 5, 0, 7, 0],
            &[0x14, 5, 0, 7],
            &[0x01, 5, 0, 7],
        ] {
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
