//! Checks that take longer than a topic may. A run does some of them, and the figure is of all runs in the ledger.
//!
//! Keeps: a check that failed is short until it has passed as often as the goal says, from then on. Never: starts another
//! check after a while; the whole topic must end within two hours.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::breaks::{self, Break};
use super::figures::{Figure, Report};
use super::ledger::{Ledger, Sum};
use super::suite;
use crate::process::cargo;

/// After this long, a run of an item starts nothing more.
const STARTS_WITHIN: Duration = Duration::from_secs(20 * 60);

/// A figure that is summed over runs.
pub(super) struct Part {
    /// The name of the item, or one that begins with it and a dot.
    pub(super) figure: &'static str,
    /// How much there must be of what.
    pub(super) goal: u64,
    pub(super) unit: &'static str,
    /// How much of it is done at once.
    pub(super) each: u64,
    pub(super) does: Does,
}

/// What is done at once.
pub(super) enum Does {
    /// Cargo's arguments for a program with these arguments. It says `show TOPIC FIGURE ...` itself.
    Program { cargo: &'static str, arguments: &'static str },
    /// The whole test suite beside busy loops.
    Suite,
    /// A program that must notice a deliberate break.
    Break(Break),
}

impl Part {
    pub(super) fn command_line(&self) -> String {
        let Self { figure, goal, unit, each, does } = self;
        let what = match does {
            Does::Program { cargo, arguments } => format!("cargo {cargo} {arguments}"),
            Does::Suite => suite::DESCRIPTION.to_owned(),
            Does::Break(Break { file, noticed_by, .. }) => format!("sim {noticed_by}, with a break in {file}"),
        };
        format!("{figure}: {what} ({goal} {unit}, {each} at once)")
    }

    fn is_done(&self, sum: Sum) -> bool {
        !sum.failed && sum.count >= self.goal
    }

    fn figure(&self, topic: &str, sum: Sum) -> Figure {
        let Self { figure, goal, unit, .. } = self;
        let Sum { count, runs, failed } = sum;
        let short = !self.is_done(sum);
        let said = if failed { "failed-last".to_owned() } else { format!("{count}-{unit}-in-{runs}-runs-0-failures") };
        let verdict = if short { "short" } else { "ok" };
        Figure::measured(format!("show {topic} {figure} {said} (goal {goal} {unit}, 0 failures) {verdict}"), short)
    }
}

/// Does some of the parts, those first that have not reached their goals, or one of them alone, and reports all of them.
pub(super) fn run(
    root: &Path,
    topic: &str,
    parts: &[Part],
    only: Option<&Part>,
    report: &mut Report,
) -> Result<(), String> {
    let may_run: Vec<&Part> = only.map_or(parts.iter().collect(), |only| vec![only]);
    let mut ledger = Ledger::read(root)?;
    let name = |part: &Part| format!("{topic} {}", part.figure);
    let began = Instant::now();
    // At least one: whoever asks for a run wants to see something.
    let mut next = may_run.iter().find(|part| !part.is_done(ledger.sum(&name(part)))).or(may_run.first());
    while let Some(part) = next {
        let (passed, said) = run_part(root, topic, part)?;
        ledger.note(&name(part), part.each, passed, &said)?;
        let left = may_run.iter().find(|part| !part.is_done(ledger.sum(&name(part))));
        next = left.filter(|_| passed && began.elapsed() < STARTS_WITHIN);
    }
    parts.iter().for_each(|part| report.push(part.figure(topic, ledger.sum(&name(part)))));
    Ok(())
}

/// Whether a part passed, and what it said.
fn run_part(root: &Path, topic: &str, part: &Part) -> Result<(bool, String), String> {
    println!("\nshow: {}", part.command_line());
    match &part.does {
        Does::Suite => Ok((suite::round(root)?, "the whole suite".to_owned())),
        Does::Break(broken) => Ok((breaks::is_noticed(root, broken)?, broken.noticed_by.to_owned())),
        Does::Program { cargo: line, arguments } => {
            let mut report = Report::default();
            let mut command = cargo(root, &format!("{line} {arguments}"));
            report.collect(topic, part.figure, &mut command, &mut io::stdout())?;
            let said: Vec<_> = report.figures().iter().map(|figure| figure.text.as_str()).collect();
            Ok((report.is_free_of(|figure| figure.short), said.join("; ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_and_failures_are_short() {
        let part = Part { figure: "suite", goal: 20, unit: "rounds", each: 1, does: Does::Suite };
        let figure = |count, runs, failed| part.figure("pressure", Sum { count, runs, failed });
        for (sum, said, verdict) in [
            ((6, 6, false), "6-rounds-in-6-runs-0-failures", "short"),
            ((19, 19, false), "19-rounds-in-19-runs-0-failures", "short"),
            ((20, 3, false), "20-rounds-in-3-runs-0-failures", "ok"),
            ((24, 4, false), "24-rounds-in-4-runs-0-failures", "ok"),
            ((0, 0, true), "failed-last", "short"),
        ] {
            let line = format!("show pressure suite {said} (goal 20 rounds, 0 failures) {verdict}");
            assert_eq!(figure(sum.0, sum.1, sum.2), Figure::measured(line, verdict == "short"));
        }
    }
}
