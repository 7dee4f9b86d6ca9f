//! Child processes: cargo in the right directory, and whether a tool is installed.
//!
//! Touches: child processes. Keeps: children run in the repository's root, by the same cargo that
//! runs this program. Never: hides a child's output.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

/// A cargo command line in `directory`, its arguments parted by single spaces.
pub(crate) fn cargo(directory: &Path, arguments: &str) -> Command {
    // `cargo run` names the cargo that runs us; another one on the path may be another release.
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    // The build script of `ring` asks for what cargo has told this program about its package, and so is run again when that
    // differs: builds that are started from here and from elsewhere would build most of the workspace anew, in turns.
    for (name, _) in std::env::vars_os() {
        let is_of_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        if name.to_str().is_some_and(is_of_package) {
            command.env_remove(name);
        }
    }
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
