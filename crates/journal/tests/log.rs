//! The suite of `EntryLog`, on files and in memory, and on both with appends that are gathered.

mod failing_disk;

use std::sync::Arc;
use std::time::Duration;

use failing_disk::{Call, EIO, ENOSPC, FailingDisk, Plan};

use statehouse_journal::EntryLog;
use statehouse_journal::memory::{MemoryHabits, MemoryLog};
use testkit::entry_log::{Failure, Files, Gathering, Memory, Subject, append_together, check, fight};

/// Small, so that many segments are begun and freed.
const SEGMENT_BYTES: u64 = 4 << 10;

#[test]
fn files_do_the_duties_of_a_log() {
    for seed in 1..=3 {
        let checked = check(&mut Files::new(SEGMENT_BYTES), seed, 3_000);
        assert!(
            checked.appended > 1_000 && checked.refused > 100 && checked.mixed > 10 && checked.other_history > 10,
            "{checked:?}"
        );
        assert!(checked.reopened > 2 && checked.moved > 5, "{checked:?}");
    }
}

/// Files on a disk that fails on command.
struct FailingFiles {
    files: Files<FailingDisk>,
    plan: Arc<Plan>,
}

impl Subject for FailingFiles {
    fn log(&self) -> Arc<dyn EntryLog> {
        self.files.log()
    }

    fn reopen(&mut self) {
        self.files.reopen();
    }

    fn file_numbers(&self) -> Option<(u64, u64)> {
        self.files.file_numbers()
    }

    fn fail_next_append(&self, failure: Failure) -> bool {
        let (call, errno) = match failure {
            Failure::NoRoom => (Call::Write, ENOSPC),
            Failure::Write => (Call::Write, EIO),
            Failure::Sync => (Call::Sync, EIO),
        };
        self.plan.fail(Some(call), 0, 1, errno);
        true
    }
}

#[test]
fn files_on_a_disk_that_fails_do_the_duties_of_a_log() {
    for seed in 1..=3 {
        let (disk, plan) = FailingDisk::new();
        let checked = check(&mut FailingFiles { files: Files::on(disk, SEGMENT_BYTES), plan }, seed, 3_000);
        assert!(checked.appended > 1_000 && checked.moved > 5, "{checked:?}");
        assert!(checked.without_room > 5 && checked.broken > 10, "{checked:?}");
        assert_eq!(checked.late, 0, "after opening nothing arrives late: {checked:?}");
    }
}

#[test]
fn a_log_in_memory_does_the_duties_whatever_its_habits() {
    for (seed, unanswered, late) in [(1, 0, 0), (2, 5, 0), (3, 5, 6), (4, 100, 3)] {
        let habits = MemoryHabits::default().unanswered_one_in(unanswered).late_by_calls(late);
        let checked = check(&mut Memory::new(habits), seed, 20_000);
        assert!(checked.appended > 5_000 && checked.refused > 1_000 && checked.mixed > 100, "{checked:?}");
        assert!(checked.lost > 100 && checked.replaced > 100, "{checked:?}");
        assert_eq!((checked.unknown > 0, checked.late > 0), (unanswered > 0, late > 0), "{checked:?}");
    }
}

#[test]
fn of_appenders_that_fight_for_a_shard_one_wins_each_round() {
    let files = Files::new(SEGMENT_BYTES);
    let fought = fight(&files.log(), 1, 8, 500);
    assert!(fought.refused > 0 && fought.unknown == 0, "{fought:?}");
    let habits = MemoryHabits::default().unanswered_one_in(7).late_by_calls(20).delay(Duration::from_micros(50));
    let memory: Arc<dyn EntryLog> = Arc::new(MemoryLog::with_habits(habits));
    let fought = fight(&memory, 1, 8, 2_000);
    assert!(fought.refused > 0 && fought.unknown > 0, "{fought:?}");
}

#[test]
fn gathered_appends_do_the_duties_of_a_log() {
    let checked = check(&mut Gathering::over(Files::new(SEGMENT_BYTES)), 4, 3_000);
    assert!(checked.appended > 1_000 && checked.refused > 100 && checked.moved > 5, "{checked:?}");
    let (disk, plan) = FailingDisk::new();
    let failing = FailingFiles { files: Files::on(disk, SEGMENT_BYTES), plan };
    let checked = check(&mut Gathering::over(failing), 5, 3_000);
    assert!(checked.without_room > 5 && checked.broken > 10, "{checked:?}");
    let habits = MemoryHabits::default().unanswered_one_in(5).late_by_calls(6);
    let checked = check(&mut Gathering::over(Memory::new(habits)), 6, 20_000);
    assert!(checked.lost > 100 && checked.unknown > 0 && checked.late > 0, "{checked:?}");
    let fought = fight(&Gathering::over(Files::new(SEGMENT_BYTES)).log(), 1, 8, 500);
    assert!(fought.refused > 0 && fought.unknown == 0, "{fought:?}");
}

#[test]
fn appenders_with_shards_of_their_own_do_not_concern_each_other() {
    let habits = MemoryHabits::default().unanswered_one_in(9).late_by_calls(5).delay(Duration::from_micros(50));
    let below: [(&str, Box<dyn Subject>, u64); 2] =
        [("files", Box::new(Files::new(SEGMENT_BYTES)), 150), ("memory", Box::new(Memory::new(habits)), 400)];
    for (name, subject, rounds) in below {
        let alone = append_together(&subject.log(), 6, rounds, 1);
        assert!(alone.entries > rounds * 6 && alone.refused > 0, "{name}: {alone:?}");
    }
    let files = Gathering::over(Files::new(SEGMENT_BYTES));
    let memory = Gathering::over(Memory::new(habits));
    for (name, log, rounds) in [("files", files.gathering(), 150), ("memory", memory.gathering(), 400)] {
        let shared: Arc<dyn EntryLog> = log.clone();
        let gathered = append_together(&shared, 6, rounds, 2);
        let meter = log.meter();
        println!("{name}: {gathered:?}, {meter:?}");
        assert!(gathered.entries > rounds * 6 && gathered.refused > 0, "{name}: {gathered:?}");
        assert!(meter.calls < rounds * 6, "{name}: appends of several threads were one call: {meter:?}");
    }
}
