//! Clean clone: the repository builds and passes from nothing but its commits.
//!
//! Touches: git, a temporary directory with the clone and its build output, `.ci/run` in it. Keeps: the clone shares
//! nothing with the working tree but the toolchain and the crate cache. Never: sees uncommitted work, or leaves the
//! directory behind unless it is killed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::figures::Figure;
use crate::process::succeeds;

/// A change must not wait longer for its verdict, even on a machine that has built nothing yet.
const MINUTES_MAX: f64 = 30.0;

/// Clones the repository, runs the CI script there, and reports the duration.
pub(super) fn run(root: &Path, topic: &str, item: &str) -> Result<Figure, String> {
    warn_about_uncommitted_work(root)?;
    let scratch = Scratch::new()?;
    let clone = scratch.path.join("clone");
    let mut git = Command::new("git");
    git.args(["clone", "--quiet", "--no-hardlinks"]).arg(root).arg(&clone);
    if !succeeds(&mut git)? {
        return Err("git clone failed".to_string());
    }
    println!("\nshow: bash .ci/run in {}", clone.display());
    let started = Instant::now();
    let passed = succeeds(
        Command::new("bash")
            .arg(".ci/run")
            .current_dir(&clone)
            .env("CI", "true")
            .env("CARGO_TARGET_DIR", scratch.path.join("target")),
    )?;
    Ok(figure(topic, item, passed, started.elapsed()))
}

fn figure(topic: &str, item: &str, passed: bool, took: Duration) -> Figure {
    let minutes = took.as_secs_f64() / 60.0;
    let short = !passed || minutes >= MINUTES_MAX;
    let failed = if passed { "" } else { "-failed" };
    let verdict = if short { "short" } else { "ok" };
    let text = format!("show {topic} {item} {minutes:.1}min{failed} (goal <{MINUTES_MAX}min cold) {verdict}");
    Figure::measured(text, short)
}

fn warn_about_uncommitted_work(root: &Path) -> Result<(), String> {
    let output = Command::new("git")
        .args(["status", "--porcelain"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("start git status: {error}"))?;
    if !output.stdout.is_empty() {
        println!("show: the working tree has changes that the clone will not see");
    }
    Ok(())
}

/// A directory that is removed on drop.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("statehouse-clone-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { path })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            eprintln!("xtask: {} is left behind: {error}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_and_a_long_run_are_short() {
        for (passed, seconds, line, short) in [
            (true, 738, "show cells verify 12.3min (goal <30min cold) ok", false),
            (false, 60, "show cells verify 1.0min-failed (goal <30min cold) short", true),
            (true, 1800, "show cells verify 30.0min (goal <30min cold) short", true),
        ] {
            let figure = figure("cells", "verify", passed, Duration::from_secs(seconds));
            assert_eq!(figure, Figure::measured(line.to_string(), short));
        }
    }
}
