//! Model: random commands on maps in guarded groups, with owners that change and some that go on, compared with a plain
//! reference, checked in the rows, and applied again.
//!
//! `sim keyed-model --ops N [--seed S] [--stretch K]`. Operations are updates and commits; seals, the other acts, ticks
//! and reads come besides. They are cut into stretches that know nothing of each other, so that they can run side by side and
//! one that fails can be run alone.
//!
//! Numbered checks, each with its own message: (1) the value of a key is the fold of its updates, each once; (2) a commit that
//! was applied is answered as it was the first time, and another one under its number is refused; (3) positions never go
//! back; (4) a guarded group is written by its owner alone; (5) every row is what the maps say, lists are complete, and nothing
//! is left of what was deleted.
//! Would see broken: D1 to D3, O1, and any answer that depends on what the kernel has in memory only.
//! Keeps: the same seed gives the same operations; threads decide only when things happen, never which.

pub(super) mod command;
pub(super) mod compare;
pub(super) mod generator;
pub(super) mod names;
pub(super) mod rows;

use std::time::Instant;

pub(super) use command::Act;
pub(super) use generator::{Generator, Habits};
use testkit::arguments::Arguments;
use testkit::report::Report;

use super::habits::About;
use super::stretch::{Course, Judges};
use super::tally::{Tally, sum};
use crate::stretches;

/// Operations of a stretch.
const STRETCH: u64 = 5_000;

/// In so many operations everything happens at least once.
const EVERYTHING_HAPPENS_IN: u64 = 60_000;

/// Runs the stretches of the keyed model.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let seed = arguments.seed();
    let operations = arguments.number("ops", 60_000);
    println!("keyed-model: seed {seed}, {operations} operations");
    let started = Instant::now();
    let numbers = stretches::numbers(arguments, operations, STRETCH);
    let tally = Tally::default();
    let course = Course { about: About::Keyed, crowd: &[], judges: Judges::All, tally: &tally };
    let failures = stretches::run_all(&numbers, |number| {
        course.run(stretches::seed_of(seed, number), STRETCH.min(operations - number * STRETCH))
    });
    stretches::print_failures("keyed-model", seed, operations, &failures);
    println!(
        "keyed-model: {} operations in {} entries, {} rejections; of {} updates {} were applied, {} known, {} stale, {} in conflict",
        sum(&tally.operations),
        sum(&tally.entries),
        sum(&tally.rejections),
        sum(&tally.updates),
        sum(&tally.updates_applied),
        sum(&tally.updates_known),
        sum(&tally.updates_stale),
        sum(&tally.updates_in_conflict),
    );
    println!(
        "keyed-model: {} commits answered again, {} reused, {} claims of groups, {} writes of old owners refused, {} of nobody",
        sum(&tally.commits_again),
        sum(&tally.commits_reused),
        sum(&tally.claims),
        sum(&tally.fenced),
        sum(&tally.unfenced),
    );
    println!(
        "keyed-model: {} seals, {} updates of later epochs, {} of ordered maps, {} keys and {} maps deleted",
        sum(&tally.seals),
        sum(&tally.epochs),
        sum(&tally.in_order),
        sum(&tally.keys_deleted),
        sum(&tally.maps_deleted),
    );
    println!(
        "keyed-model: {} restores, {} removed keys that checkpoints had, {} reads compared, {} checks, {} reloads, {} restarts, {} images, {} branches forgotten, {:.1} s",
        sum(&tally.restores),
        sum(&tally.keys_noted),
        sum(&tally.reads),
        sum(&tally.checks),
        sum(&tally.reloads),
        sum(&tally.restarts),
        sum(&tally.images),
        sum(&tally.branches_forgotten),
        started.elapsed().as_secs_f64()
    );
    // What never happened was not checked.
    let happened = [
        &tally.updates_applied,
        &tally.updates_known,
        &tally.updates_stale,
        &tally.updates_in_conflict,
        &tally.commits_again,
        &tally.commits_reused,
        &tally.claims,
        &tally.fenced,
        &tally.unfenced,
        &tally.seals,
        &tally.epochs,
        &tally.keys_deleted,
        &tally.maps_deleted,
        &tally.in_order,
        &tally.restores,
        &tally.keys_noted,
        &tally.reloads,
        &tally.restarts,
        &tally.images,
        &tally.replayed,
    ];
    let all_happened = happened.into_iter().all(|count| sum(count) > 0);
    let is_small = arguments.flag("stretch") || operations < EVERYTHING_HAPPENS_IN;
    let ok = failures.is_empty() && (all_happened || is_small);
    let verdict = match failures.len() {
        0 if ok => String::new(),
        0 => "-not-everything-tried".to_owned(),
        count => format!("-{count}-failures"),
    };
    let mut report = Report::new("keyed");
    report.add(
        "model",
        format!("{}-ops-seed-{seed}{verdict}", sum(&tally.operations)),
        &format!("{operations} updates and commits equal to the model, 5 checks hold"),
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
