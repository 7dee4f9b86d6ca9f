//! Modules: every module says what it is for, and none grows too long to read.
//!
//! Touches: the Rust files. Keeps: module documentation is the first thing in a file. Never: judges what the
//! documentation says; the reviewer does.

use super::Complaint;
use crate::repository::Tree;

/// Above this a file must be split.
pub(super) const LINES_MAX: usize = 400;

/// Checks the length of every Rust file and the documentation of every module.
pub(super) fn check(tree: &Tree) -> Result<Vec<Complaint>, String> {
    let mut complaints = Vec::new();
    for path in tree.files_with("rs") {
        let text = tree.text(path)?;
        if must_be_documented(path) && !opens_with_documentation(&text) {
            complaints.push(Complaint::new(
                path,
                1,
                "no module documentation at the top",
                "open with `//!`: what it does, touches, keeps and never does",
            ));
        }
        complaints.extend(check_length(path, text.lines().count()));
    }
    Ok(complaints)
}

/// Sources and examples. Integration tests are documented by their names.
fn must_be_documented(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(
        parts.as_slice(),
        ["crates" | "tests", _, "src" | "examples", ..] | ["bench" | "xtask", "src", ..] | ["examples", ..]
    )
}

/// Whether the first line is a `//!`, after blank lines and inner attributes.
fn opens_with_documentation(text: &str) -> bool {
    let mut in_attribute = false;
    for line in text.lines().map(str::trim) {
        if in_attribute || line.starts_with("#!") {
            // An attribute may span lines; a shebang opens no bracket and ends with its line.
            let opened = in_attribute || line.starts_with("#![");
            in_attribute = opened && !line.ends_with(']');
        } else if !line.is_empty() {
            return line.starts_with("//!");
        }
    }
    false
}

fn check_length(path: &str, lines: usize) -> Option<Complaint> {
    (lines > LINES_MAX).then(|| {
        let wrong = format!("{lines} lines, {LINES_MAX} is the most");
        Complaint::new(path, LINES_MAX + 1, wrong, "split it by what it does, or move its tests out")
    })
}

/// The lines of the longest Rust file.
pub(super) fn longest(tree: &Tree) -> Result<usize, String> {
    tree.files_with("rs").try_fold(0, |longest, path| Ok(longest.max(tree.text(path)?.lines().count())))
}

#[cfg(test)]
mod tests {
    use super::super::temporary::TemporaryTree;
    use super::*;

    fn check_files(files: &[(&str, &str)]) -> Vec<Complaint> {
        check(&TemporaryTree::with(files).tree()).unwrap()
    }

    #[test]
    fn a_module_without_documentation_is_an_error() {
        let places = [
            "crates/kv/src/lib.rs",
            "crates/kv/src/deep/inside.rs",
            "crates/kv/examples/one.rs",
            "tests/sim/src/main.rs",
            "bench/src/main.rs",
            "xtask/src/main.rs",
            "examples/one.rs",
        ];
        for place in places {
            for text in ["", "fn main() {}\n", "// A comment.\n", "/// Of an item.\nfn f() {}\n"] {
                let found = check_files(&[(place, text)]);
                assert_eq!(found.len(), 1, "{place}: {text:?}");
                assert!(found[0].wrong.contains("no module documentation"));
            }
        }
        assert_eq!(check_files(&[("crates/kv/tests/one.rs", "fn main() {}\n")]), []);
    }

    #[test]
    fn attributes_may_come_before_the_documentation() {
        for text in [
            "//! Said.\n",
            "\n//! Said.\n",
            "#!/usr/bin/env run\n//! Said.\n",
            "#![allow(x)]\n\n//! Said.\n",
            "#![allow(\n    x\n)]\n//! Said.\n",
        ] {
            assert_eq!(check_files(&[("xtask/src/main.rs", text)]), [], "{text:?}");
        }
        let found = check_files(&[("xtask/src/main.rs", "#![allow(x)]\nfn main() {}\n")]);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn a_file_that_is_too_long_fails() {
        let lines = |count: usize| format!("//! Long.\n{}", "//\n".repeat(count - 1));
        let check_lines = |count| check_files(&[("crates/kv/src/lib.rs", &lines(count))]);
        assert_eq!(check_lines(LINES_MAX), []);
        assert_eq!(check_lines(LINES_MAX + 1).len(), 1);
    }
}
