//! What each byte of a journal's files is, as `docs/formats/journal.md` says.
//!
//! Reads the files apart from the journal's own code, so that a flip can be aimed at a field and
//! judged by what the byte was.

use std::collections::BTreeMap;
use std::ops::Range;

use journal::{Entry, ShardId};

/// The files of a journal: path below its directory, and bytes.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

const FILE_HEADER_BYTES: usize = 24;
/// A batch's header without its parts, and one part.
const BATCH_HEADER_BYTES: usize = 40;
const BATCH_PART_BYTES: usize = 24;
const BATCH_MAGIC: &[u8] = b"SHbatch\x03";
const FRAME_HEADER_BYTES: usize = 61;
/// The hash, what was durable, and the seal of both.
const FRAME_TRAILER_BYTES: usize = 24;

/// What a range of bytes is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    FileHeader,
    BatchHeader,
    EntryHeader,
    EntryPayload,
    EntryTrailer,
    /// Up to seven zeros behind an entry.
    Padding,
    /// Behind the last batch: zeros, or what the file held before it was used again.
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

/// A batch: the entries that one sync made durable.
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
    pub(crate) fn of(files: &Files) -> Self {
        let mut layout = Self { regions: Vec::new(), batches: Vec::new(), marks: BTreeMap::new() };
        for (path, bytes) in files {
            if path.starts_with("segments/") {
                layout.add_file(path, bytes);
            }
        }
        // The names of segments sort by age.
        if let Some(last) = layout.batches.last_mut() {
            last.is_last = true;
        }
        layout.add_watermarks(files);
        layout
    }

    fn add(&mut self, path: &str, range: Range<usize>, kind: Kind, entry: Option<(ShardId, u64)>) {
        let in_batch = !matches!(
            kind,
            Kind::FileHeader | Kind::Padding | Kind::Reserved | Kind::WatermarkNewer | Kind::WatermarkOlder
        );
        let batch = in_batch.then_some(self.batches.len());
        if !range.is_empty() {
            self.regions.push(Region { path: path.to_owned(), range, kind, batch, entry });
        }
    }

    fn add_file(&mut self, path: &str, bytes: &[u8]) {
        let number_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let name = path.rsplit('/').next().unwrap_or_default();
        // A file that was not used yet under this name has the header of its earlier use, or none.
        if Ok(number_at(8)) != name.parse() {
            self.add(path, 0..bytes.len(), Kind::Reserved, None);
            return;
        }
        let mut offset = FILE_HEADER_BYTES;
        self.add(path, 0..offset, Kind::FileHeader, None);
        let mut sequence = None;
        while bytes[offset..].starts_with(BATCH_MAGIC) {
            // What follows the last batch may be an older one.
            let next = number_at(offset + 8);
            if sequence.is_some_and(|sequence| sequence + 1 != next) {
                break;
            }
            sequence = Some(next);
            let short_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
            let (parts, length) = (short_at(offset + 16), short_at(offset + 20));
            let body = offset + BATCH_HEADER_BYTES + parts * BATCH_PART_BYTES;
            let end = body + length;
            self.add(path, offset..body, Kind::BatchHeader, None);
            let entries = self.add_entries(path, bytes, body..end);
            self.batches.push(Batch { entries, is_last: false });
            offset = end;
        }
        self.add(path, offset..bytes.len(), Kind::Reserved, None);
    }

    fn add_entries(&mut self, path: &str, bytes: &[u8], body: Range<usize>) -> Vec<(ShardId, u64)> {
        let mut found = Vec::new();
        let mut frame = body.start;
        while frame < body.end {
            let (entry, _, length) = Entry::decode(&bytes[frame..]).expect("an undamaged entry");
            let id = (entry.shard, entry.index);
            let (payload, trailer, end) =
                (frame + FRAME_HEADER_BYTES, frame + length - FRAME_TRAILER_BYTES, frame + length);
            self.add(path, frame..payload, Kind::EntryHeader, Some(id));
            self.add(path, payload..trailer, Kind::EntryPayload, Some(id));
            self.add(path, trailer..end, Kind::EntryTrailer, Some(id));
            frame += length.next_multiple_of(8);
            self.add(path, end..frame, Kind::Padding, None);
            found.push(id);
        }
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
        let pair = |position: usize| (number(newer, 28 + 24 * position), number(newer, 44 + 24 * position));
        self.marks = (0..count as usize).map(pair).collect();
    }
}
