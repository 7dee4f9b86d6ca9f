//! The duties of a log of entries, at size: `sim entry-log [--ops N] [--rounds N] [--seed S] [--only files|memory]`.
//!
//! Random operations on a log in files and on one in memory that delays, forgets and does not answer; then eight appenders
//! that fight for a shard of each.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use journal::memory::{MemoryHabits, MemoryLog};
use journal::{EntryLog, SegmentFiles, SegmentOptions, ShardId};
use testkit::arguments::Arguments;
use testkit::entry_log::{Checked, Fought, Subject, check, fight};
use testkit::report::Report;

const ID: u64 = 7;
/// The shard that is fought for.
const FOUGHT_FOR: ShardId = 1;
const APPENDERS: u64 = 8;

pub(crate) fn run(arguments: &Arguments) -> Report {
    let (operations, rounds) = (arguments.number("ops", 1_000_000), arguments.number("rounds", 100_000));
    let (seed, only) = (arguments.seed(), arguments.text("only"));
    println!("entry-log: seed {seed}, {operations} operations, {rounds} rounds");
    let mut report = Report::new("inside");
    let habits = MemoryHabits::default().unanswered_one_in(50).late_by_calls(4);
    let slow = habits.unanswered_one_in(20).delay(Duration::from_micros(20));
    if only.is_none_or(|only| only == "files") {
        checked(&mut report, "files", operations, &mut Files::new(), seed);
        fought(&mut report, "files", rounds, &Files::new().log());
    }
    if only.is_none_or(|only| only == "memory") {
        checked(&mut report, "memory", operations, &mut Memory(MemoryLog::with_habits(habits)), seed);
        fought(&mut report, "memory", rounds, &Memory(MemoryLog::with_habits(slow)).log());
    }
    report
}

fn checked(report: &mut Report, name: &str, operations: u64, subject: &mut dyn Subject, seed: u64) {
    let done = catch_unwind(AssertUnwindSafe(|| check(subject, seed, operations)));
    println!("entry-log: {name}: {done:?}");
    let figure = match &done {
        Ok(Checked { operations, .. }) => format!("{operations}-ops"),
        Err(_) => "failed".to_owned(),
    };
    let goal = format!("{operations} random operations do what a log must");
    report.add(&format!("log.{name}"), figure, &goal, done.is_ok());
}

fn fought(report: &mut Report, name: &str, rounds: u64, log: &Arc<dyn EntryLog>) {
    let done = catch_unwind(AssertUnwindSafe(|| fight(log, FOUGHT_FOR, APPENDERS, rounds)));
    println!("entry-log: {name}: {done:?}");
    let (figure, ok) = match done {
        Ok(Fought { entries, refused, .. }) => (format!("{entries}-entries-{refused}-refused"), entries >= rounds),
        Err(_) => ("failed".to_owned(), false),
    };
    let goal = format!("{rounds} rounds of {APPENDERS} appenders: one chain, every acknowledged entry in it once");
    report.add(&format!("log.fight-{name}"), figure, &goal, ok);
}

/// A log in files, with small segments.
struct Files {
    _directory: tempfile::TempDir,
    path: PathBuf,
    log: Option<Arc<SegmentFiles>>,
}

impl Files {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().to_owned();
        let log = SegmentFiles::create(&path, ID, &options()).expect("a journal");
        Self { _directory: directory, path, log: Some(Arc::new(log)) }
    }
}

fn options() -> SegmentOptions {
    SegmentOptions::default().file_bytes_target(64 << 10)
}

impl Subject for Files {
    fn log(&self) -> Arc<dyn EntryLog> {
        self.log.clone().expect("an open log")
    }

    fn reopen(&mut self) {
        drop(self.log.take());
        self.log = Some(Arc::new(SegmentFiles::open(&self.path, ID, &options()).expect("the journal")));
    }
}

/// A log in memory.
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
