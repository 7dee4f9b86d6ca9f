//! Entries of several shards in one append: one write and one sync, there together or not at all.

#![allow(clippy::unwrap_used)]

mod failing_disk;
mod file_contents;

use std::fs;

use failing_disk::{Call, EIO, ENOSPC, FailingDisk};
use file_contents::contents;
use statehouse_journal::{Append, Disk, EntryKind, EntryLog, JournalError, Position, SegmentFiles, SegmentOptions};

const ID: u64 = 82;

fn options() -> SegmentOptions {
    SegmentOptions::default().file_bytes_target(16 << 10)
}

fn payload(shard: u64, index: u64) -> Vec<u8> {
    format!("entry {index} of shard {shard}; ").repeat(1 + usize::try_from(index).unwrap() % 3).into_bytes()
}

/// Appends the next entry of each shard, in one call.
fn append(files: &SegmentFiles<impl Disk>, shards: &[u64]) -> Vec<Result<Position, JournalError>> {
    let next = |shard: u64| files.last_index(shard).unwrap_or(0) + 1;
    let payloads: Vec<Vec<u8>> = shards.iter().map(|shard| payload(*shard, next(*shard))).collect();
    let entry = |(shard, payload): (&u64, _)| {
        let after = files.ends(*shard).unwrap().last;
        Append { shard: *shard, after, kind: EntryKind::COMMANDS, term: 1, node: 0, history: ID, payload }
    };
    let entries: Vec<Append<'_>> = shards.iter().zip(payloads.iter().map(Vec::as_slice)).map(entry).collect();
    files.append_behind(&entries)
}

fn append_all(files: &SegmentFiles<impl Disk>, shards: &[u64]) {
    assert!(append(files, shards).iter().all(Result::is_ok));
}

/// Every entry of the shards is what it must be.
fn check(files: &SegmentFiles<impl Disk>, lasts: &[(u64, u64)]) {
    for (shard, last) in lasts {
        assert_eq!(files.last_index(*shard).unwrap_or(0), *last, "shard {shard}");
        let read = if *last > 0 { files.read(*shard, 1, usize::MAX).unwrap() } else { Vec::new() };
        assert_eq!(read.len() as u64, *last, "shard {shard}");
        assert!(read.iter().all(|(entry, _)| entry.payload == payload(*shard, entry.index)), "shard {shard}");
    }
    files.verify().unwrap();
}

#[test]
fn entries_of_several_shards_are_one_write_and_one_sync() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, plan) = FailingDisk::new();
    let files = SegmentFiles::create_on(disk, directory.path(), ID, &options()).unwrap();
    append_all(&files, &[1, 2, 3, 4, 5]);
    files.upkeep().unwrap();
    for shards in [&[3_u64][..], &[5, 1], &[1, 2, 3, 4, 5]] {
        let before = plan.calls();
        append_all(&files, shards);
        assert_eq!(plan.calls() - before, 2, "a write and a sync for shards {shards:?}");
    }
    check(&files, &[(1, 3), (2, 2), (3, 3), (4, 2), (5, 3)]);
    drop(files);
    check(&SegmentFiles::open(directory.path(), ID, &options()).unwrap(), &[(1, 3), (2, 2), (3, 3), (4, 2), (5, 3)]);
}

