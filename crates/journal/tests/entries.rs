//! What `SegmentFiles` keeps across a close and a reopen.

#![allow(clippy::unwrap_used)]

mod file_contents;
mod read_back;
mod small_journal;

use std::fs;

use statehouse_journal::{EntryLog, JournalError, Position, SegmentFiles, Verified};
use testkit::random::Random;

use file_contents::contents;
use read_back::{file_names, payloads, read_all};
use small_journal::{ID, create, open, small};

#[test]
fn entries_survive_close_and_reopen_in_order_and_chained() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::new(1);
    let mut written: Vec<Vec<Vec<u8>>> = vec![Vec::new(); 3];
    let mut files = create(directory.path());
    for round in 0..5 {
        for _ in 0..40 {
            let shard = random.index(written.len());
            let count = 1 + random.index(3);
            let batch: Vec<Vec<u8>> = (0..count)
                .map(|_| {
                    let length = random.index(900);
                    random.bytes(length)
                })
                .collect();
            let borrowed: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
            let index = files.append(shard as u64, 1, &borrowed).unwrap();
            assert_eq!(index, written[shard].len() as u64 + 1);
            written[shard].extend(batch);
        }
        drop(files);
        files = open(directory.path());
        for (shard, expected) in written.iter().enumerate() {
            let entries = read_all(&files, shard as u64);
            assert_eq!(payloads(&entries), *expected, "round {round}");
            assert_eq!(files.last_index(shard as u64), Some(expected.len() as u64));
        }
    }
    assert!(file_names(directory.path()).len() > 3, "the files have rolled");
    let payload_bytes = written.iter().flatten().map(|payload| payload.len() as u64).sum();
    let entries = written.iter().map(|shard| shard.len() as u64).sum();
    assert_eq!(files.verify(), Ok(Verified { entries, payload_bytes }));
}

#[test]
fn an_entry_says_what_was_durable_when_it_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let files = create(directory.path());
    files.append(1, 1, &[b"a"]).unwrap();
    files.append(1, 1, &[b"b", b"c"]).unwrap();
    files.append(1, 2, &[b"d"]).unwrap();
    let entries = read_all(&files, 1);
    let durable: Vec<u64> = entries.iter().map(|entry| entry.durable).collect();
    assert_eq!(durable, [0, 1, 1, 3]);
    let terms: Vec<u64> = entries.iter().map(|entry| entry.term).collect();
    assert_eq!(terms, [1, 1, 1, 2]);
}

#[test]
fn appending_nothing_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let files = create(directory.path());
    assert_eq!(files.append(1, 1, &[]), Ok(1));
    assert_eq!(files.last_index(1), None);
    files.start_after(1, Position::without_hash(10), ID).unwrap();
    assert_eq!(files.append(1, 1, &[]), Ok(11));
    assert_eq!(files.append(1, 1, &[b"first"]), Ok(11));
}

#[test]
fn a_second_open_of_the_same_directory_is_locked() {
    let directory = tempfile::tempdir().unwrap();
    let first = create(directory.path());
    let locked = |result: Result<SegmentFiles, JournalError>| {
        assert!(matches!(result.err(), Some(JournalError::Locked { .. })));
    };
    locked(SegmentFiles::open(directory.path(), ID, &small()));
    locked(SegmentFiles::create(directory.path(), ID, &small()));
    drop(first);
    open(directory.path());
}

#[test]
fn a_journal_of_another_id_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    create(directory.path()).append(1, 1, &[b"mine"]).unwrap();
    let other = SegmentFiles::open(directory.path(), ID + 1, &small());
    assert!(matches!(other.err(), Some(JournalError::Damaged { .. })));
}

#[test]
fn creating_over_a_journal_with_entries_is_refused_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    create(directory.path()).append(1, 1, &[b"kept"]).unwrap();
    let before = contents(directory.path());
    for id in [ID, ID + 1] {
        let created = SegmentFiles::create(directory.path(), id, &small());
        assert!(matches!(created.err(), Some(JournalError::Damaged { .. })));
        assert_eq!(contents(directory.path()), before);
    }
    assert_eq!(payloads(&read_all(&open(directory.path()), 1)), [b"kept"]);
}

#[test]
fn a_creation_that_was_cut_short_can_be_repeated() {
    let directory = tempfile::tempdir().unwrap();
    drop(create(directory.path()));
    for missing in ["watermark.b", "watermark.a"] {
        fs::remove_file(directory.path().join(missing)).unwrap();
        drop(create(directory.path()));
    }
    assert_eq!(open(directory.path()).append(1, 1, &[b"first"]), Ok(1));
}

#[test]
fn start_after_places_the_first_entry_of_an_empty_shard() {
    let directory = tempfile::tempdir().unwrap();
    let files = create(directory.path());
    files.start_after(4, Position::without_hash(100), ID).unwrap();
    assert_eq!((files.first_index(4), files.last_index(4)), (None, None));
    assert_eq!(files.append(4, 1, &[b"a", b"b"]), Ok(101));
    assert!(files.start_after(4, Position::without_hash(200), ID).is_err(), "the shard has entries now");
    drop(files);
    let files = open(directory.path());
    assert_eq!((files.first_index(4), files.last_index(4)), (Some(101), Some(102)));
    assert_eq!(files.append(4, 1, &[b"c"]), Ok(103));
    assert_eq!(payloads(&read_all(&files, 4)), [b"a", b"b", b"c"]);
}

/// The watermark once spoke of a start as of an entry, and the journal could not be opened again.
#[test]
fn a_start_without_an_entry_leaves_a_journal_that_opens() {
    let directory = tempfile::tempdir().unwrap();
    let files = create(directory.path());
    files.start_after(4, Position::without_hash(100), ID).unwrap();
    files.settle().unwrap();
    drop(files);
    let files = open(directory.path());
    assert_eq!(files.last_index(4), None);
    files.start_after(4, Position::without_hash(100), ID).unwrap();
    assert_eq!(files.append(4, 1, &[b"a"]), Ok(101));
}

#[test]
fn one_read_takes_at_least_one_entry_and_no_more_than_fits() {
    let directory = tempfile::tempdir().unwrap();
    let files = create(directory.path());
    for _ in 0..10 {
        files.append(1, 1, &[&[7; 1000]]).unwrap();
    }
    assert_eq!(files.read(1, 1, 0).unwrap().len(), 1);
    assert_eq!(files.read(1, 1, 3500).unwrap().len(), 3);
    assert_eq!(files.read(1, 4, usize::MAX).unwrap().len(), 7);
    assert_eq!(files.read(1, 11, usize::MAX), Ok(Vec::new()));
    assert_eq!(files.read(9, 1, usize::MAX), Ok(Vec::new()));
}

/// The watermark files grow with the shards, before they need to.
#[test]
fn many_shards_fit_into_one_journal() {
    let directory = tempfile::tempdir().unwrap();
    let files = create(directory.path());
    for shard in 0..500_u64 {
        files.append(shard, 1, &[&shard.to_le_bytes()]).unwrap();
    }
    files.settle().unwrap();
    assert!(fs::metadata(directory.path().join("watermark.b")).unwrap().len() >= 500 * 24);
    drop(files);
    let files = open(directory.path());
    for shard in 0..500_u64 {
        assert_eq!(payloads(&read_all(&files, shard)), [shard.to_le_bytes()]);
    }
}
