//! The whole test suite, again and again, beside threads that want the processor: a test that fails there depends on the
//! machine's speed.
//!
//! Touches: `cargo nextest` as a child process; `target/show-suite`, with the rounds of earlier runs. Keeps: a round counts
//! for the sources it was run with, and for no others. Never: runs a failed test again.
//!
//! A round takes some minutes, and all of them more than a topic may take. So a run does a few, and the figure is of all
//! rounds with the same committed sources. With uncommitted ones it is of this run alone.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::figures::Figure;
use crate::process::{cargo, has_cargo_subcommand, succeeds};

/// How many rounds must pass.
const ROUNDS_GOAL: u32 = 20;

/// Rounds of one run.
const ROUNDS_PER_RUN: u32 = 6;

/// Threads that do nothing and want to do it all the time.
const BUSY_LOOPS: usize = 3;

const SUITE: &str = "nextest run --workspace --locked";

/// All that decides what a test does.
const SOURCES: &[&str] =
    &[".config", "Cargo.lock", "Cargo.toml", "bench", "crates", "rust-toolchain.toml", "tests", "xtask"];

/// Runs some rounds, and reports all that were run with these sources.
pub(super) fn run(root: &Path, topic: &str, item: &str) -> Result<Figure, String> {
    if !has_cargo_subcommand(root, "nextest") {
        return Err("cargo-nextest is not installed; .ci/run installs it".to_string());
    }
    // Before the rounds: a source that does not compile is no failure of a test.
    if !succeeds(&mut cargo(root, &format!("{SUITE} --no-run")))? {
        return Err("the tests do not compile".to_string());
    }
    let sources = committed_sources(root)?;
    let ledger = Ledger::of(root);
    let mut rounds = sources.as_deref().map_or(Rounds::default(), |sources| ledger.read(sources));
    let _busy = BusyLoops::start();
    for _ in 0..rounds.next_run() {
        let passed = succeeds(&mut cargo(root, SUITE))?;
        rounds.done += 1;
        rounds.failed += u32::from(!passed);
        println!("\nshow: {rounds} beside {BUSY_LOOPS} busy loops");
        if let Some(sources) = &sources {
            ledger.write(sources, rounds)?;
        }
    }
    Ok(rounds.figure(topic, item))
}

/// Rounds with the same sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rounds {
    done: u32,
    /// Those in which a test failed.
    failed: u32,
}

impl Rounds {
    /// How many the next run does: at least one, since whoever asks for a run wants to see something.
    fn next_run(self) -> u32 {
        ROUNDS_GOAL.saturating_sub(self.done).clamp(1, ROUNDS_PER_RUN)
    }

    fn figure(self, topic: &str, item: &str) -> Figure {
        let short = self.done < ROUNDS_GOAL || self.failed > 0;
        let verdict = if short { "short" } else { "ok" };
        let goal = format!("{ROUNDS_GOAL} rounds beside three busy loops, 0 failures");
        Figure::measured(format!("show {topic} {item} {self} (goal {goal}) {verdict}"), short)
    }
}

impl fmt::Display for Rounds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-rounds-{}-failures", self.done, self.failed)
    }
}

/// The rounds of the last sources that were tested: `SOURCES DONE FAILED` on one line.
struct Ledger {
    path: PathBuf,
}

impl Ledger {
    fn of(root: &Path) -> Self {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        Self { path: target.join("show-suite") }
    }

    fn read(&self, sources: &str) -> Rounds {
        parse(&std::fs::read_to_string(&self.path).unwrap_or_default(), sources).unwrap_or_default()
    }

    fn write(&self, sources: &str, rounds: Rounds) -> Result<(), String> {
        let written = std::fs::write(&self.path, format!("{sources} {} {}\n", rounds.done, rounds.failed));
        written.map_err(|error| format!("{}: {error}", self.path.display()))
    }
}

fn parse(ledger: &str, sources: &str) -> Option<Rounds> {
    let mut words = ledger.split_whitespace();
    (words.next()? == sources).then_some(())?;
    Some(Rounds { done: words.next()?.parse().ok()?, failed: words.next()?.parse().ok()? })
}

/// One name for the committed sources; none if some are not committed.
fn committed_sources(root: &Path) -> Result<Option<String>, String> {
    if !git(root, &[&["status", "--porcelain", "--"], SOURCES].concat())?.is_empty() {
        println!("show: some sources are not committed; earlier rounds do not count");
        return Ok(None);
    }
    let objects: Vec<String> = SOURCES.iter().map(|path| format!("HEAD:{path}")).collect();
    let mut arguments = vec!["rev-parse"];
    arguments.extend(objects.iter().map(String::as_str));
    Ok(Some(git(root, &arguments)?.split_whitespace().collect::<Vec<_>>().join("-")))
}

fn git(root: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git").args(arguments).current_dir(root).output();
    let output = output.map_err(|error| format!("start git: {error}"))?;
    if !output.status.success() {
        return Err(format!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("git: {error}"))
}

/// Threads that take the processor from others until this is dropped.
struct BusyLoops {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyLoops {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let spin = |_| {
            let stop = stop.clone();
            std::thread::spawn(move || while !stop.load(Ordering::Relaxed) {})
        };
        let threads = (0..BUSY_LOOPS).map(spin).collect();
        Self { stop, threads }
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It has nothing that could panic, and nobody needs to know.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rounds_and_failed_rounds_are_short() {
        let figure = |done, failed| Rounds { done, failed }.figure("pressure", "suite");
        let goal = "(goal 20 rounds beside three busy loops, 0 failures)";
        for (done, failed, verdict) in
            [(6, 0, "short"), (19, 0, "short"), (20, 0, "ok"), (24, 0, "ok"), (20, 1, "short")]
        {
            let line = format!("show pressure suite {done}-rounds-{failed}-failures {goal} {verdict}");
            assert_eq!(figure(done, failed), Figure::measured(line, verdict == "short"));
        }
        assert_eq!(BUSY_LOOPS, 3, "as the goal says");
    }

    #[test]
    fn a_run_does_what_is_left_but_not_all_at_once() {
        for (done, next) in [(0, 6), (6, 6), (18, 2), (20, 1), (30, 1)] {
            assert_eq!(Rounds { done, failed: 0 }.next_run(), next, "after {done}");
        }
    }

    #[test]
    fn rounds_of_other_sources_do_not_count() {
        let rounds = Rounds { done: 12, failed: 1 };
        assert_eq!(parse("abc-def 12 1\n", "abc-def"), Some(rounds));
        for (ledger, sources) in [("abc-def 12 1\n", "abc"), ("", "abc"), ("abc 12", "abc"), ("abc many 1", "abc")] {
            assert_eq!(parse(ledger, sources), None, "{ledger:?}");
        }
    }

    #[test]
    fn busy_loops_end_with_their_value() {
        let busy = BusyLoops::start();
        let stop = busy.stop.clone();
        drop(busy);
        assert_eq!((stop.load(Ordering::Relaxed), Arc::strong_count(&stop)), (true, 1), "no thread holds it any more");
    }
}
