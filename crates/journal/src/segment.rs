//! One file of entries: walking its batches and reading them.
//!
//! Keeps: reads of a segment go through an [`Arc`] of its file, so that a file in use is never recycled under a reader.
//! Never: decides what damage means; see `tail_scan` and `segments/open.rs`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::batch::{BATCH_HEADER_BYTES_MIN, BatchHeader, SEGMENT_HEADER_BYTES};
use crate::disk::DiskFile;
use crate::error::JournalError;
use crate::file_place::FilePlace;

/// Bytes read at a time while batches are walked: few where batches are large, as only their headers are needed, and
/// many where they are small.
const WINDOW_BYTES_MIN: usize = 4 << 10;
const WINDOW_BYTES_MAX: usize = 256 << 10;

/// The digits of a segment's name.
const NAME_DIGITS: usize = 16;

/// A file of entries.
pub(crate) struct Segment<F> {
    pub(crate) number: u64,
    pub(crate) file: Arc<F>,
    /// Where the last batch ends.
    pub(crate) end: u64,
    /// The length of the file: batches up to here need no more space.
    pub(crate) length: u64,
    /// The bytes of all kept segments before it, so that what lies between two batches can be counted.
    pub(crate) base: u64,
}

// A derived one would ask for files that can be cloned.
impl<F> Clone for Segment<F> {
    fn clone(&self) -> Self {
        Self { number: self.number, file: self.file.clone(), end: self.end, length: self.length, base: self.base }
    }
}

impl<F: DiskFile> Segment<F> {
    /// A segment without batches.
    pub(crate) fn empty(number: u64, file: F, length: u64) -> Self {
        Self { number, file: Arc::new(file), end: SEGMENT_HEADER_BYTES as u64, length, base: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.end == SEGMENT_HEADER_BYTES as u64
    }

    /// The header of the batch at `offset`, if there is one.
    pub(crate) fn header_at(&self, window: &mut Window, offset: u64, id: u64) -> io::Result<Option<BatchHeader>> {
        let Some(length) = BatchHeader::length(window.get(self, offset, BATCH_HEADER_BYTES_MIN)?) else {
            return Ok(None);
        };
        let bytes = window.get(self, offset, length)?;
        Ok(BatchHeader::decode(bytes, self.place(id, offset)))
    }

    /// A place in it, in the journal with this id.
    pub(crate) fn place(&self, id: u64, offset: u64) -> FilePlace {
        FilePlace { id, segment: self.number, offset }
    }

    /// Reads all entries of the batch at `offset` into `body`; fewer bytes if the file ends before.
    pub(crate) fn read_body(&self, offset: u64, header: &BatchHeader, body: &mut Vec<u8>) -> io::Result<()> {
        self.read(offset + header.header_bytes() as u64, header.body_bytes(), body)
    }

    /// Reads so many bytes; fewer if the file ends before.
    pub(crate) fn read(&self, start: u64, length: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
        // A batch that ends behind the file was cut off, however long its header says it is.
        let length = length.min(self.length.saturating_sub(start));
        bytes.resize(usize::try_from(length).expect("a batch fits into memory"), 0);
        let read = self.file.read_at(bytes, start)?;
        bytes.truncate(read);
        Ok(())
    }
}

/// A part of a file in memory.
#[derive(Default)]
pub(crate) struct Window {
    bytes: Vec<u8>,
    start: u64,
    /// How many of the bytes were read.
    filled: usize,
    /// How many the last read asked for.
    asked: usize,
}

impl Window {
    /// Up to `length` bytes at `offset`; fewer at the end of the file. One window is for one segment.
    pub(crate) fn get<F: DiskFile>(&mut self, segment: &Segment<F>, offset: u64, length: usize) -> io::Result<&[u8]> {
        let end = self.start + self.filled as u64;
        let covered = offset >= self.start && offset + length as u64 <= end;
        if !covered {
            let is_near = self.filled > 0 && offset >= self.start && offset < end + self.asked as u64;
            let asked = if is_near { (self.asked * 2).min(WINDOW_BYTES_MAX) } else { WINDOW_BYTES_MIN };
            let left = usize::try_from(segment.length.saturating_sub(offset)).unwrap_or(usize::MAX);
            self.asked = asked.max(length);
            let wanted = left.min(self.asked);
            if self.bytes.len() < wanted {
                self.bytes.resize(wanted, 0);
            }
            self.start = offset;
            self.filled = segment.file.read_at(&mut self.bytes[..wanted], offset)?;
        }
        let position = usize::try_from(offset - self.start).expect("within the window");
        let end = (position + length).min(self.filled);
        Ok(self.bytes[..self.filled].get(position..end).unwrap_or_default())
    }
}

/// The path of a segment.
pub(crate) fn path_of(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:0NAME_DIGITS$}"))
}

/// The number of the segment with this name, if it is one.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let digits = name.len() == NAME_DIGITS && name.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| name.parse().ok()).flatten()
}

pub(crate) fn cannot_read(error: io::Error) -> JournalError {
    JournalError::io("read a segment", error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, RealDisk};

    #[test]
    fn a_window_shows_the_file_wherever_it_is_looked_at() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = RealDisk.create(&directory.path().join("segment")).expect("created");
        let content: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
        DiskFile::write_at(&file, &content, 0).expect("written");
        let segment = Segment::empty(1, file, content.len() as u64);
        let mut random = testkit::random::Random::new(5);
        let mut window = Window::default();
        let mut offset = 0;
        for _ in 0..20_000 {
            let length = 1 + usize::try_from(random.below(80)).expect("small");
            let start = usize::try_from(offset).expect("small").min(content.len());
            let end = (start + length).min(content.len());
            assert_eq!(
                window.get(&segment, offset, length).expect("read"),
                &content[start..end],
                "{length} at {offset}"
            );
            offset = match random.below(20) {
                0 => random.below(content.len() as u64 + 100),
                _ => offset + random.below(3_000),
            };
        }
    }

    #[test]
    fn a_name_is_a_number_of_sixteen_digits() {
        assert_eq!(path_of(Path::new("d"), 7), Path::new("d/0000000000000007"));
        assert_eq!(number_of("0000000000000007"), Some(7));
        for other in ["7", "+000000000000007", "00000000000000007", "LOCK", "000000000000000x"] {
            assert_eq!(number_of(other), None, "{other}");
        }
    }
}
