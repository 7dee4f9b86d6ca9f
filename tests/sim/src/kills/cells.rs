//! Cells: a child process writes from many threads and is killed, again and again, in the same directories.
//!
//! `sim kill --times N [--seed S]`. The child says on a pipe what it is about to write and what was answered. After
//! each kill the parent opens a copy of the directory and compares: nothing that was answered may be missing, nothing
//! may be there twice, and nothing that was never asked for. The next child recovers the directory itself, and must
//! come to the same state as the copy did.
//!
//! Would see broken: J1 (what was answered is durable), S1 (the store is exactly one of its flushes), D2 (a directory that
//! is killed while it is made can be made again) and K1 (an entry is not applied twice).
//!
//! Sizes of tables and files are small in most directories, so that flushes, new files and cuts are under way when the
//! process dies.

mod child;
mod found;
mod ledger;
mod victim;
mod written;

use std::process::ExitCode;
use std::time::Instant;

use ledger::Sums;
use testkit::arguments::Arguments;
use testkit::report::Report;
use victim::CellsVictim;

use super::{Killing, print_failure};

/// Directories in a run of many kills; each is killed over and over.
const DIRECTORIES: u64 = 20;

const CHILD: &str = "kill-child";

/// The parent's side.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let (seed, times) = (arguments.seed(), arguments.number("times", 20));
    println!("kill: seed {seed}, {times} kills");
    let started = Instant::now();
    let mut killing = Killing::<Sums>::new(seed);
    let outcome = killing.in_many_directories(times, times.div_ceil(DIRECTORIES).max(5), CellsVictim::new);
    if outcome.is_err() && killing.sums.is_sound() {
        killing.sums.wrong += 1;
    }
    let sums = &killing.sums;
    println!("kill: {killing}; {sums}, {:.1} s", started.elapsed().as_secs_f64());
    print_failure("kill", &outcome, &format!("--seed {seed} --times {times}"));
    let ok = outcome.is_ok() && sums.is_sound() && sums.answered > 0;
    let mut report = Report::new("cells");
    let figure = format!("{}-kills-{}-lost-{}-doubled", killing.at_work, sums.lost, sums.doubled);
    let wrong = if sums.wrong == 0 { String::new() } else { format!("-{}-wrong", sums.wrong) };
    report.add("kill", format!("{figure}{wrong}"), "500 kills, 0 lost, 0 doubled", ok);
    report
}

/// The child's side.
pub(crate) fn child(arguments: &Arguments) -> ExitCode {
    child::run(arguments)
}
