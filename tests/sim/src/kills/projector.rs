//! Projector: a process that appends and projects is killed, again and again, and every projection comes out right.
//!
//! `sim projector-kills --times N [--events N] [--seed S]`. The child appends in several threads, projects in another, and
//! keeps read models in the same commits as their events; it says on a pipe what was answered. After each kill the parent
//! opens the directory: nothing that was answered may be missing, every projection must be what the events up to its
//! position give, and every read model what all events of its run give. At the end the rest is appended, the projector
//! catches up, and all of it must be there.
//! Would see broken: J1, and state and position of a projection that are not in one commit.

mod child;
mod victim;
mod work;

use std::process::ExitCode;
use std::time::Instant;

use testkit::arguments::Arguments;
use testkit::report::Report;

use super::{Killing, print_failure, text};
use crate::directories::fast_directory;
use victim::{ProjectorVictim, Sums};

const CHILD: &str = "projector-child";

/// What the child says first: it may be killed before it has appended anything.
const OPENED: &str = "A directory";

/// The parent's side.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let seed = arguments.seed();
    let (times, events) = (arguments.number("times", 20), arguments.number("events", 100_000));
    println!("projector-kills: seed {seed}, {times} kills, {events} events");
    let started = Instant::now();
    let mut killing = Killing::<Sums>::new(seed);
    let place = fast_directory().map_err(text);
    let outcome =
        place.and_then(|place| killing.in_directory(place, times, |path, _| ProjectorVictim::new(path, times, events)));
    let sums = &killing.sums;
    println!("projector-kills: {killing}; {sums:?}, {:.1} s", started.elapsed().as_secs_f64());
    print_failure("projector-kills", &outcome, &format!("--seed {seed} --times {times} --events {events}"));
    let ok = outcome.is_ok();
    let verdict = if ok { "" } else { "-failed" };
    let mut report = Report::new("runs");
    let figure = format!("{}-kills-{}-events{verdict}", killing.at_work, sums.events);
    report.add("projector", figure, "100 kills while 100,000 events arrive, sums and counts right", ok);
    let figure = format!("{}-models-compared{verdict}", sums.models);
    report.add("projector-model", figure, "equal to the replay after every kill", ok && sums.models > 0);
    report
}

/// The child's side.
pub(crate) fn child(arguments: &Arguments) -> ExitCode {
    child::run(arguments)
}
