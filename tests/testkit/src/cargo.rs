//! Running cargo from a program that cargo itself has started.

use std::process::Command;

/// The cargo that runs this program, since another one on the path may be another release. It is not told what this program was told
/// about its package.
///
/// The build script of `ring` asks for those variables, and so is run again when they change: with them, builds that are started
/// from different packages build most of the workspace anew, in turns.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let is_of_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        if name.to_str().is_some_and(is_of_package) {
            command.env_remove(name);
        }
    }
    command
}
