//! Repository tasks, run as `cargo xtask TASK`: tidy, verify, show, check-small.
//!
//! Touches: the source tree, cargo and git as child processes, temporary directories.
//! Keeps: one exit code for the caller (0 success, 1 a check failed, 2 the task could not run).
//! Never: writes into the source tree, except `docs/measured.md` by `show --write`; is needed to build a crate.

mod check_small;
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
  check-small           the same checks at a small size; what .ci/run runs";

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
        ["check-small"] => check_small::run(&root),
        _ => Err(format!("unknown task `{}`\n{USAGE}", arguments.join(" "))),
    }
}
