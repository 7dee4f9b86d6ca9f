//! What `SegmentFiles` keeps across a close and a reopen.

#![allow(clippy::unwrap_used)]

mod small_journal;

use std::fs;
use std::path::Path;

use statehouse_journal::{Entry, EntryFiles, JournalError, SegmentFiles, Verified};
use testkit::random::Random;

use small_journal::{ID, create, open, small};

/// Every kept entry of a shard, read in small steps; contiguous and chained (J2).
fn read_all(files: &SegmentFiles, shard: u64) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut next = files.first_index(shard).unwrap_or(1);
    loop {
        let read = files.read(shard, next, 1000).unwrap();
        if read.is_empty() {
            return entries;
        }
        for entry in read {
            assert_eq!(entry.index, next);
            if let Some(previous) = entries.last() {
                assert_eq!(entry.previous_hash, previous.encode(ID).1);
            }
            next += 1;
            entries.push(entry);
        }
    }
}

fn payloads(entries: &[Entry]) -> Vec<Vec<u8>> {
    entries.iter().map(|entry| entry.payload.clone()).collect()
}

/// Free segments that are kept for reuse, at most.
const SPARES_MAX: usize = 4;

fn file_names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory.join("segments"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Each file below a directory with its bytes.
fn contents(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for place in [directory.to_owned(), directory.join("segments")] {
        for file in fs::read_dir(place).unwrap().map(|file| file.unwrap().path()) {
            if file.is_file() {
                found.push((file.display().to_string(), fs::read(&file).unwrap()));
            }
        }
    }
    found.sort();
    found
}

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
    files.start_after(1, 10).unwrap();
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
    files.start_after(4, 100).unwrap();
    assert_eq!((files.first_index(4), files.last_index(4)), (None, None));
    assert_eq!(files.append(4, 1, &[b"a", b"b"]), Ok(101));
    assert!(files.start_after(4, 200).is_err(), "the shard has entries now");
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
    files.start_after(4, 100).unwrap();
    files.sync_watermark().unwrap();
    drop(files);
    let files = open(directory.path());
    assert_eq!(files.last_index(4), None);
    files.start_after(4, 100).unwrap();
    assert_eq!(files.append(4, 1, &[b"a"]), Ok(101));
}

#[test]
fn a_cut_deletes_files_and_keeps_the_last_entry() {
    let directory = tempfile::tempdir().unwrap();
    let files = create(directory.path());
    let payload = vec![7; 1000];
    for _ in 0..200 {
        files.append(1, 1, &[&payload]).unwrap();
    }
    let (before, bytes_before) = (file_names(directory.path()).len(), files.kept_bytes());
    assert!(before > 10);
    files.cut(1, 150).unwrap();
    assert_eq!(files.first_index(1), Some(150));
    let kept = 50 * 1200 / (16 << 10) + 2;
    assert!(file_names(directory.path()).len() <= kept + SPARES_MAX, "{before} files before");
    assert!(files.kept_bytes() < bytes_before / 2);
    files.cut(1, 10_000).unwrap();
    assert_eq!((files.first_index(1), files.last_index(1)), (Some(200), Some(200)));
    files.cut(1, 3).unwrap();
    assert_eq!(files.first_index(1), Some(200), "a cut never brings entries back");
    drop(files);

    let files = open(directory.path());
    assert_eq!((files.first_index(1), files.last_index(1)), (Some(200), Some(200)));
    assert_eq!(files.append(1, 1, &[b"next"]), Ok(201));
    assert_eq!(read_all(&files, 1).len(), 2);
    assert!(files.read(1, 199, 1000).is_err(), "what was given up is not read as nothing");
}

/// Deleting once waited for a file's worth of new entries, which a full journal does not accept.
#[test]
fn a_cut_right_after_a_reopen_deletes_files() {
    let directory = tempfile::tempdir().unwrap();
    let files = create(directory.path());
    for _ in 0..200 {
        files.append(1, 1, &[&[7; 1000]]).unwrap();
    }
    drop(files);
    let files = open(directory.path());
    let bytes = files.bytes();
    files.cut(1, 200).unwrap();
    assert!(files.bytes() < bytes / 2, "{} of {bytes} bytes are left", files.bytes());
}

/// Its last entry holds its place, and once held every younger file of every other shard too.
#[test]
fn a_shard_that_rests_does_not_keep_the_files_of_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let files = create(directory.path());
    files.append(2, 1, &[b"one", b"two"]).unwrap();
    for round in 0..20_u64 {
        for _ in 0..20 {
            files.append(1, 1, &[&[7; 1000]]).unwrap();
        }
        files.cut(1, round * 20 + 1).unwrap();
    }
    assert!(file_names(directory.path()).len() > 20, "shard 2 still wants its first entry");
    files.cut(2, 2).unwrap();
    files.cut(1, 400).unwrap();
    assert!(file_names(directory.path()).len() <= 3 + SPARES_MAX, "{:?}", file_names(directory.path()));
    drop(files);
    let files = open(directory.path());
    assert_eq!((files.first_index(2), files.last_index(2)), (Some(2), Some(2)));
    assert_eq!(files.append(2, 1, &[b"three"]), Ok(3));
    assert_eq!(payloads(&read_all(&files, 2)), [b"two".to_vec(), b"three".to_vec()]);
}

