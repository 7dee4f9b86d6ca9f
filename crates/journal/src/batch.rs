//! The bytes around entries in a segment: the segment's header and the header of each batch; `docs/formats/journal.md`
//! is the specification.
//!
//! Keeps: a header is valid in one place only, as [`FilePlace`] says. Never: trusts an entry; those have hashes of their own.

use kv::Reader;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::file_place::FilePlace;
use crate::frame::{Frame, ShardId};
use crate::shard_index::BatchPlace;

const SEGMENT_MAGIC: [u8; 8] = *b"SHsegmt\x03";

/// Begins every batch. The last byte is the format's number.
pub(crate) const BATCH_MAGIC: [u8; 8] = *b"SHbatch\x03";

/// The header of a segment; the first batch follows it.
pub(crate) const SEGMENT_HEADER_BYTES: usize = 24;

/// A part in the header of a batch.
pub(crate) const PART_BYTES: usize = 24;

/// The header of a batch before its parts, and the hash behind them.
const FIXED_BYTES: usize = 32;
const HASH_BYTES: usize = 8;

/// The header of a batch of one shard; no other is shorter.
pub(crate) const BATCH_HEADER_BYTES_MIN: usize = batch_header_bytes(1);

/// Shards in one batch. Whoever searches a damaged file for headers reads no more than this for each that may be one.
pub(crate) const PARTS_MAX: usize = 1024;

/// Batches and entries begin at multiples of this.
pub(crate) const ALIGNMENT: usize = 8;

/// The header of a batch of so many shards.
pub(crate) const fn batch_header_bytes(parts: usize) -> usize {
    FIXED_BYTES + parts * PART_BYTES + HASH_BYTES
}

/// The header of the segment with this number.
pub(crate) fn segment_header(id: u64, number: u64) -> [u8; SEGMENT_HEADER_BYTES] {
    let mut header = [0; SEGMENT_HEADER_BYTES];
    header[..8].copy_from_slice(&SEGMENT_MAGIC);
    header[8..16].copy_from_slice(&number.to_le_bytes());
    let hash = FilePlace { id, segment: number, offset: 0 }.hash(&header[..16]);
    header[16..].copy_from_slice(&hash.to_le_bytes());
    header
}

/// The header of a batch: the entries that one append made durable, of one shard or of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BatchHeader {
    /// Counts the batches of a journal, from 1.
    pub(crate) sequence: u64,
    /// In the order of their entries. No shard occurs twice.
    pub(crate) parts: Vec<BatchPart>,
    /// See [`EntriesHash`].
    pub(crate) entries_hash: u64,
}

/// What a batch has of one shard: entries that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchPart {
    pub(crate) shard: ShardId,
    pub(crate) first_index: u64,
    pub(crate) entries: u32,
    /// The bytes of the entries, each padded to [`ALIGNMENT`].
    pub(crate) bytes: u32,
}

impl BatchPart {
    pub(crate) fn last_index(&self) -> u64 {
        self.first_index + u64::from(self.entries) - 1
    }

    /// Where it is, in the batch at a place.
    pub(crate) fn place(&self, batch: FilePlace) -> BatchPlace {
        BatchPlace { segment: batch.segment, offset: batch.offset, first_index: self.first_index }
    }
}

