//! Model: random commands of clients on a bad line, for a user's machine in a kernel, compared with a plain reference,
//! checked in the rows, and applied again.
//!
//! `sim sessions-model --ops N [--seed S] [--stretch K]`. The commands are cut into stretches that know nothing of each
//! other, so that they can run side by side and one that fails can be run alone.
//!
//! Numbered checks, each with its own message: (1) each request of a session is executed at most once, by the machine's
//! own book and by the reference's, (2) a repeat gets the same bytes, or `Evicted` exactly below the floor, or
//! `SessionExpired`, and what is busy is not stored, (3) an acknowledgement removes exactly what it names, (4) pushes are
//! numbered from 1 without a gap and each pending one is there with its bytes, (5) an image restores every row, and the same
//! entries do the same on what is restored, (6) every row of sessions belongs to one, the count of sessions is exact, and
//! nothing is left of a session that has ended.
//!
//! Then images lose the stored answers, and only what clients are answered is judged: (1) or (2) must be found broken.
//! Would see broken: E1 to E6.
//! Keeps: the same seed gives the same commands; threads decide only when things happen, never which.

pub(super) mod compare;
pub(super) mod deeds;
pub(super) mod machine;
pub(super) mod rows;

use std::time::Instant;

use testkit::arguments::Arguments;
use testkit::report::Report;

use super::habits::About;
use super::stretch::{Course, Judges};
use super::tally::{Tally, sum};
use crate::stretches;

/// Commands of a stretch.
const STRETCH: u64 = 5_000;

/// Stretches of the run that must find the known bug.
const CANARY_STRETCHES: u64 = 4;

/// Runs the stretches of the sessions model.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let seed = arguments.seed();
    let commands = arguments.number("ops", 60_000);
    println!("sessions-model: seed {seed}, {commands} commands");
    let started = Instant::now();
    let numbers = stretches::numbers(arguments, commands, STRETCH);
    let is_part = arguments.flag("stretch");
    let tally = Tally::default();
    let course = Course { about: About::Sessions, crowd: &[], judges: Judges::All, tally: &tally };
    let failures = stretches::run_all(&numbers, |number| {
        course.run(stretches::seed_of(seed, number), STRETCH.min(commands.saturating_sub(number * STRETCH)))
    });
    stretches::print_failures("sessions-model", seed, commands, &failures);
    println!(
        "sessions-model: {} commands in {} entries, {} requests executed once, {} answered again, {} numbers used twice",
        sum(&tally.operations),
        sum(&tally.entries),
        sum(&tally.executed),
        sum(&tally.repeats),
        sum(&tally.reused),
    );
    println!(
        "sessions-model: {} evicted, {} busy, {} of sessions that are gone, {} checks, {} reloads, {} restarts, {} images, {:.1} s",
        sum(&tally.evicted),
        sum(&tally.busy),
        sum(&tally.expired),
        sum(&tally.checks),
        sum(&tally.reloads),
        sum(&tally.restarts),
        sum(&tally.images),
        started.elapsed().as_secs_f64()
    );
    // What never happened was not checked.
    let happened = [
        &tally.executed,
        &tally.repeats,
        &tally.reused,
        &tally.evicted,
        &tally.busy,
        &tally.expired,
        &tally.reloads,
        &tally.restarts,
        &tally.images,
        &tally.replayed,
    ];
    let all_happened = is_part || happened.into_iter().all(|count| sum(count) > 0);
    let ok = failures.is_empty() && all_happened;
    let verdict = match failures.len() {
        0 if all_happened => "equal to the model".to_owned(),
        0 => "not everything tried".to_owned(),
        count => format!("{count} failures"),
    };
    let mut report = Report::new("sessions");
    let figure = format!("{} commands, {verdict}, seed {seed}", sum(&tally.operations));
    report.add("model", figure, "1,000,000 commands equal to the model, 6 checks hold", ok);
    let found = find_canary(seed);
    let figure = if found { "found" } else { "not found" };
    report.add("model-canary", figure, "images that forget answers found out by what requests are answered", found);
    report
}

/// Whether images that lose the stored answers are found out: by a request that is executed again, or one that is
/// executed though its session has as many answers as it may have.
fn find_canary(seed: u64) -> bool {
    let numbers: Vec<u64> = (0..CANARY_STRETCHES).collect();
    let tally = Tally::default();
    let course = Course { about: About::Sessions, crowd: &[], judges: Judges::AnswersAfterForgetting, tally: &tally };
    let failures = stretches::run_all(&numbers, |number| course.run(stretches::seed_of(!seed, number), STRETCH));
    for (number, what) in &failures {
        println!("sessions-model: with images that forget answers, in stretch {number}: {what}");
    }
    failures.iter().any(|(_, what)| what.starts_with("(1)") || what.starts_with("(2)"))
}
