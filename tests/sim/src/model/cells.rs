//! Model: random operations on cells, compared with a plain reference, and applied again to the same bytes.
//!
//! `sim model --ops N [--seed S] [--stretch K]`. The operations are cut into stretches that know nothing of each
//! other, so that they can run side by side and one that fails can be run alone. Most are at the level of the kernel,
//! on stores in memory and on disk; one in twenty operations goes through the library, in a directory with a journal.
//!
//! Would see broken: K1 (a restart applies each entry once), K2 and K3 (versions and histories), K4 (stamps), K5 (keys:
//! lists and the number of rows), K6 (numbers of branches), K7 (a rejected transaction leaves nothing), K8 (lists of all groups), and of the store
//! below S1 (a restart finds a whole flush) and S2 (a view never changes).
//! Keeps: the same seed gives the same operations; threads decide only when things happen, never which.

mod command;
pub(super) mod compare;
pub(super) mod generator;
mod library_level;
mod names;

use std::time::Instant;

use testkit::arguments::Arguments;
use testkit::report::Report;

use super::habits::About;
use super::stretch::{Course, Judges};
use super::tally::{Tally, sum};
use crate::stretches::{print_failures, run_all, seed_of};

/// Operations of a stretch at the level of the kernel.
const KERNEL_STRETCH: u64 = 10_000;

/// Operations of a stretch through the library.
const LIBRARY_STRETCH: u64 = 2_500;

/// One operation in this many goes through the library.
const LIBRARY_SHARE: u64 = 20;

/// Runs the stretches of the cells model.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let seed = arguments.seed();
    let operations = arguments.number("ops", 60_000);
    println!("model: seed {seed}, {operations} operations");
    let started = Instant::now();
    let mut stretches = plan(operations);
    let is_part = arguments.flag("stretch");
    if is_part {
        let only = arguments.number("stretch", 0);
        stretches.retain(|stretch| stretch.number == only);
    }
    let tally = Tally::default();
    let course = Course { about: About::Cells, crowd: &[], judges: Judges::All, tally: &tally };
    let numbers: Vec<u64> = stretches.iter().map(|stretch| stretch.number).collect();
    let failures = run_all(&numbers, |number| {
        let stretch = stretches.iter().find(|stretch| stretch.number == number).expect("one of the plan");
        let seed = seed_of(seed, number);
        match stretch.level {
            Level::Kernel => course.run(seed, stretch.operations),
            Level::Library => library_level::run(seed, stretch.operations, &tally),
        }
    });
    print_failures("model", seed, operations, &failures);
    println!(
        "model: {} operations in {} entries, {} rejections, {} interactive transactions with {} conflicts",
        sum(&tally.operations),
        sum(&tally.entries),
        sum(&tally.rejections),
        sum(&tally.transactions),
        sum(&tally.conflicts),
    );
    println!(
        "model: {} reads compared, {} restarts, {} images, {} walks, {:.1} s",
        sum(&tally.reads),
        sum(&tally.restarts),
        sum(&tally.images),
        sum(&tally.walks),
        started.elapsed().as_secs_f64()
    );
    let ok = failures.is_empty();
    let verdict = if ok { String::new() } else { format!("-{}-failures", failures.len()) };
    let done = sum(&tally.operations);
    let (again, from_image) = (sum(&tally.replayed), sum(&tally.replayed_from_image));
    let mut report = Report::new("cells");
    report.add(
        "model",
        format!("{done}-ops-seed-{seed}{verdict}"),
        "1,000,000 ops equal to the model, equal hashes",
        ok,
    );
    report.add(
        "model-replay",
        format!("{again}-entries-again-{from_image}-over-an-image{verdict}"),
        "same entries applied twice, and with an image in the middle: equal bytes and hash",
        ok && (again > 0 || is_part),
    );
    report
}

/// A part of the run.
struct Stretch {
    number: u64,
    level: Level,
    operations: u64,
}

#[derive(Clone, Copy)]
enum Level {
    Kernel,
    Library,
}

fn plan(operations: u64) -> Vec<Stretch> {
    let library = operations / LIBRARY_SHARE;
    let mut stretches = Vec::new();
    for (level, mut left, most) in
        [(Level::Library, library, LIBRARY_STRETCH), (Level::Kernel, operations - library, KERNEL_STRETCH)]
    {
        while left > 0 {
            let operations = left.min(most);
            left -= operations;
            stretches.push(Stretch { number: stretches.len() as u64, level, operations });
        }
    }
    stretches
}