/// A batch may fill a segment to the last byte. With one byte more it becomes two batches.
#[test]
fn a_batch_may_fill_a_segment_to_the_last_byte() {
    const SHARDS: u64 = 10;
    let entry_bytes = |payload: usize| 24 + (85 + payload).next_multiple_of(8);
    let fixed = 24 + 40 + (usize::try_from(SHARDS).unwrap() - 1) * entry_bytes(100);
    let fitting = (1..2000).rev().find(|payload| fixed + entry_bytes(*payload) <= 4 << 10).unwrap();
    for (payload, is_one_batch) in [(fitting, true), (fitting + 1, false)] {
        let directory = tempfile::tempdir().unwrap();
        let (disk, plan) = FailingDisk::new();
        let options = SegmentOptions::default().file_bytes_target(4 << 10);
        let files = SegmentFiles::create_on(disk, directory.path(), ID, &options).unwrap();
        let payloads: Vec<Vec<u8>> = (1..SHARDS).map(|_| vec![7; 100]).chain([vec![7; payload]]).collect();
        let entry = |(shard, payload)| {
            let (after, kind) = (Position::START, EntryKind::COMMANDS);
            Append { shard, after, kind, term: 1, node: 0, history: ID, payload }
        };
        let entries: Vec<Append<'_>> = (1..).zip(payloads.iter().map(Vec::as_slice)).map(entry).collect();
        let before = plan.syncs();
        assert!(files.append_behind(&entries).iter().all(Result::is_ok));
        assert_eq!(plan.syncs() - before == 1, is_one_batch, "{payload} bytes: {} syncs", plan.syncs() - before);
        files.verify().unwrap();
    }
}

#[test]
fn an_entry_that_is_refused_is_not_in_the_batch_of_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let files = SegmentFiles::create(directory.path(), ID, &options()).unwrap();
    append_all(&files, &[1, 2, 3]);
    let (kind, history) = (EntryKind::COMMANDS, ID);
    let last = |shard| files.ends(shard).unwrap().last;
    let two = payload(1, 2);
    let good = Append { shard: 1, after: last(1), kind, term: 1, node: 0, history, payload: &two };
    let stale = Append { shard: 2, after: Position::START, ..good };
    let foreign = Append { shard: 3, after: last(3), history: ID + 1, ..good };
    let answers = files.append_behind(&[stale, good, foreign]);
    assert_eq!(answers[0], Err(JournalError::Deposed { shard: 2, after: Position::START }));
    assert_eq!(answers[1], Ok(last(1)));
    assert_eq!(answers[2], Err(JournalError::OtherHistory { shard: 3, found: ID, appended: ID + 1 }));
    check(&files, &[(1, 2), (2, 1), (3, 1)]);
}

