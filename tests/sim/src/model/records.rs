//! Model: random commands on records, compared with a plain reference, checked in the rows, and applied again.
//!
//! `sim records-model --ops N [--seed S] [--stretch K] [--checks-alone] [--queues Q]`. With `--queues`, records are in so many
//! queues besides, and each of these has one at the beginning. The operations are cut into stretches that know nothing of
//! each other, so that they can run side by side and one that fails can be run alone.
//!
//! Numbered checks, each with its own message: (1) one holder per record, (2) attempts rise by one, (3) a terminal
//! state is never left, (4) nothing expired is ever read, (5) nothing comes back, (6) counts equal a recount, (7) every
//! index row is what a rebuild gives, (8) every send is delivered exactly once, in order per source. They are judged by
//! the rows and the feed; `--checks-alone` leaves the reference out of it.
//! Would see broken: R1 to R7, and any answer that depends on what the kernel has in memory only.
//! Keeps: the same seed gives the same operations; threads decide only when things happen, never which.

pub(super) mod compare;
pub(super) mod feed;
pub(crate) mod generator;
pub(super) mod names;
pub(super) mod post;
pub(super) mod rows;

use std::time::Instant;

pub(super) use generator::{Generator, time_passed};
pub(crate) use rows::check as check_rows;

use testkit::arguments::Arguments;
use testkit::report::Report;

use super::habits::About;
use super::stretch::{Course, Judges};
use super::tally::{Tally, sum};
use crate::stretches;

/// Commands of a stretch.
const STRETCH: u64 = 5_000;

/// From so many queues on, some claims meet more lanes that stand too early than one command may correct.
const MANY_QUEUES: u64 = 10_000;

/// Runs the stretches of the records model.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let seed = arguments.seed();
    let operations = arguments.number("ops", 60_000);
    println!("records-model: seed {seed}, {operations} operations");
    let started = Instant::now();
    let numbers = stretches::numbers(arguments, operations, STRETCH);
    let judges = if arguments.flag("checks-alone") { Judges::ChecksAlone } else { Judges::All };
    let queues = arguments.number("queues", 0);
    let crowd = names::crowd(queues);
    let tally = Tally::default();
    let course = Course { about: About::Records, crowd, judges, tally: &tally };
    let failures = stretches::run_all(&numbers, |number| {
        let operations = STRETCH.min(operations - number * STRETCH);
        course.run(stretches::seed_of(seed, number), operations)
    });
    stretches::print_failures("records-model", seed, operations, &failures);
    println!(
        "records-model: {} commands in {} entries, {} rejections, {} claims answered, {} rescues, {} expiries",
        sum(&tally.operations),
        sum(&tally.entries),
        sum(&tally.rejections),
        sum(&tally.claims),
        sum(&tally.rescues),
        sum(&tally.expiries),
    );
    println!(
        "records-model: {} reads compared, {} checks, {} reloads, {} images, {} marked messages, {} floors, {:.1} s",
        sum(&tally.reads),
        sum(&tally.checks),
        sum(&tally.reloads),
        sum(&tally.images),
        sum(&tally.sent),
        sum(&tally.forgotten),
        started.elapsed().as_secs_f64()
    );
    let ok = failures.is_empty();
    let verdict = if ok { String::new() } else { format!("-{}-failures", failures.len()) };
    if queues > 0 {
        let mut report = Report::new("pressure");
        let (operations, unfinished) = (sum(&tally.operations), sum(&tally.unfinished));
        let figure = format!("{operations}-ops-{queues}-queues-{unfinished}-repeated-claims-seed-{seed}{verdict}");
        let goal = "claims in order, equal to the model and when applied again; some claims had to be repeated";
        let claimed = sum(&tally.claims) > 0 && (unfinished > 0 || queues < MANY_QUEUES);
        report.add("order", figure, goal, ok && claimed && sum(&tally.replayed) > 0);
        return report;
    }
    let mut report = Report::new("records");
    report.add(
        "model",
        format!("{}-ops-seed-{seed}{verdict}", sum(&tally.operations)),
        "1,000,000 ops equal to the model, 8 checks hold",
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
