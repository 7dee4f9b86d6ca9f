//! The suite of `EntryLog`, on files and in memory.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use statehouse_journal::memory::{MemoryHabits, MemoryLog};
use statehouse_journal::{EntryLog, SegmentFiles, SegmentOptions, ShardId};
use testkit::entry_log::{Subject, check, fight};

const ID: u64 = 7;

struct Files {
    _directory: tempfile::TempDir,
    path: PathBuf,
    log: Option<Arc<SegmentFiles>>,
}

impl Files {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_owned();
        let log = SegmentFiles::create(&path, ID, &options()).unwrap();
        Self { _directory: directory, path, log: Some(Arc::new(log)) }
    }
}

/// Small segments, so that many are begun and freed.
fn options() -> SegmentOptions {
    SegmentOptions::default().file_bytes_target(16 << 10)
}

impl Subject for Files {
    fn log(&self) -> Arc<dyn EntryLog> {
        self.log.clone().expect("an open log")
    }

    fn reopen(&mut self) {
        drop(self.log.take());
        self.log = Some(Arc::new(SegmentFiles::open(&self.path, ID, &options()).unwrap()));
    }
}

struct Memory(MemoryLog);

impl Subject for Memory {
    fn log(&self) -> Arc<dyn EntryLog> {
        Arc::new(self.0.clone())
    }

    fn reopen(&mut self) {}

    fn forget(&self, shard: ShardId, entries: usize) -> bool {
        self.0.forget(shard, entries);
        true
    }
}

#[test]
fn files_do_the_duties_of_a_log() {
    for seed in 1..=3 {
        let checked = check(&mut Files::new(), seed, 3_000);
        assert!(checked.appended > 1_000 && checked.refused > 100 && checked.reopened > 5, "{checked:?}");
    }
}

#[test]
fn a_log_in_memory_does_the_duties_whatever_its_habits() {
    for (seed, unanswered, late) in [(1, 0, 0), (2, 5, 0), (3, 5, 6), (4, 100, 3)] {
        let habits = MemoryHabits::default().unanswered_one_in(unanswered).late_by_calls(late);
        let checked = check(&mut Memory(MemoryLog::with_habits(habits)), seed, 20_000);
        assert!(checked.appended > 5_000 && checked.refused > 1_000, "{checked:?}");
        assert!(checked.lost > 100 && checked.replaced > 100, "{checked:?}");
        assert_eq!((checked.unknown > 0, checked.late > 0), (unanswered > 0, late > 0), "{checked:?}");
    }
}

#[test]
fn of_appenders_that_fight_for_a_shard_one_wins_each_round() {
    let files = Files::new();
    let fought = fight(&files.log(), 1, 8, 500);
    assert!(fought.entries >= 500 && fought.refused > 0, "{fought:?}");
    let habits = MemoryHabits::default().unanswered_one_in(7).late_by_calls(20).delay(Duration::from_micros(50));
    let memory: Arc<dyn EntryLog> = Arc::new(MemoryLog::with_habits(habits));
    let fought = fight(&memory, 1, 8, 2_000);
    assert!(fought.entries >= 2_000 && fought.refused > 0 && fought.unknown > 0, "{fought:?}");
}