impl BatchHeader {
    /// Writes the header to the start of a batch, which has room for it.
    pub(crate) fn encode_to(&self, batch: &mut [u8], at: FilePlace) {
        let (header, hash) = batch[..self.header_bytes()].split_at_mut(self.header_bytes() - HASH_BYTES);
        let (fixed, parts) = header.split_at_mut(FIXED_BYTES);
        let count = u32::try_from(self.parts.len()).expect("few parts");
        let body_bytes = u32::try_from(self.body_bytes()).expect("a batch is below 4 GiB");
        fixed[..8].copy_from_slice(&BATCH_MAGIC);
        fixed[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        fixed[16..20].copy_from_slice(&count.to_le_bytes());
        fixed[20..24].copy_from_slice(&body_bytes.to_le_bytes());
        fixed[24..].copy_from_slice(&self.entries_hash.to_le_bytes());
        for (bytes, part) in parts.chunks_exact_mut(PART_BYTES).zip(&self.parts) {
            bytes[..8].copy_from_slice(&part.shard.to_le_bytes());
            bytes[8..16].copy_from_slice(&part.first_index.to_le_bytes());
            bytes[16..20].copy_from_slice(&part.entries.to_le_bytes());
            bytes[20..].copy_from_slice(&part.bytes.to_le_bytes());
        }
        hash.copy_from_slice(&at.hash(header).to_le_bytes());
    }

    /// How long the header is that begins with these bytes, if one may begin there.
    pub(crate) fn length(bytes: &[u8]) -> Option<usize> {
        let mut reader = Reader::new(bytes);
        if reader.raw(BATCH_MAGIC.len()).ok()? != BATCH_MAGIC {
            return None;
        }
        reader.u64().ok()?;
        let parts = reader.u32().ok()? as usize;
        (1..=PARTS_MAX).contains(&parts).then(|| batch_header_bytes(parts))
    }

    /// The header at the start of `bytes`, if it is one and belongs there.
    pub(crate) fn decode(bytes: &[u8], at: FilePlace) -> Option<Self> {
        let bytes = bytes.get(..Self::length(bytes)?)?;
        let (header, hash) = bytes.split_at(bytes.len() - HASH_BYTES);
        if at.hash(header).to_le_bytes() != hash {
            return None;
        }
        let mut reader = Reader::new(&header[BATCH_MAGIC.len()..]);
        let sequence = reader.u64().ok()?;
        let (count, body_bytes) = (reader.u32().ok()?, reader.u32().ok()?);
        let entries_hash = reader.u64().ok()?;
        let mut parts = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let (shard, first_index) = (reader.u64().ok()?, reader.u64().ok()?);
            let (entries, bytes) = (reader.u32().ok()?, reader.u32().ok()?);
            parts.push(BatchPart { shard, first_index, entries, bytes });
        }
        let header = Self { sequence, parts, entries_hash };
        let is_whole = header.body_bytes() == u64::from(body_bytes) && header.parts.iter().all(|part| part.entries > 0);
        is_whole.then_some(header)
    }

    pub(crate) fn header_bytes(&self) -> usize {
        batch_header_bytes(self.parts.len())
    }

