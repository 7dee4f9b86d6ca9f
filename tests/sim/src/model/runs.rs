//! Model: random appends, forks, ends and reads of runs, compared with a plain reference, checked in the rows, and applied
//! again.
//!
//! `sim runs-model --ops N [--seed S] [--stretch K]`. Operations are appends, the other acts and reads. They are cut into
//! stretches that know nothing of each other, so that they can run side by side and one that fails can be run alone.
//!
//! Numbered checks, each with its own message: (1) order: sequences from 1 without a gap, each event names the one before;
//! (2) uniqueness by sequence, key and id, and the same answer to the same key for the life of the run; (3) immutability: a
//! running hash over every prefix of every run never changes; (4) the projection is what the contract's replay gives, at
//! every sequence that a reader can see; (5) lists and counts equal a recount, and every index row is what the heads say;
//! (6) deleted runs answer that they are archived, their rows go and only their heads stay, and a fork keeps reading what
//! it shares.
//! Would see broken: L1 to L4, and any answer that depends on what the kernel has in memory only.
//! Keeps: the same seed gives the same operations; threads decide only when things happen, never which.

pub(super) mod book;
pub(super) mod command;
pub(super) mod compare;
mod generator;
pub(super) mod rows;

use std::time::Instant;

pub(super) use generator::{Generator, Habits, time_passed};
use testkit::arguments::Arguments;
use testkit::report::Report;

use super::habits::About;
use super::stretch::{Course, Judges};
use super::tally::{Tally, sum};
use crate::stretches;

/// Operations of a stretch.
const STRETCH: u64 = 5_000;

/// Runs the stretches of the runs model.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let seed = arguments.seed();
    let operations = arguments.number("ops", 60_000);
    println!("runs-model: seed {seed}, {operations} operations");
    let started = Instant::now();
    let numbers = stretches::numbers(arguments, operations, STRETCH);
    let tally = Tally::default();
    let course = Course { about: About::Runs, crowd: &[], judges: Judges::All, tally: &tally };
    let failures = stretches::run_all(&numbers, |number| {
        course.run(stretches::seed_of(seed, number), STRETCH.min(operations - number * STRETCH))
    });
    stretches::print_failures("runs-model", seed, operations, &failures);
    println!(
        "runs-model: {} operations in {} entries: {} appended, {} known, {} of them with another content, {} rejections",
        sum(&tally.operations),
        sum(&tally.entries),
        sum(&tally.appended),
        sum(&tally.known),
        sum(&tally.mismatches),
        sum(&tally.rejections),
    );
    println!(
        "runs-model: {} forks, {} deletions, {} reads compared, {} checks, {} reloads, {} images, {:.1} s",
        sum(&tally.forks),
        sum(&tally.deletions),
        sum(&tally.reads),
        sum(&tally.checks),
        sum(&tally.reloads),
        sum(&tally.images),
        started.elapsed().as_secs_f64()
    );
    let ok = failures.is_empty();
    let verdict = if ok { String::new() } else { format!("-{}-failures", failures.len()) };
    let mut report = Report::new("runs");
    report.add(
        "model",
        format!("{}-ops-seed-{seed}{verdict}", sum(&tally.operations)),
        "1,000,000 appends and reads equal to the model, 6 checks hold",
        ok,
    );
    report.add(
        "model-replay",
        format!("{}-entries-again{verdict}", sum(&tally.replayed)),
        "same entries applied again, with reloads and an image between: equal hashes",
        ok && sum(&tally.replayed) > 0,
    );
    report
}
