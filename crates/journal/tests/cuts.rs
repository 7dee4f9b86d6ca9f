//! What a cut gives up stays given up, and its segments are deleted or used again.

#![allow(clippy::unwrap_used)]

mod read_back;
mod small_journal;

use std::fs;

use statehouse_journal::EntryLog;

use read_back::{file_names, payloads, read_all};
use small_journal::{create, open};

/// Free segments that are kept for reuse, at most.
const SPARES_MAX: usize = 4;

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
                Ok(entries) => assert!(entries.iter().all(|(entry, _)| entry.payload == payload)),
                Err(error) => assert!(error.to_string().contains("was given up"), "{error}"),
            }
        }
    });
}