/// Power loss can bring a deleted file back without the ones after it.
#[test]
fn a_file_that_came_back_alone_does_no_harm_and_is_deleted_again() {
    let directory = tempfile::tempdir().unwrap();
    let files = create(directory.path());
    for _ in 0..100 {
        files.append(1, 1, &[&[7; 1000]]).unwrap();
    }
    let old = directory.path().join("segments").join(&file_names(directory.path())[0]);
    let bytes = fs::read(&old).unwrap();
    files.cut(1, 100).unwrap();
    assert!(!old.exists());
    drop(files);
    fs::write(&old, bytes).unwrap();
    let files = open(directory.path());
    assert_eq!((files.first_index(1), files.last_index(1)), (Some(100), Some(100)));
    for _ in 0..100 {
        files.append(1, 1, &[&[7; 1000]]).unwrap();
    }
    files.cut(1, 200).unwrap();
    assert!(!old.exists());
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

#[test]
fn entries_that_are_given_up_while_everything_is_read_are_not_called_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let files = create(directory.path());
    let payload = [7_u8; 900].as_slice();
    files.append(1, 1, &[payload]).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for _ in 0..300 {
                let first = files.append(1, 1, &[payload; 8]).unwrap();
                files.cut(1, first + 4).unwrap();
            }
        });
        while !writer.is_finished() {
            files.verify().unwrap();
        }
    });
}

/// A file that is used again still holds what it held, until that is overwritten.
#[test]
fn free_segments_are_used_again_and_their_old_entries_never_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut files = create(directory.path());
    let mut written = 0_u64;
    let mut inodes = std::collections::BTreeSet::new();
    for round in 0..40 {
        for _ in 0..20 {
            written += 1;
            let payload = written.to_le_bytes().repeat(100 + round % 7);
            assert_eq!(files.append(1, 1, &[&payload]), Ok(written));
        }
        files.cut(1, written - 5).unwrap();
        for name in file_names(directory.path()) {
            let metadata = fs::metadata(directory.path().join("segments").join(name)).unwrap();
            inodes.insert(std::os::unix::fs::MetadataExt::ino(&metadata));
        }
        if round % 5 == 4 {
            drop(files);
            files = open(directory.path());
        }
        let entries = read_all(&files, 1);
        assert_eq!(entries.len(), 6);
        for entry in entries {
            assert_eq!(entry.payload[..8], entry.index.to_le_bytes());
        }
        files.verify().unwrap();
    }
    // Some 50 segments were filled.
    assert!(inodes.len() < 12, "{} files were made", inodes.len());
}

#[test]
fn a_batch_larger_than_a_segment_gets_a_larger_one() {
    let directory = tempfile::tempdir().unwrap();
    let files = create(directory.path());
    let large = vec![7; 100_000];
    files.append(1, 1, &[&large]).unwrap();
    files.append(1, 1, &[b"small"]).unwrap();
    files.append(1, 1, &[&large, &large]).unwrap();
    files.append(1, 1, &[b"small"]).unwrap();
    drop(files);
    let files = open(directory.path());
    let lengths: Vec<usize> = read_all(&files, 1).iter().map(|entry| entry.payload.len()).collect();
    assert_eq!(lengths, [100_000, 5, 100_000, 100_000, 5]);
    files.cut(1, 5).unwrap();
    let lengths = file_names(directory.path())
        .into_iter()
        .map(|name| fs::metadata(directory.path().join("segments").join(name)).unwrap().len());
    assert!(lengths.max().unwrap() <= 16 << 10, "a larger one is not kept for reuse");
}

/// The watermark files grow with the shards, before they need to.
#[test]
fn many_shards_fit_into_one_journal() {
    let directory = tempfile::tempdir().unwrap();
    let files = create(directory.path());
    for shard in 0..500_u64 {
        files.append(shard, 1, &[&shard.to_le_bytes()]).unwrap();
    }
    files.sync_watermark().unwrap();
    assert!(fs::metadata(directory.path().join("watermark.b")).unwrap().len() >= 500 * 24);
    drop(files);
    let files = open(directory.path());
    for shard in 0..500_u64 {
        assert_eq!(payloads(&read_all(&files, shard)), [shard.to_le_bytes()]);
    }
}

/// What is being read stays as it is, although its segment is free by then.
#[test]
fn a_segment_that_is_read_is_not_used_again() {
    let directory = tempfile::tempdir().unwrap();
    let files = create(directory.path());
    let payload = [7_u8; 3000];
    for _ in 0..40 {
        files.append(1, 1, &[&payload]).unwrap();
    }
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for _ in 0..300 {
                let last = files.append(1, 1, &[&payload]).unwrap();
                files.cut(1, last - 8).unwrap();
            }
        });
        while !writer.is_finished() {
            let first = files.first_index(1).unwrap();
            match files.read(1, first, usize::MAX) {
                Ok(entries) => assert!(entries.iter().all(|entry| entry.payload == payload)),
                Err(error) => assert!(error.to_string().contains("was given up"), "{error}"),
            }
        }
    });
}
