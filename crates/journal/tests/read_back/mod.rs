//! The content of a small journal: the entries of a shard, and the names of the segments.

use std::fs;
use std::path::Path;

use statehouse_journal::{Entry, EntryLog, SegmentFiles};

/// Every kept entry of a shard, read in small steps; contiguous and chained (J2).
pub fn read_all(files: &SegmentFiles, shard: u64) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut next = files.first_index(shard).unwrap_or(1);
    loop {
        let read = files.read(shard, next, 1000).unwrap();
        if read.is_empty() {
            return entries;
        }
        for (entry, position) in read {
            assert_eq!(entry.index, next);
            if let Some(previous) = entries.last() {
                assert_eq!(entry.previous_hash, previous.hash());
            }
            assert_eq!((position.index, position.hash), (next, entry.hash()));
            next += 1;
            entries.push(entry);
        }
    }
}

pub fn payloads(entries: &[Entry]) -> Vec<Vec<u8>> {
    entries.iter().map(|entry| entry.payload.clone()).collect()
}

/// The names of the segments, oldest first.
pub fn file_names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory.join("segments"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
