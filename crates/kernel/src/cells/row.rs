//! The rows of a cell, as bytes; `docs/formats/cells.md` is the specification.

use contract::{Value, Versioned};
use kv::{DecodeError, Reader, Writer};
use session::Halt;

use crate::held::Was;
use crate::value::{DELETION, ValueRef};

const FORMAT: u8 = 1;

/// What a head has besides its write: the version, the oldest one, and when that was displaced.
const NUMBERS_BYTES: usize = 8 + 8 + 8;

/// What a write has besides its value: the format, its command, its time, and the kind of the value.
const WRITE_BYTES: usize = 1 + 8 + 8 + 1;

/// The newest version of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'bytes> {
    /// Counts the cell's writes.
    pub version: u64,
    /// The oldest kept version; equal to `version` if there is no older one.
    pub oldest: u64,
    /// When the oldest kept version was displaced, or earlier: updated only when it matters.
    pub oldest_displaced_us: u64,
    /// The value, its command, and its time.
    pub write: Old<'bytes>,
}

/// One write of a cell, which is the whole row of an older version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Old<'bytes> {
    /// The number of the command that wrote it.
    pub commit: u64,
    /// When it was written.
    pub updated_at: u64,
    /// The value, or none for a deletion.
    pub value: Option<ValueRef<'bytes>>,
}

impl<'bytes> Head<'bytes> {
    /// Appends the row's bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u8(FORMAT).u64(self.version).u64(self.oldest).u64(self.oldest_displaced_us);
        self.write.encode_write(writer);
    }

    /// Reads the row.
    pub fn decode(bytes: &'bytes [u8]) -> Result<Self, Halt> {
        let read = || {
            let mut reader = Reader::new(bytes);
            reader.format(FORMAT)?;
            let (version, oldest) = (reader.u64()?, reader.u64()?);
            let oldest_displaced_us = reader.u64()?;
            Ok(Self { version, oldest, oldest_displaced_us, write: Old::decode_from(reader)? })
        };
        read().map_err(undecodable)
    }

    /// The row as it counts to its space.
    pub(crate) fn counted(&self) -> Was {
        Was { bytes: NUMBERS_BYTES + self.write.row_bytes(), exists: self.exists() }
    }

    /// Whether the cell exists, that is: its newest version is not a deletion.
    pub fn exists(&self) -> bool {
        self.write.value.is_some()
    }

    /// The version, if the cell exists.
    pub fn live_version(&self) -> Option<u64> {
        self.exists().then_some(self.version)
    }

    /// The value with its version, if the cell exists.
    pub fn versioned(&self) -> Option<Versioned> {
        self.write.versioned(self.version)
    }
}

impl<'bytes> Old<'bytes> {
    /// The length of the row.
    fn row_bytes(&self) -> usize {
        WRITE_BYTES + self.value.map_or(0, |value| value.len())
    }

    /// Appends the row's bytes.
    pub fn encode(&self, writer: &mut Writer) {
        writer.u8(FORMAT);
        self.encode_write(writer);
    }

    fn encode_write(&self, writer: &mut Writer) {
        writer.u64(self.commit).u64(self.updated_at);
        match self.value {
            None => {
                writer.u8(DELETION);
            }
            Some(value) => value.encode(writer),
        }
    }

    /// Reads the row.
    pub fn decode(bytes: &'bytes [u8]) -> Result<Self, Halt> {
        let read = || {
            let mut reader = Reader::new(bytes);
            reader.format(FORMAT)?;
            Self::decode_from(reader)
        };
        read().map_err(undecodable)
    }

    fn decode_from(mut reader: Reader<'bytes>) -> Result<Self, DecodeError> {
        let (commit, updated_at) = (reader.u64()?, reader.u64()?);
        let kind = reader.u8()?;
        let value = match kind {
            DELETION => {
                reader.end()?;
                None
            }
            kind => Some(ValueRef::decode(kind, reader.rest())?),
        };
        Ok(Self { commit, updated_at, value })
    }

    /// The value with its version, if this is not a deletion.
    pub fn versioned(&self, version: u64) -> Option<Versioned> {
        let value: Value = self.value?.to_value();
        Some(Versioned::new(value, version, self.commit, self.updated_at))
    }
}

fn undecodable(error: DecodeError) -> Halt {
    Halt::Undecodable { what: "a row of a cell", error }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of `docs/formats/cells.md`. A change here is a change of the format.
    #[test]
    fn golden_rows() {
        let write = Old { commit: 9, updated_at: 258, value: Some(ValueRef::Text("hi")) };
        let head = Head { version: 3, oldest: 2, oldest_displaced_us: 7, write };
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let bytes = |encode: &dyn Fn(&mut Writer)| {
            let mut writer = Writer::new();
            encode(&mut writer);
            writer.finish()
        };
        let golden_write = "0900000000000000".to_owned() + "0201000000000000" + "03" + "6869";
        assert_eq!(hex(&bytes(&|writer| write.encode(writer))), "01".to_owned() + &golden_write);
        let golden_head = "01".to_owned() + "0300000000000000" + "0200000000000000" + "0700000000000000";
        assert_eq!(hex(&bytes(&|writer| head.encode(writer))), golden_head + &golden_write);
        assert_eq!(Head::decode(&bytes(&|writer| head.encode(writer))), Ok(head));
        let deletion = Old { value: None, ..write };
        assert_eq!(
            hex(&bytes(&|writer| deletion.encode(writer))),
            "01090000000000000002010000000000".to_owned() + "00ff"
        );
        assert_eq!(Old::decode(&bytes(&|writer| deletion.encode(writer))), Ok(deletion));
        for value in [None, write.value] {
            let head = Head { write: Old { value, ..write }, ..head };
            let counted = Was { bytes: bytes(&|writer| head.encode(writer)).len(), exists: value.is_some() };
            assert_eq!(head.counted(), counted);
        }
    }
}
