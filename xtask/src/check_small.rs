//! Check-small: every topic's programs at a size that suits every change.
//!
//! Touches: the same programs as `show`. Keeps: a short correctness figure fails, a short speed is only printed. Never:
//! has its own sizes; they are in the topics' tables.

use std::path::Path;

use crate::show;

/// Runs all of them and names at the end those that failed; `Ok(false)` if one did.
pub(crate) fn run(root: &Path) -> Result<bool, String> {
    let failed = show::run_small(root)?;
    if failed.is_empty() {
        println!("check-small: passed");
        return Ok(true);
    }
    // Last, where whoever looks at the end of a long log sees them.
    println!("check-small: failed");
    failed.iter().for_each(|line| println!("  {line}"));
    Ok(false)
}
