//! Bit rot is told from a torn tail (J3): nothing durable is dropped, and a refusal changes nothing.

#![allow(clippy::unwrap_used)]

mod file_contents;

use std::fs;
use std::path::{Path, PathBuf};

use statehouse_journal::{EntryLog, JournalError, Position, SegmentFiles, SegmentOptions};
use tempfile::TempDir;

use file_contents::contents;

const ID: u64 = 80;
const FILE_HEADER_BYTES: usize = 24;
const BATCH_HEADER_BYTES: usize = 64;
const ENTRY_HEADER_BYTES: usize = 61;

fn small() -> SegmentOptions {
    SegmentOptions::default().file_bytes_target(16 << 10)
}

fn open(directory: &Path) -> Result<SegmentFiles, JournalError> {
    SegmentFiles::open(directory, ID, &small())
}

/// The remains of a process killed after `work`.
fn killed(work: impl FnOnce(&SegmentFiles)) -> TempDir {
    let live = tempfile::tempdir().unwrap();
    let files = SegmentFiles::create(live.path(), ID, &small()).unwrap();
    work(&files);
    let copy = tempfile::tempdir().unwrap();
    fs::create_dir(copy.path().join("segments")).unwrap();
    for (path, bytes) in contents(live.path()) {
        fs::write(copy.path().join(path.strip_prefix(live.path()).unwrap()), bytes).unwrap();
    }
    copy
}

/// The files with entries, oldest first.
fn entry_files(directory: &Path) -> Vec<PathBuf> {
    let files = contents(directory).into_iter().map(|(path, _)| path);
    files.filter(|path| path.parent().is_some_and(|parent| parent.ends_with("segments"))).collect()
}

/// Changes the bytes of the file that contains `needle`; `change` gets them and its position.
fn change(directory: &Path, needle: &[u8], change: impl FnOnce(&mut Vec<u8>, usize)) {
    for file in entry_files(directory) {
        let mut bytes = fs::read(&file).unwrap();
        let found = bytes.windows(needle.len()).rposition(|window| window == needle);
        if let Some(position) = found {
            change(&mut bytes, position);
            fs::write(file, bytes).unwrap();
            return;
        }
    }
    panic!("{} is nowhere", String::from_utf8_lossy(needle));
}

/// Flips a bit of a payload.
fn rot(directory: &Path, payload: &[u8]) {
    change(directory, payload, |bytes, position| bytes[position] ^= 1);
}

/// Flips a bit in the header of the batch that starts with this payload's entry.
fn rot_batch_header(directory: &Path, payload: &[u8]) {
    let before = ENTRY_HEADER_BYTES + BATCH_HEADER_BYTES;
    change(directory, payload, |bytes, position| bytes[position - before + 6] ^= 1);
}

