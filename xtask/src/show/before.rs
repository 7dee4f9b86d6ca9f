//! Speeds before and after: the measurements of an earlier commit and of this one, in turns, on the same machine.
//!
//! Touches: a clone below the build output, which is kept; cargo and both programs as child processes. Keeps: what is compared was
//! measured within the same minutes. Never: changes the working tree.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::clones;
use super::figures::{Figure, Report};
use crate::process::{cargo, succeeds};

/// The last commit before the contracts got folders of their own and a shard was made of parts.
const BEFORE: &str = "6163107438cff0f3e3080eb1f8a8b51ac3f5eac9";

/// After is at least this share of before.
const GOAL: f64 = 0.97;

/// So often both sides are measured, one right after the other; the median of the shares counts. Two runs of one program
/// differ by a tenth or more, so the median of 25 shares was still off by three hundredths; that of 101 is by one or two.
const ROUNDS: usize = 101;

/// A speed: its name, the arguments of `bench`, and how the line begins that tells it.
const SPEEDS: [(&str, &str, &str); 4] = [
    ("set", "profile --op set --callers 64 --cells 20000 --milliseconds 500", "set   64 callers:"),
    ("get", "profile --op get --callers 64 --cells 20000 --milliseconds 500", "get   64 callers:"),
    ("claim", "profile --op claim --callers 64 --milliseconds 500", "claim   64 callers:"),
    ("append", "runs-speed --small --milliseconds 500", "append   64 callers:"),
];

/// What a run does, in words.
pub(super) const DESCRIPTION: &str = "bench of the commit before and of HEAD, in turns";

/// Measures all speeds on both sides.
pub(super) fn run(root: &Path, topic: &str, item: &str, report: &mut Report) -> Result<(), String> {
    let output = clones::output_directory(root, "before");
    let sides = [("before", BEFORE), ("after", "HEAD")].map(|(name, revision)| built(root, &output, name, revision));
    let [before, after] = sides;
    let (before, after) = (before?, after?);
    for (name, arguments, begins) in SPEEDS {
        let mut shares = Vec::new();
        for round in 0..ROUNDS {
            // Whoever comes first has the disk as the other one left it.
            let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
            let mut rates = [0.0; 2];
            for side in order {
                rates[side] = rate([&before, &after][side], arguments, begins)?;
            }
            println!("{name}: before {:.0}/s, after {:.0}/s", rates[0], rates[1]);
            shares.push(rates[1] / rates[0]);
        }
        report.push(figure(topic, &format!("{item}.{name}"), median(shares)));
    }
    Ok(())
}

fn figure(topic: &str, item: &str, share: f64) -> Figure {
    let short = share < GOAL;
    let verdict = if short { "short" } else { "ok" };
    Figure::measured(format!("show {topic} {item} {share:.2} (goal >={GOAL} of before) {verdict}"), short)
}

/// Builds the measurements of a revision, and returns the program.
fn built(root: &Path, output: &Path, name: &str, revision: &str) -> Result<PathBuf, String> {
    let clone = output.join(name);
    clones::bring_to(root, &clone, revision)?;
    let target = output.join(format!("{name}-target"));
    let mut build = cargo(&clone, "build --quiet --locked --release -p bench");
    if !succeeds(build.env("CARGO_TARGET_DIR", &target))? {
        return Err(format!("bench does not build at {revision}"));
    }
    Ok(target.join("release/bench"))
}

/// Runs one measurement and reads its rate.
fn rate(program: &Path, arguments: &str, begins: &str) -> Result<f64, String> {
    let output = Command::new(program).args(arguments.split(' ')).output();
    let output = output.map_err(|error| format!("start {}: {error}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    read_rate(&said, begins).ok_or_else(|| format!("{} {arguments} tells no rate: {said}", program.display()))
}

fn read_rate(said: &str, begins: &str) -> Option<f64> {
    let told = said.lines().find_map(|line| line.trim_start().strip_prefix(begins))?;
    told.trim_start().split_once("/s")?.0.parse().ok()
}

fn median(mut shares: Vec<f64>) -> f64 {
    shares.sort_by(f64::total_cmp);
    shares[shares.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_read_from_its_line() {
        let said = "ready to be profiled: claim\n    claim   64 callers:     90123/s  p50    700.0 us\n      set  256 callers:  5/s\n";
        assert_eq!(read_rate(said, "claim   64 callers:"), Some(90_123.0));
        assert_eq!(read_rate(said, "set   64 callers:"), None);
    }

    #[test]
    fn a_share_below_the_goal_is_short() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert!(!figure("inside", "speed.set", 0.97).short);
        assert!(figure("inside", "speed.set", 0.969).short);
    }
}