    /// The bytes of all entries.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.parts.iter().map(|part| u64::from(part.bytes)).sum()
    }

    /// Its length with the header.
    pub(crate) fn bytes(&self) -> u64 {
        self.header_bytes() as u64 + self.body_bytes()
    }

    /// What it has of a shard, and where that begins in the batch.
    pub(crate) fn part(&self, shard: ShardId) -> Option<(BatchPart, u64)> {
        let mut start = self.header_bytes() as u64;
        for part in &self.parts {
            if part.shard == shard {
                return Some((*part, start));
            }
            start += u64::from(part.bytes);
        }
        None
    }

    /// The entries in the body of this batch, or what is wrong with it. `at` is where the batch begins.
    pub(crate) fn frames<'body>(&self, body: &'body [u8], at: FilePlace) -> Result<Vec<Frame<'body>>, String> {
        let mut frames = Vec::new();
        let mut entries_hash = EntriesHash::new(at.id);
        let (mut position, mut part_end) = (0, 0);
        for part in &self.parts {
            for index in part.first_index..=part.last_index() {
                let wrong = |what: &str| format!("entry {index} of shard {}: {what}", part.shard);
                let frame = body.get(position..).ok_or_else(|| wrong("it is cut off"))?;
                let frame_at = at.plus(self.header_bytes() + position);
                let frame = Frame::decode_at(frame, frame_at).map_err(|error| wrong(error.what))?;
                if (frame.place.shard, frame.place.index) != (part.shard, index) {
                    return Err(wrong("another entry is in its place"));
                }
                entries_hash.add(frame.hash);
                position += aligned(frame.bytes);
                frames.push(frame);
            }
            part_end += part.bytes as usize;
            if position != part_end {
                return Err(format!("the entries of shard {} are not as long as the batch says", part.shard));
            }
        }
        if entries_hash.finish() != self.entries_hash {
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
    use crate::frame::{EntryKind, Place, seal};

    const AT: FilePlace = FilePlace { id: 5, segment: 2, offset: 24 };

    fn part(shard: ShardId) -> BatchPart {
        BatchPart { shard, first_index: 7, entries: 1, bytes: 96 }
    }

    fn header(shards: &[ShardId]) -> BatchHeader {
        BatchHeader { sequence: 12, parts: shards.iter().copied().map(part).collect(), entries_hash: 99 }
    }

    fn encoded(header: &BatchHeader) -> Vec<u8> {
        let mut bytes = vec![0; header.header_bytes()];
        header.encode_to(&mut bytes, AT);
        bytes
    }

    #[test]
    fn a_header_is_valid_in_its_place_only() {
        for header in [header(&[3]), header(&[3, 9, 1])] {
            let bytes = encoded(&header);
            assert_eq!(BatchHeader::decode(&bytes, AT), Some(header));
            for at in [FilePlace { id: 6, ..AT }, FilePlace { segment: 3, ..AT }, FilePlace { offset: 32, ..AT }] {
                assert_eq!(BatchHeader::decode(&bytes, at), None);
            }
            for length in 0..bytes.len() {
                assert_eq!(BatchHeader::decode(&bytes[..length], AT), None, "{length} bytes");
            }
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let bytes = encoded(&header(&[3, 9]));
        for position in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[position / 8] ^= 1 << (position % 8);
            assert_eq!(BatchHeader::decode(&flipped, AT), None, "bit {position}");
        }
    }

    #[test]
    fn a_part_is_found_behind_the_header_and_the_parts_before_it() {
        let header = header(&[3, 9, 1]);
        assert_eq!(header.part(9), Some((part(9), 32 + 3 * 24 + 8 + 96)));
        assert_eq!((header.part(2), header.bytes()), (None, 32 + 3 * 24 + 8 + 3 * 96));
    }

    fn entry(shard: ShardId, payload: &[u8], position: usize, body: &mut Vec<u8>) -> u64 {
        let kind = EntryKind::COMMANDS;
        let place = Place { index: 7, shard, kind, term: 1, node: 4, history: 8, durable: 6, previous_hash: 99 };
        let start = body.len();
        let hash = place.encode(payload, body);
        seal(&mut body[start..], AT.plus(batch_header_bytes(2) + position));
        body.resize(aligned(body.len()), 0);
        hash
    }

    #[test]
    fn the_entries_of_a_batch_are_as_its_header_says() {
        let mut body = Vec::new();
        let hashes = [entry(3, b"payload", 0, &mut body), entry(9, b"longer payload", 96, &mut body)];
        let mut entries_hash = EntriesHash::new(AT.id);
        hashes.into_iter().for_each(|hash| entries_hash.add(hash));
        let entries_hash = entries_hash.finish();
        let header = |bytes: [u32; 2], shards: [ShardId; 2], entries_hash| {
            let part = |number: usize| BatchPart { bytes: bytes[number], ..part(shards[number]) };
            BatchHeader { sequence: 12, parts: vec![part(0), part(1)], entries_hash }
        };
        let frames = |header: BatchHeader| header.frames(&body, AT).map(|frames| frames.len());
        assert_eq!(frames(header([96, 104], [3, 9], entries_hash)), Ok(2));
        for wrong in [
            header([96, 112], [3, 9], entries_hash),
            header([88, 112], [3, 9], entries_hash),
            header([96, 104], [9, 3], entries_hash),
            header([96, 104], [3, 9], entries_hash + 1),
        ] {
            assert!(frames(wrong.clone()).is_err(), "{wrong:?}");
        }
        assert!(header([96, 104], [3, 9], entries_hash).frames(&body[..150], AT).is_err());
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
        let golden = "5348626174636803 0c00000000000000 01000000 60000000 b9770ec09756c231\
            0300000000000000 0700000000000000 01000000 60000000 784a3900642d5e35";
        let header = BatchHeader { entries_hash: entries_hash.finish(), ..header(&[3]) };
        assert_eq!(hex(&encoded(&header)), golden.replace(char::is_whitespace, ""));
    }
}
