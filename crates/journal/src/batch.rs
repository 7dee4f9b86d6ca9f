//! The bytes around entries in a segment: the segment's header and the header of each batch; `docs/formats/journal.md`
//! is the specification.
//!
//! Keeps: a header is valid in one place only, as [`FilePlace`] says. Never: trusts an entry; those have hashes of their own.

use kv::Reader;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::file_place::FilePlace;
use crate::frame::{Frame, ShardId};

const SEGMENT_MAGIC: [u8; 8] = *b"SHsegmt\x03";

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
    let hash = FilePlace { id, segment: number, offset: 0 }.hash(&header[..16]);
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
    pub(crate) fn encode(&self, at: FilePlace) -> [u8; BATCH_HEADER_BYTES] {
        let mut header = [0; BATCH_HEADER_BYTES];
        header[..8].copy_from_slice(&BATCH_MAGIC);
        header[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        header[16..24].copy_from_slice(&self.shard.to_le_bytes());
        header[24..32].copy_from_slice(&self.first_index.to_le_bytes());
        header[32..36].copy_from_slice(&self.entries.to_le_bytes());
        header[36..40].copy_from_slice(&self.body_bytes.to_le_bytes());
        header[40..48].copy_from_slice(&self.entries_hash.to_le_bytes());
        let hash = at.hash(&header[..48]);
        header[48..].copy_from_slice(&hash.to_le_bytes());
        header
    }

    /// The header at the start of `bytes`, if it is one and belongs there.
    pub(crate) fn decode(bytes: &[u8], at: FilePlace) -> Option<Self> {
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
        let hash = at.hash(&bytes[..48]);
        (reader.u64().ok()? == hash && header.entries > 0).then_some(header)
    }

    pub(crate) fn last_index(&self) -> u64 {
        self.first_index + u64::from(self.entries) - 1
    }

    /// Its length with the header.
    pub(crate) fn bytes(&self) -> u64 {
        BATCH_HEADER_BYTES as u64 + u64::from(self.body_bytes)
    }

    /// The entries in the body of this batch, or what is wrong with it. `at` is where the batch begins.
    pub(crate) fn frames<'body>(&self, body: &'body [u8], at: FilePlace) -> Result<Vec<Frame<'body>>, String> {
        let mut frames = Vec::new();
        let mut entries_hash = EntriesHash::new(at.id);
        let mut position = 0;
        for index in self.first_index..=self.last_index() {
            let wrong = |what: &str| format!("entry {index} of shard {}: {what}", self.shard);
            let frame = body.get(position..).ok_or_else(|| wrong("it is cut off"))?;
            let frame_at = at.plus(BATCH_HEADER_BYTES + position);
            let frame = Frame::decode_at(frame, frame_at).map_err(|error| wrong(error.what))?;
            if (frame.place.shard, frame.place.index) != (self.shard, index) {
                return Err(wrong("another entry is in its place"));
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

#[cfg(test)]
mod tests {
    use super::*;

    const AT: FilePlace = FilePlace { id: 5, segment: 2, offset: 24 };

    fn header() -> BatchHeader {
        BatchHeader { sequence: 12, shard: 3, first_index: 7, entries: 1, body_bytes: 96, entries_hash: 99 }
    }

    #[test]
    fn a_header_is_valid_in_its_place_only() {
        let bytes = header().encode(AT);
        assert_eq!(BatchHeader::decode(&bytes, AT), Some(header()));
        for at in [FilePlace { id: 6, ..AT }, FilePlace { segment: 3, ..AT }, FilePlace { offset: 32, ..AT }] {
            assert_eq!(BatchHeader::decode(&bytes, at), None);
        }
        assert_eq!(BatchHeader::decode(&bytes[..55], AT), None);
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let bytes = header().encode(AT);
        for position in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[position / 8] ^= 1 << (position % 8);
            assert_eq!(BatchHeader::decode(&flipped, AT), None, "bit {position}");
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The bytes of `docs/formats/journal.md`, examples 1 and 2. A change here is a change of the format.
    #[test]
    fn golden_bytes() {
        assert_eq!(hex(&segment_header(5, 2)), "53487365676d7403020000000000000051aa6c97d3ff1948");
        let mut entries_hash = EntriesHash::new(5);
        entries_hash.add(0x7287_b6c1_59a6_2cf5);
        let golden = "5348626174636802 0c00000000000000 0300000000000000 0700000000000000 01000000 60000000\
            b9770ec09756c231 2768d68ed7e070b8";
        let header = BatchHeader { entries_hash: entries_hash.finish(), ..header() };
        assert_eq!(hex(&header.encode(AT)), golden.replace(char::is_whitespace, ""));
    }
}
