//! The bytes of one entry on disk; `docs/formats/journal.md` is the specification.
//!
//! Keeps: J2 (each entry carries the hash of the one before it, and a hash over everything that identifies it).
//! The magic bytes let a damaged file be searched for entries without trusting any structure around them.

use kv::{DecodeError, Reader};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Identifies a shard within a node's journal.
pub type ShardId = u64;

/// Begins the fixed part of every entry, after the index. The last byte is the format's number.
pub(crate) const MAGIC: [u8; 8] = *b"SHentry\x01";

/// Where the magic bytes are in a frame.
pub(crate) const MAGIC_OFFSET: usize = 8;

/// Everything before the payload.
pub(crate) const HEADER_BYTES: usize = 52;

/// The hash after the payload.
pub(crate) const HASH_BYTES: usize = 8;

/// One entry, as written and as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Counts the entries of a shard, from 1.
    pub index: u64,
    /// The shard that the entry belongs to.
    pub shard: ShardId,
    /// The term of the leader that proposed it; always 1 in an unreplicated journal.
    pub term: u64,
    /// The newest durable entry of this shard when this one was written.
    pub durable: u64,
    /// The hash of the entry before, or 0.
    pub previous_hash: u64,
    /// The proposed payload.
    pub payload: Vec<u8>,
}

impl Entry {
    /// The frame's bytes and its hash. `seed` is the journal's id, so that frames of another journal do not match.
    pub fn encode(&self, seed: u64) -> (Vec<u8>, u64) {
        let mut bytes = Vec::new();
        let hash = self.place().encode(&self.payload, seed, &mut bytes);
        (bytes, hash)
    }

    /// Reads a frame from the start of `bytes`, which may continue after it. Returns the entry, its hash and its
    /// length.
    pub fn decode(bytes: &[u8], seed: u64) -> Result<(Self, u64, usize), DecodeError> {
        let frame = Frame::decode(bytes, seed)?;
        Ok((frame.entry(), frame.hash, frame.bytes))
    }

    pub(crate) fn place(&self) -> Place {
        Place {
            index: self.index,
            shard: self.shard,
            term: self.term,
            durable: self.durable,
            previous_hash: self.previous_hash,
        }
    }
}

/// Everything of an entry but its payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) index: u64,
    pub(crate) shard: ShardId,
    pub(crate) term: u64,
    pub(crate) durable: u64,
    pub(crate) previous_hash: u64,
}

impl Place {
    /// Appends a frame to `bytes` and returns its hash.
    pub(crate) fn encode(&self, payload: &[u8], seed: u64, bytes: &mut Vec<u8>) -> u64 {
        let start = bytes.len();
        bytes.reserve(HEADER_BYTES + payload.len() + HASH_BYTES);
        bytes.extend_from_slice(&self.index.to_le_bytes());
        bytes.extend_from_slice(&MAGIC);
        let length = u32::try_from(payload.len()).expect("a payload is below 4 GiB");
        bytes.extend_from_slice(&length.to_le_bytes());
        for number in [self.shard, self.term, self.durable, self.previous_hash] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        debug_assert_eq!(bytes.len() - start, HEADER_BYTES);
        bytes.extend_from_slice(payload);
        let hash = xxh3_64_with_seed(&bytes[start..], seed);
        bytes.extend_from_slice(&hash.to_le_bytes());
        hash
    }
}

/// A frame as read, before its payload is copied.
pub(crate) struct Frame<'bytes> {
    pub(crate) place: Place,
    pub(crate) payload: &'bytes [u8],
    pub(crate) hash: u64,
    /// The length of the frame.
    pub(crate) bytes: usize,
}

impl<'bytes> Frame<'bytes> {
    /// Reads a frame from the start of `bytes`, which may continue after it.
    pub(crate) fn decode(bytes: &'bytes [u8], seed: u64) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let index = reader.u64()?;
        if reader.raw(MAGIC.len())? != MAGIC {
            return Err(DecodeError { what: "an entry without its magic bytes" });
        }
        let length = reader.u32()? as usize;
        let (shard, term) = (reader.u64()?, reader.u64()?);
        let (durable, previous_hash) = (reader.u64()?, reader.u64()?);
        let payload = reader.raw(length)?;
        let hash = reader.u64()?;
        if xxh3_64_with_seed(&bytes[..HEADER_BYTES + length], seed) != hash {
            return Err(DecodeError { what: "an entry whose hash does not match its bytes" });
        }
        let place = Place { index, shard, term, durable, previous_hash };
        Ok(Self { place, payload, hash, bytes: HEADER_BYTES + length + HASH_BYTES })
    }

    pub(crate) fn entry(&self) -> Entry {
        let Place { index, shard, term, durable, previous_hash } = self.place;
        Entry { index, shard, term, durable, previous_hash, payload: self.payload.to_vec() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry { index: 7, shard: 3, term: 1, durable: 6, previous_hash: 99, payload: b"payload".to_vec() }
    }

    #[test]
    fn a_frame_is_read_as_written_whatever_follows() {
        let (mut bytes, hash) = entry().encode(5);
        bytes.extend_from_slice(b"next");
        assert_eq!(Entry::decode(&bytes, 5), Ok((entry(), hash, bytes.len() - 4)));
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let (bytes, _) = entry().encode(5);
        for position in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[position / 8] ^= 1 << (position % 8);
            assert!(Entry::decode(&flipped, 5).is_err(), "bit {position}");
        }
    }

    #[test]
    fn a_frame_of_another_journal_does_not_fit() {
        assert!(Entry::decode(&entry().encode(5).0, 6).is_err());
    }

    /// The bytes of `docs/formats/journal.md`, example 3. A change here is a change of the format.
    #[test]
    fn golden_bytes() {
        let golden = "0700000000000000534865\
            6e7472790107000000030000000000000001000000000000000600000000000000\
            63000000000000007061796c6f6164091ee244cd211433";
        let hex: String = entry().encode(5).0.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, golden.replace(char::is_whitespace, ""));
    }
}
