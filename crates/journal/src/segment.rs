//! One file of entries: walking its batches and reading them.
//!
//! Keeps: reads of a segment go through an [`Arc`] of its file, so that a file in use is never recycled under a reader.
//! Never: decides what damage means; see `tail_scan` and `segments/open.rs`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::batch::{BATCH_HEADER_BYTES, BatchHeader, SEGMENT_HEADER_BYTES};
use crate::disk::DiskFile;
use crate::error::JournalError;

/// Bytes read at a time while batches are walked.
const WINDOW_BYTES: usize = 256 << 10;

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
}

// A derived one would ask for files that can be cloned.
impl<F> Clone for Segment<F> {
    fn clone(&self) -> Self {
        Self { number: self.number, file: self.file.clone(), end: self.end, length: self.length }
    }
}

impl<F: DiskFile> Segment<F> {
    /// A segment without batches.
    pub(crate) fn empty(number: u64, file: F, length: u64) -> Self {
        Self { number, file: Arc::new(file), end: SEGMENT_HEADER_BYTES as u64, length }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.end == SEGMENT_HEADER_BYTES as u64
    }

    /// The header of the batch at `offset`, if there is one.
    pub(crate) fn header_at(&self, window: &mut Window, offset: u64, id: u64) -> io::Result<Option<BatchHeader>> {
        let bytes = window.get(self, offset, BATCH_HEADER_BYTES)?;
        Ok(BatchHeader::decode(bytes, id, self.number, offset))
    }

    /// Reads the entries of a batch into `body`; fewer bytes if the file ends before.
    pub(crate) fn read_body(&self, offset: u64, header: &BatchHeader, body: &mut Vec<u8>) -> io::Result<()> {
        // A batch that ends behind the file was cut off, however long its header says it is.
        let start = offset + BATCH_HEADER_BYTES as u64;
        let length = u64::from(header.body_bytes).min(self.length.saturating_sub(start));
        body.resize(usize::try_from(length).expect("a batch fits into memory"), 0);
        let read = self.file.read_at(body, start)?;
        body.truncate(read);
        Ok(())
    }
}

/// A part of a file in memory.
#[derive(Default)]
pub(crate) struct Window {
    bytes: Vec<u8>,
    start: u64,
}

impl Window {
    /// Up to `length` bytes at `offset`; fewer at the end of the file. One window is for one segment.
    pub(crate) fn get<F: DiskFile>(&mut self, segment: &Segment<F>, offset: u64, length: usize) -> io::Result<&[u8]> {
        let covered = offset >= self.start && offset + length as u64 <= self.start + self.bytes.len() as u64;
        if !covered {
            let left = usize::try_from(segment.length.saturating_sub(offset)).unwrap_or(usize::MAX);
            self.bytes = vec![0; left.min(WINDOW_BYTES.max(length))];
            self.start = offset;
            let read = segment.file.read_at(&mut self.bytes, offset)?;
            self.bytes.truncate(read);
        }
        let position = usize::try_from(offset - self.start).expect("within the window");
        let end = (position + length).min(self.bytes.len());
        Ok(self.bytes.get(position..end).unwrap_or_default())
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

    #[test]
    fn a_name_is_a_number_of_sixteen_digits() {
        assert_eq!(path_of(Path::new("d"), 7), Path::new("d/0000000000000007"));
        assert_eq!(number_of("0000000000000007"), Some(7));
        for other in ["7", "+000000000000007", "00000000000000007", "LOCK", "000000000000000x"] {
            assert_eq!(number_of(other), None, "{other}");
        }
    }
}