/// More shards than a batch may have, more bytes than a segment has, and a shard that is named twice.
#[test]
fn what_does_not_go_into_one_batch_goes_into_several() {
    let directory = tempfile::tempdir().unwrap();
    let files = SegmentFiles::create(directory.path(), ID, &SegmentOptions::default()).unwrap();
    let shards: Vec<u64> = (1..=2500).collect();
    append_all(&files, &shards);
    append_all(&files, &shards);
    let lasts: Vec<(u64, u64)> = shards.iter().map(|shard| (*shard, 2)).collect();
    check(&files, &lasts);
    let twice = append(&files, &[7, 8, 7]);
    assert!(twice[0].is_ok() && twice[1].is_ok(), "{twice:?}");
    assert!(matches!(twice[2], Err(JournalError::Deposed { shard: 7, .. })), "{twice:?}");
    drop(files);
    let files = SegmentFiles::open(directory.path(), ID, &SegmentOptions::default()).unwrap();
    assert_eq!((files.last_index(7), files.last_index(8), files.last_index(9)), (Some(3), Some(3), Some(2)));
    files.verify().unwrap();

    let directory = tempfile::tempdir().unwrap();
    let small = SegmentOptions::default().file_bytes_target(1 << 10);
    let files = SegmentFiles::create(directory.path(), ID, &small).unwrap();
    for _ in 0..20 {
        append_all(&files, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }
    let lengths = contents(directory.path()).into_iter().map(|(_, bytes)| bytes.len());
    assert!(lengths.max() <= Some(4 << 10), "no segment was made longer for a batch");
    check(&files, &[(1, 20), (5, 20), (9, 20)]);
}

/// Every length that a torn write of the last batch can leave, for the entries of three shards.
#[test]
fn a_batch_of_several_shards_cut_short_anywhere_is_dropped_whole() {
    let directory = tempfile::tempdir().unwrap();
    let files = SegmentFiles::create(directory.path(), ID, &options()).unwrap();
    append_all(&files, &[1, 2]);
    files.settle().unwrap();
    let before = contents(directory.path());
    append_all(&files, &[2, 3, 1]);
    let after = contents(directory.path());
    drop(files);
    let ((path, torn_from), (_, whole)) = before.iter().zip(&after).find(|(old, new)| old != new).unwrap();
    let start = torn_from.iter().zip(whole).position(|(old, new)| old != new).unwrap();
    let end = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    assert!(end - start > 3 * 100);
    for length in start..=end {
        for (path, bytes) in &after {
            fs::write(path, bytes).unwrap();
        }
        let mut torn = whole.clone();
        torn[length..].fill(0);
        fs::write(path, torn).unwrap();
        let files = SegmentFiles::open(directory.path(), ID, &options()).unwrap();
        let lasts = if length < end { [(1, 1), (2, 1), (3, 0)] } else { [(1, 2), (2, 2), (3, 1)] };
        check(&files, &lasts);
        append_all(&files, &[1, 2, 3]);
    }
}

/// One flipped byte anywhere in it, and nothing of it is taken for durable; below the watermark it is refused.
#[test]
fn a_damaged_batch_of_several_shards_is_dropped_whole_or_refused() {
    for settled in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let files = SegmentFiles::create(directory.path(), ID, &options()).unwrap();
        append_all(&files, &[1, 2]);
        files.settle().unwrap();
        let first = contents(directory.path());
        append_all(&files, &[2, 3, 1]);
        if settled {
            files.settle().unwrap();
        }
        let whole = contents(directory.path());
        drop(files);
        let changed = |((_, old), (path, new)): &(_, &(std::path::PathBuf, Vec<u8>))| {
            let old: &Vec<u8> = old;
            path.parent().is_some_and(|parent| parent.ends_with("segments")) && old != new
        };
        let first = first.iter().map(|(path, bytes)| (path.clone(), bytes.clone())).collect::<Vec<_>>();
        let ((_, old), (path, new)) = first.into_iter().zip(&whole).find(changed).unwrap();
        let start = old.iter().zip(new).position(|(old, new)| old != new).unwrap();
        let end = new.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        for position in (start..end).step_by(3) {
            for (path, bytes) in &whole {
                fs::write(path, bytes).unwrap();
            }
            let mut flipped = new.clone();
            flipped[position] ^= 4;
            fs::write(path, flipped).unwrap();
            match SegmentFiles::open(directory.path(), ID, &options()) {
                // Padding means nothing.
                Ok(files) if files.last_index(1) == Some(2) => check(&files, &[(1, 2), (2, 2), (3, 1)]),
                Ok(files) => {
                    assert!(!settled, "byte {position} of {start}..{end}");
                    check(&files, &[(1, 1), (2, 1), (3, 0)]);
                }
                Err(error) => assert!(settled, "byte {position} of {start}..{end}: {error}"),
            }
        }
    }
}

#[test]
fn without_room_or_after_a_failure_none_of_the_entries_is_acknowledged() {
    for (call, errno) in [(Call::Write, ENOSPC), (Call::Write, EIO), (Call::Sync, EIO)] {
        let directory = tempfile::tempdir().unwrap();
        let (disk, plan) = FailingDisk::new();
        let files = SegmentFiles::create_on(disk, directory.path(), ID, &options()).unwrap();
        append_all(&files, &[1, 2, 3]);
        plan.fail(Some(call), 0, 1, errno);
        let answers = append(&files, &[1, 2, 3]);
        for answer in answers {
            let error = answer.expect_err("it failed");
            assert_eq!(error.may_be_appended(), errno == EIO, "{call:?}: {error}");
        }
        check(&files, &[(1, 1), (2, 1), (3, 1)]);
        if errno == ENOSPC {
            append_all(&files, &[1, 2, 3]);
            check(&files, &[(1, 2), (2, 2), (3, 2)]);
        } else {
            assert!(append(&files, &[2]).iter().all(|answer| matches!(answer, Err(JournalError::Poisoned { .. }))));
            drop(files);
            let files = SegmentFiles::open(directory.path(), ID, &options()).unwrap();
            let last = files.last_index(1).unwrap();
            check(&files, &[(1, last), (2, last), (3, last)]);
        }
    }
}
