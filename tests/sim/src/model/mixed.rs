//! Model: random commands on cells, records, runs and maps in the same transactions, with messages between groups, guards and
//! owners of groups, sent by clients in sessions, compared with a plain reference, checked in the rows, and applied again.
//!
//! `sim mixed-model --ops N [--seed S] [--stretch K] [--topic keyed]`. The numbered checks are those of the models of records, runs and keyed state.
//! Would see broken: K7 (a refused transaction leaves nothing, of any contract), R1 to R7, L1 to L4, D1 to D3, O1, E1, E2, E5, E6, and anything that
//! works for each contract alone.

pub(super) mod compare;
pub(super) mod upkeep;

use std::time::Instant;

use testkit::arguments::Arguments;
use testkit::report::Report;

use super::habits::About;
use super::stretch::{Course, Judges};
use super::tally::{Tally, sum};
use crate::stretches;

/// Commands of a stretch.
const STRETCH: u64 = 5_000;

/// In so many commands everything happens at least once. The rarest is that a key is removed that a checkpoint has: in a few stretches
/// of these.
const EVERYTHING_HAPPENS_IN: u64 = 1_000_000;

/// Runs the stretches of the mixed model.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let seed = arguments.seed();
    let operations = arguments.number("ops", 60_000);
    println!("mixed-model: seed {seed}, {operations} operations");
    let started = Instant::now();
    let numbers = stretches::numbers(arguments, operations, STRETCH);
    let judges = if arguments.flag("checks-alone") { Judges::ChecksAlone } else { Judges::All };
    let tally = Tally::default();
    let course = Course { about: About::Everything, crowd: &[], judges, tally: &tally };
    let failures = stretches::run_all(&numbers, |number| {
        course.run(stretches::seed_of(seed, number), STRETCH.min(operations - number * STRETCH))
    });
    stretches::print_failures("mixed-model", seed, operations, &failures);
    println!(
        "mixed-model: {} commands in {} entries, {} rejections, {} claims, {} appended, {} known, {} forks, {} deletions",
        sum(&tally.operations),
        sum(&tally.entries),
        sum(&tally.rejections),
        sum(&tally.claims),
        sum(&tally.appended),
        sum(&tally.known),
        sum(&tally.forks),
        sum(&tally.deletions),
    );
    println!(
        "mixed-model: {} answered again, {} numbers used twice, {} evicted, {} of sessions that are gone, {} busy",
        sum(&tally.repeats),
        sum(&tally.reused),
        sum(&tally.evicted),
        sum(&tally.expired),
        sum(&tally.busy),
    );
    println!(
        "mixed-model: {} updates of maps applied, {} known, {} stale, {} commits answered again, {} reused, {} writes of old owners refused, {} of nobody, {} restores, {} removed keys that checkpoints had",
        sum(&tally.updates_applied),
        sum(&tally.updates_known),
        sum(&tally.updates_stale),
        sum(&tally.commits_again),
        sum(&tally.commits_reused),
        sum(&tally.fenced),
        sum(&tally.unfenced),
        sum(&tally.restores),
        sum(&tally.keys_noted),
    );
    println!(
        "mixed-model: {} branches deleted, {} forgotten, {} rescues, {} expiries, {} marked messages, {} reads compared, {} checks, {} reloads, {} images, {:.1} s",
        sum(&tally.branches_deleted),
        sum(&tally.branches_forgotten),
        sum(&tally.rescues),
        sum(&tally.expiries),
        sum(&tally.sent),
        sum(&tally.reads),
        sum(&tally.checks),
        sum(&tally.reloads),
        sum(&tally.images),
        started.elapsed().as_secs_f64()
    );
    // What never happened was not checked.
    let happened = [
        &tally.claims,
        &tally.rescues,
        &tally.expiries,
        &tally.appended,
        &tally.known,
        &tally.forks,
        &tally.deletions,
        &tally.repeats,
        &tally.reused,
        &tally.evicted,
        &tally.expired,
        &tally.busy,
        &tally.branches_forgotten,
        &tally.sent,
        &tally.updates_applied,
        &tally.updates_known,
        &tally.updates_stale,
        &tally.updates_in_conflict,
        &tally.commits_again,
        &tally.commits_reused,
        &tally.fenced,
        &tally.unfenced,
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
    // It shows two topics at once: that the contracts hold together, and that keyed state does among the others.
    let topic = if arguments.text("topic") == Some("keyed") { "keyed" } else { "inside" };
    let mut report = Report::new(topic);
    report.add(
        "mixed",
        format!("{}-ops-seed-{seed}{verdict}", sum(&tally.operations)),
        &format!("{operations} ops on all contracts equal to the model, and when applied again"),
        ok,
    );
    report
}
