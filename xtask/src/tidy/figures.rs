//! Figures: a number that README quotes beside `cargo xtask show TOPIC ITEM` is one that this command printed.
//!
//! Touches: `README.md` and `docs/measured.md`. Keeps: README cannot boast of a figure that was not measured, or is measured
//! differently now. Never: judges a figure.

use super::Complaint;
use super::markdown::{code_spans, prose};
use crate::repository::Tree;
use crate::show::MEASURED_PAGE;

const README: &str = "README.md";
const COMMAND: &str = "cargo xtask show ";

/// Checks every line of README that names such a command and quotes figures.
pub(super) fn check(tree: &Tree) -> Result<Vec<Complaint>, String> {
    let mut complaints = Vec::new();
    if !tree.exists(README) {
        return Ok(complaints);
    }
    let readme = tree.text(README)?;
    let measured = if tree.exists(MEASURED_PAGE) { tree.text(MEASURED_PAGE)? } else { String::new() };
    for (line, prose) in prose(&readme) {
        let Some(item) = code_spans(prose).find_map(|span| span.strip_prefix(COMMAND)) else {
            continue;
        };
        let figures = code_spans(prose).filter(|span| !span.starts_with(COMMAND));
        for figure in figures.filter(|span| span.contains(|letter: char| letter.is_ascii_digit())) {
            let is_measured = |line: &str| {
                line.strip_prefix("show ").is_some_and(|line| line.starts_with(item))
                    && line.contains(&format!(" {figure} (goal "))
            };
            if !measured.lines().any(is_measured) {
                let wrong = format!("`{figure}` is no figure of `{COMMAND}{item}` in {MEASURED_PAGE}");
                complaints.push(Complaint::new(README, line, wrong, "quote the figure that stands there"));
            }
        }
    }
    Ok(complaints)
}

#[cfg(test)]
mod tests {
    use super::super::temporary::TemporaryTree;
    use super::*;

    fn complaints(readme: &str, measured: &str) -> Vec<(usize, String)> {
        let files = [(README, readme), (MEASURED_PAGE, measured)];
        let found = check(&TemporaryTree::with(&files).tree()).unwrap();
        found.into_iter().map(|complaint| (complaint.line, complaint.wrong)).collect()
    }

    const MEASURED: &str = "```text\nshow cells kill 500-kills-0-lost (goal 500 kills) ok\n\
                            show cells speed.get 1.06x (goal >=0.5) ok\nshow runs kill 7 (goal -) ok\n```\n";

    #[test]
    fn a_figure_that_stands_on_the_page_is_accepted() {
        let readme = "| `500-kills-0-lost` | `cargo xtask show cells kill` |\n`1.06x` by `cargo xtask show cells speed`\n\
                      Run `cargo xtask show cells`, or `make`.\n`12` alone says nothing.\n";
        assert_eq!(complaints(readme, MEASURED), []);
        assert_eq!(check(&TemporaryTree::with(&[("a.md", "")]).tree()).unwrap(), []);
    }

    #[test]
    fn any_other_figure_is_an_error() {
        for (figure, command) in [
            ("500-kills", "cargo xtask show cells kill"),
            ("0-lost", "cargo xtask show cells kill"),
            ("7", "cargo xtask show cells kill"),
            ("1.06x", "cargo xtask show cells kill"),
            ("500", "cargo xtask show cells gone"),
        ] {
            let found = complaints(&format!("\n`{figure}` by `{command}`\n"), MEASURED);
            let wrong = format!("`{figure}` is no figure of `{command}` in {MEASURED_PAGE}");
            assert_eq!(found, [(2, wrong)]);
        }
        assert_eq!(complaints("`1` `cargo xtask show cells kill`", "").len(), 1);
    }
}
