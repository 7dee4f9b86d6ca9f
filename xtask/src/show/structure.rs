//! The structure of the tree, as `cargo xtask tidy` measures it.

use std::path::Path;

use super::figures::{Figure, Report};
use crate::tidy::structure::{Measure, measure};

/// What a run does, in words.
pub(super) const DESCRIPTION: &str = "what cargo xtask tidy keeps within bounds";

/// Measures the tree.
pub(super) fn run(root: &Path, topic: &str, item: &str, report: &mut Report) -> Result<(), String> {
    for Measure { name, found, max, unit } in measure(root)? {
        let short = found > max;
        let verdict = if short { "short" } else { "ok" };
        let text = format!("show {topic} {item}.{name} {found}-{unit} (goal <={max}) {verdict}");
        report.push(Figure::measured(text, short));
    }
    Ok(())
}