fn assert_refused(directory: &Path, because: &str) {
    let before = contents(directory);
    let error = open(directory).err().expect("this must not open");
    assert!(matches!(error, JournalError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains(because), "{error}");
    assert!(contents(directory) == before, "a refusal changes nothing");
}

fn last_payload(files: &SegmentFiles, shard: u64) -> Vec<u8> {
    let last = files.last_index(shard).unwrap();
    files.read(shard, last, 0).unwrap()[0].0.payload.clone()
}

#[test]
fn damage_at_or_below_the_watermark_is_refused() {
    for damage in [rot, rot_batch_header] {
        let directory = killed(|files| {
            files.append(1, 1, &[b"payload-one"]).unwrap();
            files.append(1, 1, &[b"payload-two"]).unwrap();
            files.settle().unwrap();
        });
        damage(directory.path(), b"payload-two");
        assert_refused(directory.path(), "entry 2 of shard 1 was durable, but the readable entries end at 1");
    }
}

/// Damage above the watermark, with nothing after it, could be either; that is documented.
#[test]
fn damage_in_the_last_batch_above_the_watermark_is_taken_for_a_torn_tail() {
    for damage in [rot, rot_batch_header] {
        let directory = killed(|files| {
            files.append(1, 1, &[b"payload-one"]).unwrap();
            files.settle().unwrap();
            files.append(1, 1, &[b"payload-two"]).unwrap();
        });
        damage(directory.path(), b"payload-two");
        let files = open(directory.path()).unwrap();
        assert_eq!(last_payload(&files, 1), b"payload-one");
        assert_eq!(files.append(1, 1, &[b"payload-new"]), Ok(2));
    }
}

#[test]
fn an_entry_behind_the_damage_proves_that_it_is_rot() {
    let directory = killed(|files| {
        for payload in [b"payload-one", b"payload-two", b"payload-six"] {
            files.append(1, 1, &[payload]).unwrap();
        }
    });
    rot_batch_header(directory.path(), b"payload-two");
    assert_refused(directory.path(), "entry 3 of shard 1 is in a batch of its own behind the damage");
}

/// The entry of another shard knows nothing of the damaged one, but its batch was written after it.
#[test]
fn a_batch_of_another_shard_behind_the_damage_proves_that_it_is_rot() {
    let directory = killed(|files| {
        files.append(1, 1, &[b"payload-one"]).unwrap();
        files.append(2, 1, &[b"payload-two"]).unwrap();
        files.settle().unwrap();
        files.append(1, 1, &[b"payload-bad"]).unwrap();
        files.append(2, 1, &[b"payload-six"]).unwrap();
    });
    rot_batch_header(directory.path(), b"payload-bad");
    assert_refused(directory.path(), "entry 2 of shard 2 is in a batch of its own behind the damage");
}

/// Discarding entries writes a batch without an entry, which cannot vouch for the one before it.
#[test]
fn damage_before_a_cut_is_rot() {
    let directory = killed(|files| {
        for payload in [b"payload-one", b"payload-two", b"payload-bad"] {
            files.append(1, 1, &[payload]).unwrap();
        }
        files.cut(1, 2).unwrap();
    });
    rot_batch_header(directory.path(), b"payload-bad");
    assert_refused(directory.path(), "entry 3 of shard 1 was durable");
}

/// Larger damage can include the start of the next batch; the rest of that batch is still evidence.
#[test]
fn damage_over_two_batches_is_found_by_what_a_later_entry_calls_durable() {
    let large = vec![b'x'; 3000];
    let directory = killed(|files| {
        files.append(1, 1, &[b"payload-one"]).unwrap();
        files.append(1, 1, &[b"payload-two"]).unwrap();
        files.append(1, 1, &[&large, b"payload-six"]).unwrap();
    });
    change(directory.path(), b"payload-two", |bytes, position| bytes[position..position + 512].fill(0));
    assert_refused(directory.path(), "says that entry 2 was durable");
}

#[test]
fn what_an_open_has_shown_is_not_a_tail_later() {
    let directory = killed(|files| {
        files.append(1, 1, &[b"payload-one"]).unwrap();
        files.settle().unwrap();
        files.append(1, 1, &[b"payload-two"]).unwrap();
    });
    drop(open(directory.path()).unwrap());
    rot(directory.path(), b"payload-two");
    assert_refused(directory.path(), "entry 2 of shard 1 was durable");
}

#[test]
fn a_damaged_last_entry_of_a_shard_is_refused_wherever_it_is() {
    let directory = killed(|files| {
        files.append(2, 1, &[b"payload-bad"]).unwrap();
        files.append(1, 1, &[b"payload-one"]).unwrap();
    });
    rot(directory.path(), b"payload-bad");
    assert_refused(directory.path(), "shard 2, entry 1");
}

/// The header of a torn batch must not be evidence when the next batch goes to another file.
#[test]
fn a_torn_tail_is_given_up_before_the_next_file_begins() {
    let make = || {
        killed(|files| {
            files.append(1, 1, &[b"payload-one"]).unwrap();
            files.append(1, 1, &[b"payload-bad"]).unwrap();
        })
    };
    let large = vec![b'x'; 20_000];
    for next in [b"payload-new".as_slice(), &large] {
        let directory = make();
        rot(directory.path(), b"payload-bad");
        let files = open(directory.path()).unwrap();
        assert_eq!(files.append(1, 1, &[next]), Ok(2));
        assert_eq!(files.append(1, 1, &[b"payload-six"]), Ok(3));
        drop(files);
        let files = open(directory.path()).unwrap();
        assert_eq!(files.read(1, 2, 0).unwrap()[0].0.payload, next);
        assert_eq!(last_payload(&files, 1), b"payload-six");
        files.verify().unwrap();
    }
}

#[test]
fn rot_amid_the_entries_is_named_when_it_is_read() {
    let directory = killed(|files| {
        for payload in [b"payload-one", b"payload-bad", b"payload-six"] {
            files.append(1, 1, &[payload]).unwrap();
        }
    });
    rot(directory.path(), b"payload-bad");
    let files = open(directory.path()).unwrap();
    for error in [files.verify().err(), files.read(1, 1, usize::MAX).err()] {
        assert!(matches!(error, Some(JournalError::Damaged { .. })), "{error:?}");
    }
    assert!(files.read(1, 2, 0).is_err());
    assert_eq!(files.read(1, 3, 0).unwrap()[0].0.payload, b"payload-six");
}

#[test]
fn rot_in_a_file_that_is_not_the_last_is_refused() {
    let directory = killed(|files| {
        for _ in 0..30 {
            files.append(1, 1, &[&[b'x'; 1000]]).unwrap();
        }
        files.append(1, 1, &[b"payload-new"]).unwrap();
    });
    let first = &entry_files(directory.path())[0];
    let mut bytes = fs::read(first).unwrap();
    let last_batch = bytes.windows(7).rposition(|window| window == b"SHbatch").unwrap();
    bytes[last_batch + 20] ^= 1;
    fs::write(first, bytes).unwrap();
    assert_refused(directory.path(), "batches are missing before batch");
}

#[test]
fn a_file_that_is_missing_is_refused() {
    let make = || {
        killed(|files| {
            for _ in 0..100 {
                files.append(1, 1, &[&[b'x'; 1000]]).unwrap();
            }
        })
    };
    let count = entry_files(make().path()).len();
    assert!(count > 3);
    for missing in 0..count {
        let directory = make();
        fs::remove_file(&entry_files(directory.path())[missing]).unwrap();
        let because = if missing == count - 1 { "was durable" } else { "a file is missing" };
        let error = open(directory.path()).err().expect("this must not open");
        assert!(error.to_string().contains(because), "{error}");
    }
}

#[test]
fn a_damaged_file_header_before_entries_is_refused() {
    for byte in 0..FILE_HEADER_BYTES {
        let directory = killed(|files| {
            files.append(1, 1, &[b"payload-one"]).unwrap();
        });
        let file = &entry_files(directory.path())[0];
        let mut bytes = fs::read(file).unwrap();
        bytes[byte] ^= 1;
        fs::write(file, bytes).unwrap();
        assert_refused(directory.path(), "behind the damage");
    }
}

#[test]
fn one_damaged_watermark_file_is_replaced_and_two_are_refused() {
    let directory = killed(|files| {
        files.append(1, 1, &[b"payload-one"]).unwrap();
        files.settle().unwrap();
    });
    let damage = |name: &str| {
        let path = directory.path().join(name);
        let mut bytes = fs::read(&path).unwrap();
        bytes[20] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    for name in ["watermark.a", "watermark.b", "watermark.a"] {
        damage(name);
        assert_eq!(last_payload(&open(directory.path()).unwrap(), 1), b"payload-one");
    }
    damage("watermark.a");
    damage("watermark.b");
    assert_refused(directory.path(), "neither watermark file is readable");
}

/// Its first entry once named what the image covers as durable, and a torn one was taken for rot.
#[test]
fn a_torn_first_batch_of_a_shard_that_starts_after_an_image_is_a_tail() {
    let directory = killed(|files| {
        files.append(1, 1, &[b"payload-one"]).unwrap();
        files.start_after(2, Position::without_hash(1000), ID).unwrap();
        files.append(2, 1, &[b"payload-two", b"payload-bad"]).unwrap();
    });
    rot(directory.path(), b"payload-bad");
    let files = open(directory.path()).unwrap();
    assert_eq!(last_payload(&files, 1), b"payload-one");
    assert_eq!(files.last_index(2), None);
}

/// A payload can hold a copy of a journal's files, also of this one's: a backup that is kept in the store, or a value that
/// was made to look like entries. What it says was durable is no evidence, because it was not written to this place.
#[test]
fn entries_inside_a_payload_prove_nothing() {
    let copied = killed(|files| {
        for _ in 0..50 {
            files.append(1, 1, &[b"payload-old"]).unwrap();
            files.append(7, 1, &[b"payload-old"]).unwrap();
        }
    });
    let copied = fs::read(&entry_files(copied.path())[0]).unwrap();
    for shift in 0..8 {
        // One of these puts the copied entries where entries are looked for.
        let mut payload = vec![b'x'; shift];
        payload.extend_from_slice(&copied);
        let directory = killed(|files| {
            files.append(1, 1, &[b"payload-one"]).unwrap();
            files.append(1, 1, &[&payload, b"payload-bad"]).unwrap();
        });
        rot(directory.path(), b"payload-bad");
        let files = open(directory.path()).unwrap();
        assert_eq!(last_payload(&files, 1), b"payload-one");
    }
}

/// Every length that a torn write of the last batch can leave.
#[test]
fn a_batch_cut_short_anywhere_is_dropped_whole() {
    let directory = killed(|files| {
        files.append(1, 1, &[b"payload-one"]).unwrap();
        files.append(1, 1, &[b"payload-two", b"payload-six"]).unwrap();
    });
    let file = entry_files(directory.path()).remove(0);
    let whole = fs::read(&file).unwrap();
    let end = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let start = whole.windows(11).position(|window| window == b"payload-two").unwrap()
        - ENTRY_HEADER_BYTES
        - BATCH_HEADER_BYTES;
    for length in start..end {
        let mut torn = whole.clone();
        torn[length..].fill(0);
        fs::write(&file, torn).unwrap();
        let files = open(directory.path()).unwrap();
        assert_eq!(last_payload(&files, 1), b"payload-one", "{length} of {start}..{end}");
        drop(files);
        // Writes of this open must not stand in for the next one's.
        fs::write(&file, &whole).unwrap();
    }
}
