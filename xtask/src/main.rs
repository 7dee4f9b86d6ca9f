//! Repository tasks, run as `cargo xtask TASK`: tidy, verify, show, check-small, package, advisories.
//!
//! Touches: the source tree, cargo and git as child processes, temporary directories.
//! Keeps: one exit code for the caller (0 success, 1 a check failed, 2 the task could not run).
//! Never: writes into the source tree, except `docs/measured.md` by `show --write` and `advisories/` by `advisories keep`; is needed to build a crate.

mod advisories;
mod check_small;
mod package;
mod process;
mod repository;
mod show;
mod tidy;
mod verify;

use std::process::ExitCode;

use show::Figures;

const USAGE: &str = "\
usage: cargo xtask TASK
  tidy                  check what the compiler cannot: levels, module docs, names, links
       [--contract NAME] list the files outside of a contract's folders that name it
  verify [--no-tests]   format, clippy, tidy, docs, tests, licences
  show [TOPIC [ITEM]]   run a topic's checks at full size; alone, list the topics
       [--write]        write the figures into docs/measured.md too
  check-small           the same checks at a small size; what .ci/run runs
  advisories [CLONE]    look for known holes in the crates of Cargo.lock, by a clone of RustSec/advisory-db, or by what is kept of one
  advisories keep CLONE keep what concerns these crates in advisories/, with its date
  package deb [PROGRAM] a Debian package of the command, or of a program that is built already
  package try-deb       build it, and install and use it in a clean Debian, as root";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::from(2)
        }
    }
}

/// Runs one task; `Ok(false)` means that the task ran and something it checked is wrong.
fn run(arguments: &[&str]) -> Result<bool, String> {
    let root = repository::root()?;
    match arguments {
        ["tidy"] => tidy::run(&root),
        ["tidy", "--contract", contract] => tidy::contract_files::print(&root, contract),
        ["verify"] => verify::run(&root, verify::Tests::Run),
        ["verify", "--no-tests"] => verify::run(&root, verify::Tests::Skip),
        ["show"] => {
            show::list();
            Ok(true)
        }
        ["show", topic] => show::run(&root, topic, None, Figures::Print),
        ["show", topic, "--write"] => show::run(&root, topic, None, Figures::Write),
        ["show", topic, item] => show::run(&root, topic, Some(item), Figures::Print),
        ["show", topic, item, "--write"] => show::run(&root, topic, Some(item), Figures::Write),
        ["advisories"] => advisories::check(&root, None),
        ["advisories", "keep", clone] => advisories::keep(&root, clone),
        ["advisories", clone] => advisories::check(&root, Some(clone)),
        ["package", "deb"] => package::deb(&root, None),
        ["package", "deb", program] => package::deb(&root, Some(program)),
        ["package", "try-deb"] => package::try_deb(&root),
        ["check-small"] => check_small::run(&root),
        _ => Err(format!("unknown task `{}`\n{USAGE}", arguments.join(" "))),
    }
}
