//! A journal written in format 3 can always be opened: `fixtures/journal-v3` holds exactly these entries.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use statehouse_journal::{EntryLog, Position, SegmentFiles, SegmentOptions, Verified};

const ID: u64 = 0x6a6f_7572_6e61_6c31;

/// Shard, its start, its last entry, and its first kept one.
const SHARDS: [(u64, u64, u64, u64); 3] = [(1, 0, 40, 26), (2, 500, 512, 501), (9, 0, 1, 1)];

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/journal-v3")
}

fn options() -> SegmentOptions {
    SegmentOptions::default().file_bytes_target(2 << 10)
}

fn payload(shard: u64, index: u64) -> Vec<u8> {
    let text = format!("entry {index} of shard {shard}; ");
    text.repeat(1 + usize::try_from(index).unwrap() % 7).into_bytes()
}

/// Every third entry is written together with the one after it.
fn write_entries(files: &SegmentFiles) {
    for (shard, started_after, last, _) in SHARDS {
        files.start_after(shard, Position::without_hash(started_after), ID).unwrap();
        let mut index = started_after + 1;
        while index <= last {
            let together = if index % 3 == 0 && index < last { 2 } else { 1 };
            let payloads: Vec<Vec<u8>> = (index..index + together).map(|index| payload(shard, index)).collect();
            let borrowed: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
            assert_eq!(files.append(shard, 1 + shard, &borrowed), Ok(index));
            index += together;
        }
    }
    for (shard, _, _, first_kept) in SHARDS {
        files.cut(shard, first_kept).unwrap();
    }
}

fn check_entries(files: &SegmentFiles) {
    let mut expected = Verified::default();
    for (shard, started_after, last, first_kept) in SHARDS {
        assert_eq!((files.first_index(shard), files.last_index(shard)), (Some(first_kept), Some(last)));
        let entries = files.read(shard, first_kept, usize::MAX).unwrap();
        assert_eq!(entries.len() as u64, last - first_kept + 1);
        for (index, (entry, _)) in (first_kept..).zip(&entries) {
            assert_eq!((entry.shard, entry.index, entry.term), (shard, index, 1 + shard));
            assert_eq!(entry.payload, payload(shard, index));
            assert!(entry.durable < index && (entry.durable > started_after || entry.durable == 0));
            expected.entries += 1;
            expected.payload_bytes += entry.payload.len() as u64;
        }
    }
    assert_eq!(files.verify(), Ok(expected));
}

#[test]
fn format_3_opens_with_exactly_its_entries() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("segments")).unwrap();
    for place in ["", "segments"] {
        for file in fs::read_dir(fixture().join(place)).unwrap().map(|file| file.unwrap().path()) {
            if file.is_file() {
                fs::copy(&file, directory.path().join(place).join(file.file_name().unwrap())).unwrap();
            }
        }
    }
    for _ in 0..2 {
        check_entries(&SegmentFiles::open(directory.path(), ID, &options()).unwrap());
    }
    let files = SegmentFiles::open(directory.path(), ID, &options()).unwrap();
    assert_eq!(files.append(2, 3, &[b"goes on"]), Ok(513));
    drop(files);
    let files = SegmentFiles::open(directory.path(), ID, &options()).unwrap();
    assert_eq!(files.read(2, 513, 0).unwrap()[0].0.payload, b"goes on");
}

/// How the fixture was created. A new format gets its own directory; this one is never created again.
#[test]
#[ignore = "writes fixtures/journal-v3 and refuses if it is there"]
fn make_the_fixture() {
    fs::create_dir_all(fixture().parent().unwrap()).unwrap();
    fs::create_dir(fixture()).unwrap();
    let files = SegmentFiles::create(&fixture(), ID, &options()).unwrap();
    write_entries(&files);
    check_entries(&files);
}
