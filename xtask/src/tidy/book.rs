//! Book: `docs/SUMMARY.md`, the contents of the book, names every page below `docs`.
//!
//! Touches: the Markdown files below `docs`. Keeps: no page is missing from the book, where links to it would lead
//! nowhere. Never: builds the book; the links rule checks that its pages exist.

use std::collections::BTreeSet;

use super::Complaint;
use super::markdown::{link_targets, prose};
use crate::repository::Tree;

/// The contents of the book.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Checks that every page is in the contents, once.
pub(super) fn check(tree: &Tree) -> Result<Vec<Complaint>, String> {
    let pages: Vec<&str> = tree.files_with("md").filter(|page| page.starts_with("docs/") && *page != SUMMARY).collect();
    if pages.is_empty() {
        return Ok(Vec::new());
    }
    if !tree.exists(SUMMARY) {
        return Ok(vec![Complaint::new(SUMMARY, 1, "the contents are missing", "name every page below docs in it")]);
    }
    let text = tree.text(SUMMARY)?;
    let mut complaints = Vec::new();
    let mut named = BTreeSet::new();
    for (line, prose) in prose(&text) {
        for target in link_targets(prose) {
            let page = format!("docs/{target}");
            if !named.insert(page.clone()) {
                let wrong = format!("`{page}` is named twice");
                complaints.push(Complaint::new(SUMMARY, line, wrong, "a page has one place in the book"));
            }
        }
    }
    for page in pages.into_iter().filter(|page| !named.contains(*page)) {
        let remedy = format!("add it to {SUMMARY}");
        complaints.push(Complaint::new(page, 1, "the page is not in the book", remedy));
    }
    Ok(complaints)
}

#[cfg(test)]
mod tests {
    use super::super::temporary::TemporaryTree;
    use super::*;

    fn complaints(files: &[(&str, &str)]) -> Vec<(String, String)> {
        let found = check(&TemporaryTree::with(files).tree()).unwrap();
        found.into_iter().map(|complaint| (complaint.path, complaint.wrong)).collect()
    }

    #[test]
    fn a_page_that_is_not_named_is_an_error() {
        let files =
            [(SUMMARY, "- [A](a.md)\n- [B](b/c.md)\n"), ("docs/a.md", ""), ("docs/b/c.md", ""), ("README.md", "")];
        assert_eq!(complaints(&files), []);
        let more = [&files[..], &[("docs/b/d.md", "")]].concat();
        assert_eq!(complaints(&more), [("docs/b/d.md".into(), "the page is not in the book".into())]);
    }

    #[test]
    fn a_page_has_one_place() {
        let files = [(SUMMARY, "- [A](a.md)\n- [B](a.md)\n"), ("docs/a.md", "")];
        assert_eq!(complaints(&files), [(SUMMARY.into(), "`docs/a.md` is named twice".into())]);
    }

    #[test]
    fn contents_are_needed_once_there_are_pages() {
        assert_eq!(complaints(&[("README.md", "")]), []);
        assert_eq!(complaints(&[("docs/a.md", "")]), [(SUMMARY.into(), "the contents are missing".into())]);
    }
}
