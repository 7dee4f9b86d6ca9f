//! Architecture: `ARCHITECTURE.md` names every crate, and only paths that exist.
//!
//! Touches: `ARCHITECTURE.md` and the names of files. Keeps: the map matches the tree. Never: reads what the document
//! says about a path.

use std::collections::BTreeSet;

use super::Complaint;
use super::markdown::{code_spans, prose};
use crate::repository::Tree;

/// The document that explains the code base.
pub(super) const DOCUMENT: &str = "ARCHITECTURE.md";

/// A code span that starts with one of these is a path of this repository.
const PLACES: &[&str] = &["crates/", "tests/", "bench/", "xtask/", "docs/", ".ci/", "examples/"];

/// Checks that paths exist and that crates are named.
pub(super) fn check(tree: &Tree) -> Result<Vec<Complaint>, String> {
    if !tree.exists(DOCUMENT) {
        let wrong = "the document is missing";
        return Ok(vec![Complaint::new(DOCUMENT, 1, wrong, "write it: it is the map of the code")]);
    }
    let text = tree.text(DOCUMENT)?;
    let mut complaints = Vec::new();
    for (line, prose) in prose(&text) {
        for path in code_spans(prose).filter_map(path_of) {
            if !tree.exists(path) {
                let wrong = format!("`{path}` does not exist");
                complaints.push(Complaint::new(DOCUMENT, line, wrong, "name what is there now"));
            }
        }
    }
    for directory in crate_directories(tree) {
        if !names(&text, &directory) {
            let wrong = format!("`{directory}` is not named");
            let remedy = "say what the crate is for and what it may see";
            complaints.push(Complaint::new(DOCUMENT, 1, wrong, remedy));
        }
    }
    Ok(complaints)
}

/// The path in a code span, without a line number or an anchor; none if it is a pattern or a command.
fn path_of(span: &str) -> Option<&str> {
    let is_plain = !span.contains(|letter: char| letter.is_whitespace() || "*{}<>…".contains(letter));
    let is_here = PLACES.iter().any(|place| span.starts_with(place));
    (is_plain && is_here).then(|| span.split([':', '#']).next().unwrap_or(span))
}

fn crate_directories(tree: &Tree) -> BTreeSet<String> {
    let name = |path: &str| Some(path.strip_prefix("crates/")?.split_once('/')?.0.to_string());
    tree.files().filter_map(name).map(|name| format!("crates/{name}")).collect()
}

/// Whether `text` has `directory` as a whole: `crates/kv2` does not name `crates/kv`.
fn names(text: &str, directory: &str) -> bool {
    let goes_on = |letter: char| letter.is_alphanumeric() || "-_".contains(letter);
    text.match_indices(directory).any(|(start, _)| !text[start + directory.len()..].starts_with(goes_on))
}

#[cfg(test)]
mod tests {
    use super::super::temporary::TemporaryTree;
    use super::*;

    fn complaints(document: &str) -> Vec<(usize, String)> {
        let files = [(DOCUMENT, document), ("crates/kv/src/lib.rs", ""), (".ci/run", "")];
        let found = check(&TemporaryTree::with(&files).tree()).unwrap();
        found.into_iter().map(|complaint| (complaint.line, complaint.wrong)).collect()
    }

    #[test]
    fn a_missing_document_is_an_error() {
        let found = check(&TemporaryTree::new().tree()).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].wrong, "the document is missing");
    }

    #[test]
    fn a_path_that_does_not_exist_is_an_error() {
        let document = "`crates/kv`\n`crates/kv/src/lib.rs:7` `.ci/run`\n`docs/gone.md`\n";
        assert_eq!(complaints(document), [(3, "`docs/gone.md` does not exist".to_string())]);
        let unjudged = "`crates/kv` `crates/*/src` `tests/<name>` `bench/ and more` `other/path`\n";
        assert_eq!(complaints(unjudged), []);
    }

    #[test]
    fn a_crate_that_is_not_named_is_an_error() {
        let expected = [(1, "`crates/kv` is not named".to_string())];
        assert_eq!(complaints("Nothing.\n"), expected);
        assert_eq!(complaints("See crates/kv-two.\n"), expected);
        assert_eq!(complaints("See crates/kv.\n"), []);
    }
}
