//! The frame of every block of a table: `docs/formats/tables.md`.
//!
//! Keeps: the checksum covers the store, the table and the offset, so a block that was changed, moved or left over from
//! another file never verifies.

use std::sync::Arc;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

pub(crate) const HEADER_BYTES: usize = 8;
const CHECKSUM_BYTES: usize = 8;
/// The bytes of a block besides its content.
pub(crate) const FRAME_BYTES: usize = HEADER_BYTES + CHECKSUM_BYTES;
/// The only compression there is: none.
const UNCOMPRESSED: u8 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Data = 1,
    Index = 2,
    Filter = 3,
    Top = 4,
    Facts = 5,
}

/// Where a block is in its file, frame included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
}

impl Place {
    pub(crate) fn end(&self) -> Option<u64> {
        self.offset.checked_add(u64::from(self.bytes))
    }
}

/// A verified block.
#[derive(Clone, Debug)]
pub(crate) struct Block(Arc<[u8]>);

impl Block {
    /// Verifies the bytes read from a place.
    pub(crate) fn verify(bytes: Arc<[u8]>, kind: Kind, seed: u64) -> Result<Self, &'static str> {
        let Some((framed, checksum)) = bytes.split_last_chunk::<CHECKSUM_BYTES>() else {
            return Err("a block without a checksum");
        };
        if xxh3_64_with_seed(framed, seed) != u64::from_le_bytes(*checksum) {
            return Err("the checksum of a block does not match");
        }
        let Some((header, content)) = framed.split_first_chunk::<HEADER_BYTES>() else {
            return Err("a block without a header");
        };
        if *header != header_of(kind, content.len()) {
            return Err("a block of another kind, compression or length");
        }
        Ok(Self(bytes))
    }

    pub(crate) fn content(&self) -> &[u8] {
        &self.0[HEADER_BYTES..self.0.len() - CHECKSUM_BYTES]
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.len()
    }
}

/// Appends a block with this content.
///
/// # Panics
/// If the content is longer than 4 GiB; the rows of a table have a smaller limit.
pub(crate) fn append(bytes: &mut Vec<u8>, kind: Kind, content: &[u8], seed: u64) -> u32 {
    let start = bytes.len();
    bytes.extend_from_slice(&header_of(kind, content.len()));
    bytes.extend_from_slice(content);
    let checksum = xxh3_64_with_seed(&bytes[start..], seed);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    u32::try_from(bytes.len() - start).expect("a block is shorter than 4 GiB")
}

fn header_of(kind: Kind, content: usize) -> [u8; HEADER_BYTES] {
    let length = u32::try_from(content).expect("a block is shorter than 4 GiB").to_le_bytes();
    [kind as u8, UNCOMPRESSED, 0, 0, length[0], length[1], length[2], length[3]]
}

/// The seed of the checksum of the block at `offset`.
pub(crate) fn seed(store: u64, table: u64, offset: u64) -> u64 {
    let mut place = [0; 24];
    place[..8].copy_from_slice(&store.to_le_bytes());
    place[8..16].copy_from_slice(&table.to_le_bytes());
    place[16..].copy_from_slice(&offset.to_le_bytes());
    xxh3_64(&place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_verifies_only_where_it_was_written() {
        let mut bytes = Vec::new();
        append(&mut bytes, Kind::Data, b"content", seed(1, 2, 3));
        let verify = |bytes: &[u8], kind, seed| Block::verify(bytes.into(), kind, seed);
        assert_eq!(verify(&bytes, Kind::Data, seed(1, 2, 3)).expect("it verifies").content(), b"content");
        assert!(verify(&bytes, Kind::Index, seed(1, 2, 3)).is_err());
        for other in [seed(0, 2, 3), seed(1, 3, 3), seed(1, 2, 4), seed(1, 3, 2)] {
            assert!(verify(&bytes, Kind::Data, other).is_err());
        }
        for length in 0..bytes.len() {
            assert!(verify(&bytes[..length], Kind::Data, seed(1, 2, 3)).is_err());
        }
    }
}
