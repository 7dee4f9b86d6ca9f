//! The bytes around entries in a segment: the segment's header and the header of each batch; `docs/formats/journal.md`
//! is the specification.
//!
//! Keeps: a header is valid in one place only. Its hash depends on the journal, on the number of the segment and on the
//! offset in it, so neither the remains of an earlier use of the file nor a copy of a segment inside a payload is ever
//! taken for a header. Never: trusts an entry; those have hashes of their own.

use kv::Reader;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::frame::{Frame, ShardId};

const SEGMENT_MAGIC: [u8; 8] = *b"SHsegmt\x02";

/// Begins every batch. The last byte is the format's number.
pub(crate) const BATCH_MAGIC: [u8; 8] = *b"SHbatch\x02";

/// The header of a segment; the first batch follows it.
pub(crate) const SEGMENT_HEADER_BYTES: usize = 24;

pub(crate) const BATCH_HEADER_BYTES: usize = 56;

/// Batches and entries begin at multiples of this.
pub(crate) const ALIGNMENT: usize = 8;

/// The header of the segment with this number.
pub(crate) fn segment_header(id: u64, number: u64) -> [u8; SEGMENT_HEADER_BYTES] {
    let mut header = [0; SEGMENT_HEADER_BYTES];
    header[..8].copy_from_slice(&SEGMENT_MAGIC);
    header[8..16].copy_from_slice(&number.to_le_bytes());
    let hash = xxh3_64_with_seed(&header[..16], seed_at(id, number, 0));
    header[16..].copy_from_slice(&hash.to_le_bytes());
    header
}

/// The header of a batch: the entries that one append made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchHeader {
    /// Counts the batches of a journal, from 1.
    pub(crate) sequence: u64,
    pub(crate) shard: ShardId,
    pub(crate) first_index: u64,
    pub(crate) entries: u32,
    /// The bytes of the entries, each padded to [`ALIGNMENT`].
    pub(crate) body_bytes: u32,
    /// See [`EntriesHash`].
    pub(crate) entries_hash: u64,
}

impl BatchHeader {
    pub(crate) fn encode(&self, id: u64, segment: u64, offset: u64) -> [u8; BATCH_HEADER_BYTES] {
        let mut header = [0; BATCH_HEADER_BYTES];
        header[..8].copy_from_slice(&BATCH_MAGIC);
        header[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        header[16..24].copy_from_slice(&self.shard.to_le_bytes());
        header[24..32].copy_from_slice(&self.first_index.to_le_bytes());
        header[32..36].copy_from_slice(&self.entries.to_le_bytes());
        header[36..40].copy_from_slice(&self.body_bytes.to_le_bytes());
        header[40..48].copy_from_slice(&self.entries_hash.to_le_bytes());
        let hash = xxh3_64_with_seed(&header[..48], seed_at(id, segment, offset));
        header[48..].copy_from_slice(&hash.to_le_bytes());
        header
    }

    /// The header at the start of `bytes`, if it is one and belongs there.
    pub(crate) fn decode(bytes: &[u8], id: u64, segment: u64, offset: u64) -> Option<Self> {
        let bytes = bytes.first_chunk::<BATCH_HEADER_BYTES>()?;
        let mut reader = Reader::new(bytes);
        if reader.raw(BATCH_MAGIC.len()).ok()? != BATCH_MAGIC {
            return None;
        }
        let header = Self {
            sequence: reader.u64().ok()?,
            shard: reader.u64().ok()?,
            first_index: reader.u64().ok()?,
            entries: reader.u32().ok()?,
            body_bytes: reader.u32().ok()?,
            entries_hash: reader.u64().ok()?,
        };
        let hash = xxh3_64_with_seed(&bytes[..48], seed_at(id, segment, offset));
        (reader.u64().ok()? == hash && header.entries > 0).then_some(header)
    }

    pub(crate) fn last_index(&self) -> u64 {
        self.first_index + u64::from(self.entries) - 1
    }

    /// Its length with the header.
    pub(crate) fn bytes(&self) -> u64 {
        BATCH_HEADER_BYTES as u64 + u64::from(self.body_bytes)
    }

    /// The entries in the body of this batch, or what is wrong with it.
    pub(crate) fn frames<'body>(&self, body: &'body [u8], id: u64) -> Result<Vec<Frame<'body>>, String> {
        let mut frames = Vec::new();
        let mut entries_hash = EntriesHash::new(id);
        let mut position = 0;
        for index in self.first_index..=self.last_index() {
            let at = |what: &str| format!("entry {index} of shard {}: {what}", self.shard);
            let frame = body.get(position..).ok_or_else(|| at("it is cut off"))?;
            let frame = Frame::decode(frame, id).map_err(|error| at(error.what))?;
            if (frame.place.shard, frame.place.index) != (self.shard, index) {
                return Err(at("another entry is in its place"));
            }
            entries_hash.add(frame.hash);
            position += aligned(frame.bytes);
            frames.push(frame);
        }
        if entries_hash.finish() != self.entries_hash || position != self.body_bytes as usize {
            return Err("other entries are in the place of a batch".into());
        }
        Ok(frames)
    }
}

/// A hash over the hashes of a batch's entries: binds the entries to the header without hashing their bytes again.
pub(crate) struct EntriesHash(u64);

impl EntriesHash {
    pub(crate) fn new(id: u64) -> Self {
        Self(id)
    }

    pub(crate) fn add(&mut self, entry_hash: u64) {
        self.0 = xxh3_64_with_seed(&entry_hash.to_le_bytes(), self.0);
    }

    pub(crate) fn finish(&self) -> u64 {
        self.0
    }
}

/// The next multiple of [`ALIGNMENT`].
pub(crate) fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

fn seed_at(id: u64, segment: u64, offset: u64) -> u64 {
    let mut place = [0; 16];
    place[..8].copy_from_slice(&segment.to_le_bytes());
    place[8..].copy_from_slice(&offset.to_le_bytes());
    xxh3_64_with_seed(&place, id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> BatchHeader {
        BatchHeader { sequence: 12, shard: 3, first_index: 7, entries: 1, body_bytes: 72, entries_hash: 99 }
    }

    #[test]
    fn a_header_is_valid_in_its_place_only() {
        let bytes = header().encode(5, 2, 24);
        assert_eq!(BatchHeader::decode(&bytes, 5, 2, 24), Some(header()));
        for (id, segment, offset) in [(6, 2, 24), (5, 3, 24), (5, 2, 32)] {
            assert_eq!(BatchHeader::decode(&bytes, id, segment, offset), None);
        }
        assert_eq!(BatchHeader::decode(&bytes[..55], 5, 2, 24), None);
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let bytes = header().encode(5, 2, 24);
        for position in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[position / 8] ^= 1 << (position % 8);
            assert_eq!(BatchHeader::decode(&flipped, 5, 2, 24), None, "bit {position}");
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The bytes of `docs/formats/journal.md`, examples 1 and 2. A change here is a change of the format.
    #[test]
    fn golden_bytes() {
        assert_eq!(hex(&segment_header(5, 2)), "53487365676d74020200000000000000065962001d0a4ece");
        let mut entries_hash = EntriesHash::new(5);
        entries_hash.add(0x3314_21cd_44e2_1e09);
        let golden = "5348626174636802 0c00000000000000 0300000000000000 0700000000000000 01000000 48000000\
            66e90c85bccef15d 8b93196cae35fdf7";
        let header = BatchHeader { entries_hash: entries_hash.finish(), ..header() };
        assert_eq!(hex(&header.encode(5, 2, 24)), golden.replace(char::is_whitespace, ""));
    }
}
