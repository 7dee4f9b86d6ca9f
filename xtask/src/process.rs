//! Child processes: cargo in the right directory, and whether a tool is installed.
//!
//! Touches: child processes. Keeps: children run in the repository's root, by the same cargo that
//! runs this program. Never: hides a child's output.

use std::path::Path;
use std::process::{Command, Stdio};

/// One way to start cargo, here and in the programs of tests. This one file of them: a task should not wait for the rest.
#[path = "../../tests/testkit/src/cargo.rs"]
mod shared;

/// A cargo command line in `directory`, its arguments parted by single spaces.
pub(crate) fn cargo(directory: &Path, arguments: &str) -> Command {
    let mut command = shared::cargo();
    command.current_dir(directory).args(arguments.split(' '));
    command
}

/// Whether `cargo SUBCOMMAND` is installed.
pub(crate) fn has_cargo_subcommand(directory: &Path, subcommand: &str) -> bool {
    let mut command = cargo(directory, &format!("{subcommand} --version"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Runs to the end with the caller's output, and returns whether it succeeded.
pub(crate) fn succeeds(command: &mut Command) -> Result<bool, String> {
    let status = command.status().map_err(|error| format!("start {command:?}: {error}"))?;
    Ok(status.success())
}
