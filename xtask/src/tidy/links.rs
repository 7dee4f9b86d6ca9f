//! Links: a relative link in a Markdown file leads to an existing file.
//!
//! Touches: the Markdown files and the names of all files. Keeps: moving a file means updating its links. Never: opens
//! a network connection or checks the part after `#`.

use super::Complaint;
use super::markdown::{link_targets, prose};
use crate::repository::Tree;

/// Checks every relative link.
pub(super) fn check(tree: &Tree) -> Result<Vec<Complaint>, String> {
    let mut complaints = Vec::new();
    for path in tree.files_with("md") {
        let text = tree.text(path)?;
        for (line, prose) in prose(&text) {
            for target in link_targets(prose) {
                if file_of(path, &target).is_some_and(|file| !tree.exists(&file)) {
                    let wrong = format!("the link `{target}` points to nothing");
                    complaints.push(Complaint::new(path, line, wrong, "correct or remove it"));
                }
            }
        }
    }
    Ok(complaints)
}

/// The file a link means, relative to the root; none if it leaves the repository or stays on the page.
fn file_of(page: &str, target: &str) -> Option<String> {
    let has_scheme = target
        .split_once(':')
        .is_some_and(|(scheme, _)| !scheme.is_empty() && scheme.chars().all(|letter| letter.is_ascii_alphanumeric()));
    let file = target.split('#').next().unwrap_or(target);
    if has_scheme || file.is_empty() {
        return None;
    }
    if let Some(from_root) = file.strip_prefix('/') {
        return Some(from_root.to_string());
    }
    match page.rsplit_once('/') {
        Some((directory, _)) => Some(format!("{directory}/{file}")),
        None => Some(file.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::temporary::TemporaryTree;
    use super::*;

    fn complaints(page: &str, text: &str) -> Vec<(usize, String)> {
        let files = [(page, text), ("docs/adr/0001-one.md", ""), ("LICENSE", "")];
        let found = check(&TemporaryTree::with(&files).tree()).unwrap();
        found.into_iter().map(|complaint| (complaint.line, complaint.wrong)).collect()
    }

    #[test]
    fn a_link_to_nothing_is_an_error() {
        let wrong = |link: &str| format!("the link `{link}` points to nothing");
        let found = complaints("README.md", "[a](docs/adr/0001-one.md)\n[b](docs/two.md#part)\n");
        assert_eq!(found, [(2, wrong("docs/two.md#part"))]);
        let found = complaints("docs/a.md", "[a](adr/0001-one.md) [b](docs/adr/0001-one.md)\n");
        assert_eq!(found, [(1, wrong("docs/adr/0001-one.md"))]);
        assert_eq!(complaints("docs/a.md", "[a]: gone.md\n"), [(1, wrong("gone.md"))]);
    }

    #[test]
    fn links_that_hold_and_links_elsewhere_are_accepted() {
        let text = "[a](../LICENSE) [b](#part) [c](https://example.org/x) [d](mailto:a@b.c) \
                    [e](/LICENSE) [f](adr) [g](adr/0001-one.md \"title\")\n```\n[x](gone)\n```\n";
        assert_eq!(complaints("docs/a.md", text), []);
    }
}
