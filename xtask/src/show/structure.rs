//! The structure of the tree, as `cargo xtask tidy` measures it.

use std::path::Path;

use super::figures::{Figure, Report};
use crate::repository::Tree;
use crate::tidy::contract_files::{self, FILES_GOAL, Naming};
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

/// Counts the files outside of a contract's folders that name it, and prints them.
pub(super) fn run_contract(
    root: &Path,
    topic: &str,
    item: &str,
    contract: &str,
    report: &mut Report,
) -> Result<(), String> {
    let found = contract_files::list(&Tree::read(root)?, contract)?;
    found.iter().for_each(|Naming { path, line, word }| println!("{path}:{line}: {word}"));
    let short = found.len() > FILES_GOAL;
    let verdict = if short { "short" } else { "ok" };
    let text = format!(
        "show {topic} {item} {}-files-outside-of-its-folders-name-it (goal <={FILES_GOAL}) {verdict}",
        found.len()
    );
    report.push(Figure::measured(text, short));
    Ok(())
}
