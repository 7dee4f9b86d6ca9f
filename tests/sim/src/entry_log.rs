//! The duties of a log of entries, at size: `sim entry-log [--ops N] [--rounds N] [--seed S] [--only files|memory|gathering]`.
//!
//! Random operations on a log in files, on one in memory that delays, forgets and does not answer, and on both with appends
//! that are gathered; then eight appenders that fight for a shard of each, and eight that have shards of their own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use journal::memory::MemoryHabits;
use journal::{EntryLog, ShardId};
use testkit::arguments::Arguments;
use testkit::entry_log::{Checked, Files, Fought, Gathering, Memory, Subject, append_together, check, fight};
use testkit::report::Report;

/// Small, so that many segments are begun and freed.
const SEGMENT_BYTES: u64 = 16 << 10;
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
        let did = |done: &Checked| done.refused > 0 && done.mixed > 0 && done.moved > 0 && done.reopened > 0;
        checked(&mut report, "files", operations, &mut Files::new(SEGMENT_BYTES), seed, did);
        fought(&mut report, "files", rounds, &Files::new(SEGMENT_BYTES).log(), |done| done.refused > 0);
    }
    if only.is_none_or(|only| only == "memory") {
        let did = |done: &Checked| {
            let loses = done.lost > 0 && done.replaced > 0;
            done.refused > 0 && done.mixed > 0 && loses && done.unknown > 0 && done.late > 0
        };
        checked(&mut report, "memory", operations, &mut Memory::new(habits), seed, did);
        let did = |done: &Fought| done.refused > 0 && done.unknown > 0;
        fought(&mut report, "memory", rounds, &Memory::new(slow).log(), did);
    }
    if only.is_none_or(|only| only == "gathering") {
        let did = |done: &Checked| done.refused > 0 && done.mixed > 0 && done.moved > 0 && done.reopened > 0;
        let mut files = Gathering::over(Files::new(SEGMENT_BYTES));
        checked(&mut report, "gathering-files", operations, &mut files, seed, did);
        let did = |done: &Checked| done.mixed > 0 && done.lost > 0 && done.unknown > 0 && done.late > 0;
        let mut memory = Gathering::over(Memory::new(habits));
        checked(&mut report, "gathering-memory", operations, &mut memory, seed, did);
        // Another rhythm than that of the appenders, who take turns here: or only appends that are refused would be lost.
        let log = Gathering::over(Memory::new(slow.unanswered_one_in(21))).log();
        fought(&mut report, "gathering", rounds, &log, |done| done.refused > 0 && done.unknown > 0);
        let calls = rounds / APPENDERS;
        appended_together(&mut report, "files", &Gathering::over(Files::new(1 << 20)), calls, seed);
        appended_together(&mut report, "memory", &Gathering::over(Memory::new(slow)), calls, seed);
    }
    report
}

/// Appenders with shards of their own, who share calls.
fn appended_together<S: Subject>(report: &mut Report, name: &str, subject: &Gathering<S>, calls: u64, seed: u64) {
    let log = subject.gathering();
    let shared: Arc<dyn EntryLog> = log.clone();
    let done = catch_unwind(AssertUnwindSafe(|| append_together(&shared, APPENDERS, calls, seed)));
    let meter = log.meter();
    println!("entry-log: together on {name}: {done:?}, {meter:?}");
    let made = APPENDERS * calls;
    let (figure, ok) = match &done {
        Ok(done) => (format!("{made}-calls-were-{}", meter.calls), done.refused > 0 && meter.calls < made),
        Err(_) => ("failed".to_owned(), false),
    };
    let goal =
        format!("{APPENDERS} appenders with shards of their own: fewer calls than they made, each shard one chain");
    report.add(&format!("log.together-{name}"), figure, &goal, ok);
}

/// `did` says whether everything happened that was to be checked.
fn checked(
    report: &mut Report,
    name: &str,
    operations: u64,
    subject: &mut dyn Subject,
    seed: u64,
    did: impl Fn(&Checked) -> bool,
) {
    let done = catch_unwind(AssertUnwindSafe(|| check(subject, seed, operations)));
    println!("entry-log: {name}: {done:?}");
    let (figure, ok) = match &done {
        Ok(done) => (format!("{}-ops", done.operations), did(done)),
        Err(_) => ("failed".to_owned(), false),
    };
    let goal = format!("{operations} random operations do what a log must");
    report.add(&format!("log.{name}"), figure, &goal, ok);
}

fn fought(report: &mut Report, name: &str, rounds: u64, log: &Arc<dyn EntryLog>, did: impl Fn(&Fought) -> bool) {
    let done = catch_unwind(AssertUnwindSafe(|| fight(log, FOUGHT_FOR, APPENDERS, rounds)));
    println!("entry-log: {name}: {done:?}");
    let (figure, ok) = match &done {
        Ok(done) => (format!("{}-entries-{}-refused", done.entries, done.refused), did(done)),
        Err(_) => ("failed".to_owned(), false),
    };
    let goal = format!("{rounds} rounds of {APPENDERS} appenders: one chain, every acknowledged entry in it once");
    report.add(&format!("log.fight-{name}"), figure, &goal, ok);
}
