//! Clones of this repository below the build output, which are kept, so that the next run builds only what has changed.
//!
//! Touches: git as a child process. Never: changes the working tree.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::succeeds;

/// Where the clones of a check are, with what is built from them.
pub(super) fn output_directory(root: &Path, check: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    target.join(check)
}

/// Brings a clone to a revision of the repository, without anything that was changed in it. `HEAD` is that of the repository.
pub(super) fn bring_to(root: &Path, clone: &Path, revision: &str) -> Result<(), String> {
    let git = |directory: &Path, arguments: &[&str]| {
        let done = succeeds(Command::new("git").current_dir(directory).args(arguments))?;
        if done { Ok(()) } else { Err(format!("git {} failed in {}", arguments.join(" "), directory.display())) }
    };
    let from = root.to_str().ok_or("the root's path is not text")?;
    if !clone.join(".git").is_dir() {
        let to = clone.to_str().ok_or("the clone's path is not text")?;
        git(root, &["clone", "--quiet", "--no-hardlinks", from, to])?;
    }
    git(clone, &["fetch", "--quiet", from, "HEAD"])?;
    let revision = if revision == "HEAD" { "FETCH_HEAD" } else { revision };
    git(clone, &["checkout", "--quiet", "--force", revision])
}
