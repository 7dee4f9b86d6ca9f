//! Check-small: every topic's programs at a size that suits every change.
//!
//! Touches: the same programs as `show`. Keeps: a short correctness figure fails, a short speed is only printed. Never:
//! has its own sizes; they are in the topics' tables.

use std::path::Path;

use crate::show;

/// Runs all of them; `Ok(false)` if one failed.
pub(crate) fn run(root: &Path) -> Result<bool, String> {
    let passed = show::run_small(root)?;
    let verdict = if passed { "passed" } else { "failed" };
    println!("check-small: {verdict}");
    Ok(passed)
}
