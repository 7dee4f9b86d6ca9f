//! Verify: everything that must hold before a commit, in the order of what fails fastest.
//!
//! Touches: cargo and its tools as child processes. Keeps: stops at the first failure, so that the last lines on the
//! screen are the ones to act on. Never: changes a source file.

use std::path::Path;
use std::time::Instant;

use crate::advisories;
use crate::process::{cargo, has_cargo_subcommand, succeeds};
use crate::tidy;

/// Whether verify runs the tests; `.ci/run` runs them itself, last.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tests {
    /// Run unit, integration and documentation tests.
    Run,
    /// Leave them out.
    Skip,
}

enum Work {
    Cargo { arguments: &'static str, environment: &'static [(&'static str, &'static str)] },
    Tidy,
    Advisories,
    Nothing { succeeds: bool },
}

struct Step {
    heading: &'static str,
    work: Work,
}

/// Runs the steps in order; `Ok(false)` if one failed.
pub(crate) fn run(root: &Path, tests: Tests) -> Result<bool, String> {
    let found = Found {
        nextest: has_cargo_subcommand(root, "nextest"),
        deny: has_cargo_subcommand(root, "deny"),
        in_ci: std::env::var_os("CI").is_some(),
        advisories: advisories::are_kept(root),
    };
    let steps = steps(tests, &found);
    let count = steps.len();
    for (index, step) in steps.iter().enumerate() {
        println!("\nverify {}/{count}: {}", index + 1, step.heading);
        let started = Instant::now();
        if !run_step(root, step)? {
            println!("verify: failed: {}", step.heading);
            return Ok(false);
        }
        println!("verify: took {:.1} s", started.elapsed().as_secs_f64());
    }
    let skipped = steps.iter().filter(|step| matches!(step.work, Work::Nothing { .. })).count();
    println!("\nverify: {} steps passed, {skipped} skipped", count - skipped);
    Ok(true)
}

/// The tools installed on the machine.
struct Found {
    nextest: bool,
    deny: bool,
    in_ci: bool,
    /// A part of the database of advisories is in the repository.
    advisories: bool,
}

fn steps(tests: Tests, found: &Found) -> Vec<Step> {
    let mut steps = vec![
        plain("cargo fmt --all --check", "fmt --all --check"),
        plain(
            "cargo clippy --workspace --all-targets --locked -- -D warnings",
            "clippy --workspace --all-targets --locked -- -D warnings",
        ),
        Step { heading: "cargo xtask tidy", work: Work::Tidy },
        Step {
            heading: "RUSTDOCFLAGS=\"-D warnings\" cargo doc --workspace --no-deps --locked",
            work: Work::Cargo {
                arguments: "doc --workspace --no-deps --locked",
                environment: &[("RUSTDOCFLAGS", "-D warnings")],
            },
        },
    ];
    if tests == Tests::Run {
        steps.push(if found.nextest {
            plain("cargo nextest run --workspace --locked", "nextest run --workspace --locked")
        } else {
            plain(
                "cargo test --workspace --locked --lib --bins --tests (no cargo-nextest here)",
                "test --workspace --locked --lib --bins --tests",
            )
        });
        steps.push(plain("cargo test --workspace --doc --locked", "test --workspace --doc --locked"));
    }
    steps.push(match (found.deny, found.in_ci) {
        (true, _) => plain("cargo deny check licenses bans sources", "deny check licenses bans sources"),
        // On a developer's machine the rules may wait for CI; in CI nobody else would check them.
        (false, in_ci) => Step {
            heading: "cargo deny check licenses bans sources: SKIPPED, cargo-deny is not installed",
            work: Work::Nothing { succeeds: !in_ci },
        },
    });
    if found.deny && found.advisories {
        steps.push(Step { heading: "cargo xtask advisories", work: Work::Advisories });
    }
    steps
}

fn plain(heading: &'static str, arguments: &'static str) -> Step {
    Step { heading, work: Work::Cargo { arguments, environment: &[] } }
}

fn run_step(root: &Path, step: &Step) -> Result<bool, String> {
    match step.work {
        Work::Cargo { arguments, environment } => succeeds(cargo(root, arguments).envs(environment.iter().copied())),
        Work::Tidy => tidy::run(root),
        Work::Advisories => advisories::check(root, None),
        Work::Nothing { succeeds } => Ok(succeeds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headings(tests: Tests, found: &Found) -> Vec<&'static str> {
        steps(tests, found).iter().map(|step| step.heading).collect()
    }

    #[test]
    fn without_tests_no_test_runner_is_named() {
        let found = Found { nextest: true, deny: true, in_ci: true, advisories: false };
        let headings = headings(Tests::Skip, &found);
        assert_eq!(headings.len(), 5);
        assert!(!headings.iter().any(|heading| heading.contains("test")));
    }

    #[test]
    fn without_nextest_cargo_test_takes_over() {
        let found = Found { nextest: false, deny: true, in_ci: false, advisories: false };
        let headings = headings(Tests::Run, &found);
        assert!(headings.iter().any(|heading| heading.contains("--lib --bins --tests")));
        assert!(!headings.iter().any(|heading| heading.contains("nextest run")));
    }

    #[test]
    fn a_missing_cargo_deny_fails_only_in_ci() {
        for in_ci in [true, false] {
            let found = Found { nextest: true, deny: false, in_ci, advisories: true };
            let steps = steps(Tests::Run, &found);
            let work = steps.last().map(|step| &step.work);
            assert!(matches!(work, Some(Work::Nothing { succeeds }) if *succeeds != in_ci));
        }
    }
}
