//! The bytes of one entry on disk; `docs/formats/journal.md` is the specification.
//!
//! Keeps: J2 (each entry carries the hash of the one before it, and a hash over everything that identifies it). The hash
//! depends on nothing of the file, so every log that keeps an entry has the same hash for it. What only this file can say,
//! that an entry is in this place and what was durable then, is behind the hash and has one of its own.
//! The magic bytes let a damaged file be searched for entries without trusting any structure around them.

use kv::{DecodeError, Reader};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::file_place::FilePlace;

/// Identifies a shard within a node's journal.
pub type ShardId = u64;

/// Begins the fixed part of every entry, after the index. The last byte is the format's number.
pub(crate) const MAGIC: [u8; 8] = *b"SHentry\x02";

/// Where the magic bytes are in a frame.
pub(crate) const MAGIC_OFFSET: usize = 8;

/// Everything before the payload.
pub(crate) const HEADER_BYTES: usize = 61;

/// Everything after the payload: the hash, what was durable, and the seal of both.
pub(crate) const TRAILER_BYTES: usize = 24;

const SEAL_BYTES: usize = 8;

/// What an entry is for. A log keeps and returns kinds that it does not know; whoever applies entries refuses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryKind(u8);

impl EntryKind {
    /// Commands to apply.
    pub const COMMANDS: Self = Self(1);
    /// No commands: a new owner takes the shard, and whoever owned it can append no more.
    pub const FENCE: Self = Self(2);

    /// The kind that is stored as this byte.
    pub const fn from_byte(byte: u8) -> Self {
        Self(byte)
    }

    /// The byte that it is stored as.
    pub const fn byte(self) -> u8 {
        self.0
    }
}

/// One entry, as written and as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Counts the entries of a shard, from 1.
    pub index: u64,
    /// The shard that the entry belongs to.
    pub shard: ShardId,
    /// What it is for.
    pub kind: EntryKind,
    /// The term of the owner that proposed it; always 1 in an unreplicated journal.
    pub term: u64,
    /// The node that appended it; 0 in a library.
    pub node: u64,
    /// The history of the shard that it belongs to. All entries of a shard have the same.
    pub history: u64,
    /// The newest durable entry of this shard when this one was written. It concerns the log that the entry is in, so the
    /// hash does not cover it.
    pub durable: u64,
    /// The hash of the entry before, or 0.
    pub previous_hash: u64,
    /// The proposed payload.
    pub payload: Vec<u8>,
}

impl Entry {
    /// Its hash, which is the same in every log: it covers everything but [`durable`](Self::durable). The seed is the
    /// history, so entries of another history never match.
    pub fn hash(&self) -> u64 {
        let mut bytes = Vec::new();
        self.place().encode(&self.payload, &mut bytes)
    }

    /// Reads a frame from the start of `bytes`, which may continue after it. Returns the entry, its hash and its length.
    /// Whether the frame belongs in this place is not checked.
    pub fn decode(bytes: &[u8]) -> Result<(Self, u64, usize), DecodeError> {
        let frame = Frame::decode(bytes)?;
        Ok((frame.entry(), frame.hash, frame.bytes))
    }

    pub(crate) fn place(&self) -> Place {
        Place {
            index: self.index,
            shard: self.shard,
            kind: self.kind,
            term: self.term,
            node: self.node,
            history: self.history,
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
    pub(crate) kind: EntryKind,
    pub(crate) term: u64,
    pub(crate) node: u64,
    pub(crate) history: u64,
    pub(crate) durable: u64,
    pub(crate) previous_hash: u64,
}

impl Place {
    /// Appends a frame to `bytes` and returns its hash. The frame has no seal yet: [`seal`] knows where it goes.
    pub(crate) fn encode(&self, payload: &[u8], bytes: &mut Vec<u8>) -> u64 {
        let start = bytes.len();
        bytes.reserve(HEADER_BYTES + payload.len() + TRAILER_BYTES);
        bytes.extend_from_slice(&self.index.to_le_bytes());
        bytes.extend_from_slice(&MAGIC);
        let length = u32::try_from(payload.len()).expect("a payload is below 4 GiB");
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.push(self.kind.byte());
        for number in [self.shard, self.term, self.node, self.history, self.previous_hash] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        debug_assert_eq!(bytes.len() - start, HEADER_BYTES);
        bytes.extend_from_slice(payload);
        let hash = xxh3_64_with_seed(&bytes[start..], self.history);
        bytes.extend_from_slice(&hash.to_le_bytes());
        bytes.extend_from_slice(&self.durable.to_le_bytes());
        bytes.extend_from_slice(&[0; SEAL_BYTES]);
        hash
    }
}

/// Seals a frame for its place.
pub(crate) fn seal(frame: &mut [u8], at: FilePlace) {
    let (sealed, seal) = frame.split_at_mut(frame.len() - SEAL_BYTES);
    seal.copy_from_slice(&seal_of(sealed, at).to_le_bytes());
}

/// The seal covers the hash, and so the whole frame, and what was durable.
fn seal_of(sealed: &[u8], at: FilePlace) -> u64 {
    at.hash(&sealed[sealed.len() - (TRAILER_BYTES - SEAL_BYTES)..])
}

/// A frame as read, before its payload is copied.
#[derive(Debug)]
pub(crate) struct Frame<'bytes> {
    pub(crate) place: Place,
    pub(crate) payload: &'bytes [u8],
    pub(crate) hash: u64,
    /// The length of the frame.
    pub(crate) bytes: usize,
}

impl<'bytes> Frame<'bytes> {
    /// Reads the frame that was written to this place, which is at the start of `bytes`.
    pub(crate) fn decode_at(bytes: &'bytes [u8], at: FilePlace) -> Result<Self, DecodeError> {
        let frame = Self::decode(bytes)?;
        let (sealed, seal) = bytes[..frame.bytes].split_at(frame.bytes - SEAL_BYTES);
        if seal_of(sealed, at).to_le_bytes() != seal {
            return Err(DecodeError { what: "an entry that was not written to this place" });
        }
        Ok(frame)
    }

