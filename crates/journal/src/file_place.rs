//! A place in the files of a journal. What is sealed for one place is valid there only: neither what a file held before it
//! was used again, nor a copy inside a payload, nor the file of another journal is taken for it.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A place in the files of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilePlace {
    /// The journal's id.
    pub(crate) id: u64,
    /// The number of the segment. No number is used twice.
    pub(crate) segment: u64,
    /// The offset in it.
    pub(crate) offset: u64,
}

impl FilePlace {
    /// So many bytes further on.
    pub(crate) fn plus(self, bytes: usize) -> Self {
        Self { offset: self.offset + bytes as u64, ..self }
    }

    /// The hash of bytes that are valid here only.
    pub(crate) fn hash(self, bytes: &[u8]) -> u64 {
        let mut place = [0; 16];
        place[..8].copy_from_slice(&self.segment.to_le_bytes());
        place[8..].copy_from_slice(&self.offset.to_le_bytes());
        xxh3_64_with_seed(bytes, xxh3_64_with_seed(&place, self.id))
    }
}
