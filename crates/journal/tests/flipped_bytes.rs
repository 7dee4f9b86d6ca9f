//! A journal with one flipped byte, for each of its bytes: what is read is right, and nothing durable is lost in silence
//! (J2, J3).

#![allow(clippy::unwrap_used)]

mod file_contents;

use std::fs;
use std::path::Path;

use statehouse_journal::{Append, EntryKind, EntryLog, JournalError, SegmentFiles, SegmentOptions};

use file_contents::contents;

const ID: u64 = 80;

/// One byte of any file is flipped, in a journal of three segments with two shards. Nothing wrong is ever read, nothing
/// at or below the watermark is lost in silence, and a refusal changes nothing.
#[test]
fn no_flipped_byte_is_missed() {
    let options = SegmentOptions::default().file_bytes_target(1 << 10);
    let live = tempfile::tempdir().unwrap();
    let files = SegmentFiles::create(live.path(), ID, &options).unwrap();
    let payload = |shard: u64, index: u64| format!("entry {index} of shard {shard}").into_bytes();
    let append = |shard: u64, count: u64| {
        let first = files.last_index(shard).unwrap_or(0) + 1;
        let payloads: Vec<Vec<u8>> = (first..first + count).map(|index| payload(shard, index)).collect();
        let borrowed: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
        files.append(shard, 1, &borrowed).unwrap();
    };
    let append_to_both = || {
        let payloads = [1, 2].map(|shard| payload(shard, files.last_index(shard).unwrap() + 1));
        let entry = |shard: u64, payload| {
            let after = files.ends(shard).unwrap().last;
            Append { shard, after, kind: EntryKind::COMMANDS, term: 1, node: 0, history: ID, payload }
        };
        let answers = files.append_behind(&[entry(1, &payloads[0]), entry(2, &payloads[1])]);
        assert!(answers.iter().all(Result::is_ok));
    };
    for round in 0..10 {
        append(1 + round % 2, 1 + round % 3);
        if round % 4 == 3 {
            append_to_both();
        }
    }
    files.cut(1, 3).unwrap();
    for _ in 0..3 {
        append(1, 2);
    }
    files.upkeep().unwrap();
    files.settle().unwrap();
    let durable = [1, 2].map(|shard| files.last_index(shard).unwrap());
    append(2, 2);
    append_to_both();
    let first = [1, 2].map(|shard| files.first_index(shard).unwrap());
    let last = [1, 2].map(|shard| files.last_index(shard).unwrap());
    assert!(files.first_index(1) > Some(1), "something was given up");
    let whole = contents(live.path());
    assert!(whole.len() > 5, "{}", whole.len());
    // In memory, where there is such a place: this opens thousands of journals.
    let trial = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    fs::create_dir(trial.path().join("segments")).unwrap();
    let place = |path: &Path| trial.path().join(path.strip_prefix(live.path()).unwrap());

    let (mut refused, mut found, mut tails, mut unused) = (0, 0, 0, 0);
    for (path, bytes) in &whole {
        // Of the reserved bytes, which mean nothing, some are enough.
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        for position in (0..end).chain((end..bytes.len()).step_by(97)) {
            for name in fs::read_dir(trial.path().join("segments")).unwrap() {
                fs::remove_file(name.unwrap().path()).unwrap();
            }
            for (path, bytes) in &whole {
                fs::write(place(path), bytes).unwrap();
            }
            let mut flipped = bytes.clone();
            flipped[position] ^= 0x10;
            fs::write(place(path), &flipped).unwrap();
            let at = format!("{} byte {position}", path.display());
            let before = contents(trial.path());
            let files = match SegmentFiles::open(trial.path(), ID, &options) {
                Ok(files) => files,
                Err(error) => {
                    assert!(matches!(error, JournalError::Damaged { .. }), "{at}: {error}");
                    assert!(contents(trial.path()) == before, "{at}: a refusal changes nothing");
                    refused += 1;
                    continue;
                }
            };
            let mut damaged = false;
            let mut shorter = Vec::new();
            for (shard, position) in [(1, 0), (2, 1)] {
                assert_eq!(files.first_index(shard), Some(first[position]), "{at}");
                let opened = files.last_index(shard).unwrap();
                assert!(opened >= durable[position], "{at}: entry {opened} is below the watermark");
                shorter.extend((opened < last[position]).then_some(shard));
                for index in first[position]..=opened {
                    match files.read(shard, index, 0) {
                        Ok(read) => assert_eq!(read[0].0.payload, payload(shard, index), "{at}"),
                        Err(_) => damaged = true,
                    }
                }
            }
            // Only the last batch can be taken for a torn one, and only as a whole.
            let without_last = [1, 2].map(|shard| files.last_index(shard).unwrap() + 1) == last;
            assert!(shorter.is_empty() || (shorter == [1, 2] && without_last), "{at}");
            assert!(!damaged || files.verify().is_err(), "{at}: verify does not find it");
            match (damaged, shorter.is_empty()) {
                (true, _) => found += 1,
                (false, false) => tails += 1,
                (false, true) => unused += 1,
            }
        }
    }
    println!("{refused} refused, {found} found when read, {tails} taken for a tail, {unused} unused");
    assert!(refused > 500 && found > 300 && tails > 50 && unused > 100);
}
