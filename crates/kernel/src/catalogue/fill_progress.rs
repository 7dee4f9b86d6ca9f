//! How far the indexes of a type are filled that were declared when there were records already: a row of the catalogue while
//! it lasts; `docs/formats/keys.md`.

use kv::{Bytes, DecodeError, KvError, Reader, Writer};
use session::Halt;

use crate::keys::Keys;

const FORMAT: u8 = 1;

/// A type whose indexes are all filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilledType {
    pub(crate) space: u32,
    pub(crate) record_type: u32,
}

/// How far the indexes of a type are filled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FillProgress {
    /// So many of its indexes, the first ones, were filled before.
    pub(crate) filled: u8,
    /// Where it is.
    pub(crate) bucket: u16,
    pub(crate) branch: u32,
    /// The end of the key of the last record of that bucket and branch that was looked at; empty before the first.
    pub(crate) after: Vec<u8>,
}

impl FillProgress {
    /// Nothing of the other indexes is filled.
    pub(crate) fn begin(filled: u8) -> Self {
        Self { filled, ..Self::default() }
    }

    /// That of a type, as its row says; none if all of its indexes are filled.
    pub(crate) fn read(
        keys: Keys,
        space: u32,
        record_type: u32,
        get: impl Fn(&[u8]) -> Result<Option<Bytes>, KvError>,
    ) -> Result<Option<Self>, Halt> {
        let row = keys.get_either(&keys.index_fill(space, record_type), get)?;
        row.map(|row| Self::decode(&row)).transpose()
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.u8(FORMAT).u8(self.filled).u16(self.bucket).u32(self.branch).bytes(&self.after);
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Halt> {
        let undecodable = |error| Halt::Undecodable { what: "the progress of an index", error };
        Self::decode_fields(bytes).map_err(undecodable)
    }

    fn decode_fields(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        reader.format(FORMAT)?;
        let (filled, bucket, branch) = (reader.u8()?, reader.u16()?, reader.u32()?);
        let progress = Self { filled, bucket, branch, after: reader.bytes()?.to_vec() };
        reader.end().map(|()| progress)
    }
}