    fn decode(bytes: &'bytes [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let index = reader.u64()?;
        if reader.raw(MAGIC.len())? != MAGIC {
            return Err(DecodeError { what: "an entry without its magic bytes" });
        }
        let length = reader.u32()? as usize;
        let kind = EntryKind::from_byte(reader.u8()?);
        let (shard, term) = (reader.u64()?, reader.u64()?);
        let (node, history) = (reader.u64()?, reader.u64()?);
        let previous_hash = reader.u64()?;
        let payload = reader.raw(length)?;
        let hash = reader.u64()?;
        let durable = reader.u64()?;
        reader.raw(SEAL_BYTES)?;
        if xxh3_64_with_seed(&bytes[..HEADER_BYTES + length], history) != hash {
            return Err(DecodeError { what: "an entry whose hash does not match its bytes" });
        }
        let place = Place { index, shard, kind, term, node, history, durable, previous_hash };
        Ok(Self { place, payload, hash, bytes: HEADER_BYTES + length + TRAILER_BYTES })
    }

    pub(crate) fn entry(&self) -> Entry {
        let Place { index, shard, kind, term, node, history, durable, previous_hash } = self.place;
        let payload = self.payload.to_vec();
        Entry { index, shard, kind, term, node, history, durable, previous_hash, payload }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: FilePlace = FilePlace { id: 5, segment: 2, offset: 88 };

    fn entry() -> Entry {
        Entry {
            index: 7,
            shard: 3,
            kind: EntryKind::COMMANDS,
            term: 1,
            node: 4,
            history: 8,
            durable: 6,
            previous_hash: 99,
            payload: b"payload".to_vec(),
        }
    }

    fn sealed(entry: &Entry, at: FilePlace) -> Vec<u8> {
        let mut bytes = Vec::new();
        entry.place().encode(&entry.payload, &mut bytes);
        seal(&mut bytes, at);
        bytes
    }

    #[test]
    fn a_frame_is_read_as_written_whatever_follows() {
        let mut bytes = sealed(&entry(), AT);
        bytes.extend_from_slice(b"next");
        assert_eq!(Entry::decode(&bytes), Ok((entry(), entry().hash(), bytes.len() - 4)));
        assert_eq!(Frame::decode_at(&bytes, AT).expect("in its place").entry(), entry());
    }

    #[test]
    fn a_kind_that_nobody_knows_is_read_as_written() {
        let unknown = Entry { kind: EntryKind::from_byte(200), ..entry() };
        assert_eq!(Frame::decode_at(&sealed(&unknown, AT), AT).expect("a frame").entry(), unknown);
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let bytes = sealed(&entry(), AT);
        for position in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[position / 8] ^= 1 << (position % 8);
            assert!(Frame::decode_at(&flipped, AT).is_err(), "bit {position}");
        }
    }

    #[test]
    fn a_frame_is_valid_in_its_place_only() {
        let bytes = sealed(&entry(), AT);
        for at in [FilePlace { id: 6, ..AT }, FilePlace { segment: 3, ..AT }, FilePlace { offset: 96, ..AT }] {
            assert!(Frame::decode_at(&bytes, at).is_err(), "{at:?}");
        }
    }

    /// Two nodes have the same hash for an entry, wherever each has it and whatever was durable there.
    #[test]
    fn the_hash_is_the_entrys_and_not_the_files() {
        let elsewhere = Entry { durable: 0, ..entry() };
        assert_eq!(elsewhere.hash(), entry().hash());
        for other in [
            Entry { history: 9, ..entry() },
            Entry { node: 5, ..entry() },
            Entry { kind: EntryKind::FENCE, ..entry() },
            Entry { term: 2, ..entry() },
            Entry { previous_hash: 98, ..entry() },
        ] {
            assert_ne!(other.hash(), entry().hash(), "{other:?}");
        }
    }

    /// The bytes of `docs/formats/journal.md`, example 3. A change here is a change of the format.
    #[test]
    fn golden_bytes() {
        let golden = "0700000000000000 5348656e74727902 07000000 01 0300000000000000 0100000000000000\
            0400000000000000 0800000000000000 6300000000000000 7061796c6f6164\
            f52ca659c1b68772 0600000000000000 8857dfcf5121f808";
        let hex: String = sealed(&entry(), AT).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, golden.replace(char::is_whitespace, ""));
    }
}
