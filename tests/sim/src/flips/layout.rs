//! What each byte of a journal's files is, as `docs/formats/journal.md` says.
//!
//! Reads the files apart from the journal's own code, so that a flip can be aimed at a field and
//! judged by what the byte was.

use std::collections::BTreeMap;
use std::ops::Range;

use journal::{Entry, ShardId};

/// The files of a journal: path below its directory, and bytes.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

const FILE_HEADER_BYTES: usize = 69;
const BATCH_HEADER_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 4;
const FRAME_HEADER_BYTES: usize = 52;
const FRAME_HASH_BYTES: usize = 8;

/// What a range of bytes is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    FileHeader,
    BatchHeader,
    EntryWrapper,
    EntryHeader,
    EntryPayload,
    EntryHash,
    BatchChecksum,
    BatchFooter,
    /// Zeros reserved behind the last batch.
    Reserved,
    WatermarkNewer,
    WatermarkOlder,
}

pub(crate) struct Region {
    pub(crate) path: String,
    pub(crate) range: Range<usize>,
    pub(crate) kind: Kind,
    /// Which batch it is part of.
    pub(crate) batch: Option<usize>,
    /// Which entry it is part of.
    pub(crate) entry: Option<(ShardId, u64)>,
}

/// A batch: the entries that one sync made durable, or none if it gave entries up.
pub(crate) struct Batch {
    pub(crate) entries: Vec<(ShardId, u64)>,
    /// Whether nothing was written behind it.
    pub(crate) is_last: bool,
}

pub(crate) struct Layout {
    pub(crate) regions: Vec<Region>,
    pub(crate) batches: Vec<Batch>,
    /// The newest entry of each shard that the watermark calls durable.
    pub(crate) marks: BTreeMap<ShardId, u64>,
}

impl Layout {
    pub(crate) fn of(files: &Files, seed: u64) -> Self {
        let mut layout = Self { regions: Vec::new(), batches: Vec::new(), marks: BTreeMap::new() };
        for (path, bytes) in files {
            if path.starts_with("entries/") {
                layout.add_file(path, bytes, seed);
            }
        }
        // Only appended files hold batches, and their names sort by age.
        if let Some(last) = layout.batches.last_mut() {
            last.is_last = true;
        }
        layout.add_watermarks(files);
        layout
    }

    fn add(&mut self, path: &str, range: Range<usize>, kind: Kind, entry: Option<(ShardId, u64)>) {
        let in_batch = !matches!(kind, Kind::FileHeader | Kind::Reserved | Kind::WatermarkNewer | Kind::WatermarkOlder);
        let batch = in_batch.then_some(self.batches.len());
        if !range.is_empty() {
            self.regions.push(Region { path: path.to_owned(), range, kind, batch, entry });
        }
    }

    fn add_file(&mut self, path: &str, bytes: &[u8], seed: u64) {
        let mut offset = FILE_HEADER_BYTES.min(bytes.len());
        self.add(path, 0..offset, Kind::FileHeader, None);
        while let Some(header) = bytes.get(offset..offset + BATCH_HEADER_BYTES) {
            let number = |part: &[u8]| u64::from_be_bytes(part.try_into().expect("eight bytes"));
            let length = usize::try_from(number(&header[..8]) >> 8).expect("a length");
            let footer = usize::try_from(number(&header[8..])).expect("an offset");
            if length == 0 {
                break;
            }
            self.add(path, offset..offset + BATCH_HEADER_BYTES, Kind::BatchHeader, None);
            let entries = self.add_entries(path, bytes, offset + BATCH_HEADER_BYTES..offset + footer, seed);
            self.add(path, offset + footer..offset + length, Kind::BatchFooter, None);
            self.batches.push(Batch { entries, is_last: false });
            offset += length;
        }
        self.add(path, offset..bytes.len(), Kind::Reserved, None);
    }

    fn add_entries(&mut self, path: &str, bytes: &[u8], block: Range<usize>, seed: u64) -> Vec<(ShardId, u64)> {
        let mut found = Vec::new();
        if block.is_empty() {
            return found;
        }
        let mut position = block.start;
        while position < block.end - CHECKSUM_BYTES {
            // A tag, then a length in groups of seven bits.
            let length_bytes = 1 + bytes[position + 1..].iter().take_while(|byte| **byte >= 0x80).count();
            let frame = position + 1 + length_bytes;
            let (entry, _, length) = Entry::decode(&bytes[frame..], seed).expect("an undamaged entry");
            let id = (entry.shard, entry.index);
            let (payload, hash) = (frame + FRAME_HEADER_BYTES, frame + length - FRAME_HASH_BYTES);
            self.add(path, position..frame, Kind::EntryWrapper, Some(id));
            self.add(path, frame..payload, Kind::EntryHeader, Some(id));
            self.add(path, payload..hash, Kind::EntryPayload, Some(id));
            self.add(path, hash..frame + length, Kind::EntryHash, Some(id));
            found.push(id);
            position = frame + length;
        }
        self.add(path, position..block.end, Kind::BatchChecksum, None);
        found
    }

    fn add_watermarks(&mut self, files: &Files) {
        let number =
            |path: &str, at: usize| u64::from_le_bytes(files[path][at..at + 8].try_into().expect("eight bytes"));
        let mut paths = ["watermark.a", "watermark.b"];
        paths.sort_by_key(|path| number(path, 8));
        for (path, kind) in paths.into_iter().zip([Kind::WatermarkOlder, Kind::WatermarkNewer]) {
            self.add(path, 0..files[path].len(), kind, None);
        }
        let newer = paths[1];
        let count = u32::from_le_bytes(files[newer][24..28].try_into().expect("four bytes"));
        let pair = |position: usize| (number(newer, 28 + 16 * position), number(newer, 36 + 16 * position));
        self.marks = (0..count as usize).map(pair).collect();
    }
}
