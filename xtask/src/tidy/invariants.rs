//! Invariants: each number in `ARCHITECTURE.md` is held in at least two Rust files.
//!
//! Touches: `ARCHITECTURE.md` and the Rust files outside this crate. Keeps: one search for a number
//! finds its words, its assertion and its test. Never: knows whether the assertion is a good one.

use super::Complaint;
use super::architecture::DOCUMENT;
use super::markdown::prose;
use crate::repository::Tree;

/// The assertion and the test, model or simulator that would see it broken.
const FILES_MIN: usize = 2;

/// Checks where every invariant is mentioned.
pub(super) fn check(tree: &Tree) -> Result<Vec<Complaint>, String> {
    if !tree.exists(DOCUMENT) {
        // Another rule reports it.
        return Ok(Vec::new());
    }
    let document = tree.text(DOCUMENT)?;
    let mut invariants: Vec<(usize, &str, usize)> = Vec::new();
    for (line, text) in prose(&document) {
        let Some(code) = code_of(text) else { continue };
        if !invariants.iter().any(|(_, seen, _)| *seen == code) {
            invariants.push((line, code, 0));
        }
    }
    // This crate's own tests make up numbers.
    for path in tree.files_with("rs").filter(|path| !path.starts_with("xtask/")) {
        let text = tree.text(path)?;
        for (_, code, files) in &mut invariants {
            *files += usize::from(mentions(&text, code));
        }
    }
    let short = invariants.into_iter().filter(|(_, _, files)| *files < FILES_MIN);
    Ok(short
        .map(|(line, code, files)| {
            let wrong = format!("invariant {code} is named in {files} of {FILES_MIN} Rust files");
            let remedy = format!("name {code} in the assertion and in the test that would break it");
            Complaint::new(DOCUMENT, line, wrong, remedy)
        })
        .collect())
}

/// The number at the start of a table row, or at the start of a line if it is set off.
fn code_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let (cell, in_table) = match line.strip_prefix('|') {
        Some(row) => (row.split('|').next().unwrap_or(row), true),
        None => (line.trim_start_matches("- "), false),
    };
    let cell = cell.trim();
    for mark in ["**`", "**", "`"] {
        if let Some(rest) = cell.strip_prefix(mark) {
            let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric())?;
            return Some(&rest[..end]).filter(|code| is_code(code));
        }
    }
    (in_table && is_code(cell)).then_some(cell)
}

/// A capital letter and a number.
fn is_code(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(|first| first.is_ascii_uppercase())
        && (2..=4).contains(&word.len())
        && letters.all(|digit| digit.is_ascii_digit())
}

/// Whether `word` occurs in `text` by itself: `K1` is not in `K12` or `BLOCK1`.
fn mentions(text: &str, word: &str) -> bool {
    let joins = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(word)
        .any(|(start, _)| !text[..start].ends_with(joins) && !text[start + word.len()..].starts_with(joins))
}

#[cfg(test)]
mod tests {
    use super::super::temporary::TemporaryTree;
    use super::*;

    fn complaints(document: &str, first: &str, second: &str) -> Vec<(usize, String)> {
        let files = [
            (DOCUMENT, document),
            ("crates/kernel/src/apply.rs", first),
            ("tests/sim/src/model.rs", second),
            ("xtask/src/tidy.rs", "// K1 K1 K1\n"),
        ];
        let found = check(&TemporaryTree::with(&files).tree()).unwrap();
        found.into_iter().map(|complaint| (complaint.line, complaint.wrong)).collect()
    }

    #[test]
    fn an_invariant_held_in_one_file_is_an_error() {
        let wrong = |files| format!("invariant K1 is named in {files} of 2 Rust files");
        for document in [
            "| K1 | versions only rise |\n",
            "| `K1` | versions only rise |\n",
            "| **K1** | versions only rise |\n",
            "**K1** versions only rise\n",
            "- `K1`: versions only rise\n",
            "**K1.** versions only rise\n",
        ] {
            assert_eq!(complaints(document, "// K1\n", "// (K1)\n"), [], "{document}");
            assert_eq!(complaints(document, "// K1\n", "// K12\n"), [(1, wrong(1))], "{document}");
            assert_eq!(complaints(document, "BLOCK1\n", "K1_a\n"), [(1, wrong(0))], "{document}");
        }
    }

    #[test]
    fn only_the_start_of_a_row_states_an_invariant() {
        for document in [
            "| number | words |\n|---|---|\n",
            "| words | K1 |\n",
            "K1 is explained elsewhere.\n",
            "See `K1`.\n",
            "```text\n| K1 | in an example |\n```\n",
            "| KV | a name |\n",
        ] {
            assert_eq!(complaints(document, "", ""), [], "{document}");
        }
    }
}
