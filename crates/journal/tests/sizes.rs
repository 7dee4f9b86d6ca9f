//! How large the journal is: its files, the room that is reserved in them, and the entries that are kept.

#![allow(clippy::unwrap_used)]

mod small_journal;

use std::fs;
use std::path::Path;

use statehouse_journal::{EntryLog, SegmentFiles, SegmentOptions};

use small_journal::{create, open};

/// The lengths of the files in a folder, in the order of their names.
fn lengths(folder: &Path) -> Vec<u64> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let metadata = files.iter().map(|file| fs::metadata(file).unwrap());
    metadata.filter(fs::Metadata::is_file).map(|metadata| metadata.len()).collect()
}

fn segment_lengths(directory: &Path) -> Vec<u64> {
    lengths(&directory.join("segments"))
}

fn bytes_on_disk(directory: &Path) -> u64 {
    lengths(directory).into_iter().chain(segment_lengths(directory)).sum()
}

#[test]
fn a_new_journal_is_small_and_its_segments_grow() {
    let directory = tempfile::tempdir().unwrap();
    let options = SegmentOptions::default();
    let files = SegmentFiles::create(directory.path(), 5, &options).unwrap();
    let lengths = || segment_lengths(directory.path()).into_iter().map(|bytes| bytes >> 20).collect::<Vec<_>>();
    assert_eq!(lengths(), [1, 2], "MiB");
    let batch = vec![7; 1_000_000];
    for _ in 0..110 {
        files.append(1, 1, &[&batch]).unwrap();
        files.upkeep().unwrap();
    }
    assert_eq!(lengths(), [1, 2, 4, 8, 16, 16, 16, 16, 16, 16, 16]);
    let last = files.last_index(1).unwrap();
    files.cut(1, last).unwrap();
    assert_eq!(lengths(), [16; 5], "small ones are not used again, large ones up to a limit are");
    drop(files);
    SegmentFiles::open(directory.path(), 5, &options).unwrap().verify().unwrap();
    assert_eq!(lengths(), [16; 5]);
}

/// The files as the file system counts them, and the kept entries to the byte.
#[test]
fn sizes_are_exact() {
    let directory = tempfile::tempdir().unwrap();
    let on_disk = || bytes_on_disk(directory.path());
    let mut files = create(directory.path());
    let batch_bytes = |payload: u64| 64 + (85 + payload).next_multiple_of(8);
    assert_eq!((files.bytes(), files.kept_bytes()), (on_disk(), 0));
    let payload = |index: u64| vec![7; usize::try_from(index * 37 % 900).unwrap()];
    let mut kept_from = 1;
    for index in 1..=300 {
        files.append(1, 1, &[&payload(index)]).unwrap();
        files.upkeep().unwrap();
        if index % 70 == 0 {
            kept_from = index - index % 3 * 20;
            files.cut(1, kept_from).unwrap();
        }
        if index % 110 == 0 {
            drop(files);
            files = open(directory.path());
        }
        assert_eq!(files.bytes(), on_disk(), "after entry {index}");
        let entries = (kept_from..=index).map(|index| batch_bytes(payload(index).len() as u64)).sum::<u64>();
        let rolls = files.kept_bytes().saturating_sub(entries) / 24;
        let kept = if kept_from == index { 0 } else { entries + rolls * 24 };
        assert!(files.kept_bytes() == kept && rolls < 20, "{} after entry {index}", files.kept_bytes());
    }
    files.cut(1, 300).unwrap();
    assert_eq!((files.bytes(), files.kept_bytes()), (on_disk(), 0), "the last entry alone counts for nothing");
    // A second shard that keeps two entries keeps everything after them.
    files.append(2, 1, &[b"one", b"two"]).unwrap();
    let both = 64 + 88 + 88;
    assert_eq!(files.kept_bytes(), both);
    files.append(1, 1, &[b"three"]).unwrap();
    assert!(files.kept_bytes() >= both + 64 + 96, "the last entry of shard 1 can be given up again");
}

/// Power loss may leave the names of new segments without their length.
#[test]
fn segments_without_space_get_it_before_they_are_used() {
    let directory = tempfile::tempdir().unwrap();
    drop(create(directory.path()));
    for file in fs::read_dir(directory.path().join("segments")).unwrap() {
        fs::File::options().write(true).open(file.unwrap().path()).unwrap().set_len(0).unwrap();
    }
    let files = open(directory.path());
    for index in 1..=100 {
        assert_eq!(files.append(1, 1, &[&[7; 1000]]), Ok(index));
        if index > 50 {
            files.upkeep().unwrap();
        }
    }
    assert_eq!(files.bytes(), bytes_on_disk(directory.path()));
    let lengths = segment_lengths(directory.path());
    assert!(lengths.iter().all(|length| *length == 16 << 10), "{lengths:?}");
    drop(files);
    assert_eq!(open(directory.path()).read(1, 1, usize::MAX).unwrap().len(), 100);
}

/// For the progress of a replay.
#[test]
fn what_is_left_to_read_is_known_to_a_place() {
    const PLACE_BYTES: u64 = 256 << 10;
    let directory = tempfile::tempdir().unwrap();
    let files = create(directory.path());
    assert_eq!(files.bytes_from(1, 1), None, "of a shard that is not there");
    let payload = vec![7; 10_000];
    for _ in 0..200 {
        files.append(1, 1, &[&payload]).unwrap();
        files.upkeep().unwrap();
    }
    drop(files);
    let files = open(directory.path());
    let left: Vec<u64> = (1..=201).map(|index| files.bytes_from(1, index).unwrap()).collect();
    assert_eq!((left[0], left[200]), (files.kept_bytes(), 0));
    assert!(left.is_sorted_by(|one, next| one >= next), "{left:?}");
    for (index, left) in left.iter().enumerate() {
        let at_least = (200 - index as u64) * 10_000;
        assert!(*left >= at_least && *left < at_least * 11 / 10 + 2 * PLACE_BYTES, "{index}: {left}, {at_least}");
    }
}
