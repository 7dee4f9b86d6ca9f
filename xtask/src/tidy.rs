//! Tidy: rules that the compiler and clippy cannot enforce, each in its own file.
//!
//! Touches: the source tree and `cargo metadata`, reading only. Keeps: one line per complaint, `tidy: path:line: what
//! is wrong; what to do`, sorted by path. Never: repairs anything.

mod architecture;
mod book;
mod circles;
pub(crate) mod contract_files;
mod contracts;
mod figures;
mod invariants;
mod levels;
mod limits;
mod links;
mod markdown;
mod modules;
mod names;
mod routes;
mod single;
pub(crate) mod structure;
mod words;

#[cfg(test)]
mod temporary;

use std::fmt;
use std::path::Path;

use crate::repository::Tree;

/// Runs every rule and prints the complaints; `Ok(false)` if there is one.
pub(crate) fn run(root: &Path) -> Result<bool, String> {
    let complaints = check(root)?;
    for complaint in &complaints {
        println!("{complaint}");
    }
    println!("tidy: {} errors", complaints.len());
    Ok(complaints.is_empty())
}

fn check(root: &Path) -> Result<Vec<Complaint>, String> {
    let tree = Tree::read(root)?;
    let mut complaints = levels::check(&levels::metadata(root)?, &tree)?;
    complaints.extend(modules::check(&tree)?);
    complaints.extend(names::check(&tree)?);
    complaints.extend(architecture::check(&tree)?);
    complaints.extend(book::check(&tree)?);
    complaints.extend(circles::check(&tree)?);
    complaints.extend(contract_files::check(&tree)?);
    complaints.extend(contracts::check(&tree)?);
    complaints.extend(figures::check(&tree)?);
    complaints.extend(invariants::check(&tree)?);
    complaints.extend(limits::check(&tree)?);
    complaints.extend(links::check(&tree)?);
    complaints.extend(routes::check(&tree)?);
    complaints.extend(single::check(&tree)?);
    complaints.extend(words::check(&tree)?);
    complaints.sort();
    Ok(complaints)
}

/// Whether a file has nothing but tests.
fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs")
}

/// What stands in a file before its tests.
fn shipped_part(text: &str) -> &str {
    text.split_once("#[cfg(test)]\nmod tests").map_or(text, |(shipped, _)| shipped)
}

/// A complaint: what is wrong, where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Complaint {
    path: String,
    line: usize,
    wrong: String,
    remedy: String,
}

impl Complaint {
    fn new(path: &str, line: usize, wrong: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (wrong, remedy) = (wrong.into(), remedy.into());
        Self { path: path.to_string(), line, wrong, remedy }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, wrong, remedy } = self;
        write!(formatter, "tidy: {path}:{line}: {wrong}; {remedy}")
    }
}

#[cfg(test)]
mod tests {
    use super::temporary::TemporaryTree;
    use super::*;

    /// A workspace that every rule accepts, to be broken in one place by a test.
    fn sound() -> TemporaryTree {
        let tree = TemporaryTree::new();
        tree.write("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n");
        tree.write(
            "crates/kv/Cargo.toml",
            "[package]\nname = \"statehouse-kv\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
        );
        tree.write("crates/kv/src/lib.rs", "//! A store.\n");
        tree.write("ARCHITECTURE.md", "The store is in `crates/kv`.\n");
        tree
    }

    #[test]
    fn a_sound_tree_has_no_complaints() {
        assert_eq!(check(sound().root()), Ok(Vec::new()));
    }

    #[test]
    fn every_rule_takes_part_in_the_whole_check() {
        let tree = sound();
        tree.write(
            "crates/kv/Cargo.toml",
            "[package]\nname = \"statehouse-new\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
        );
        tree.write("crates/kv/src/util.rs", "fn undocumented() {}\n");
        tree.write("README.md", "[gone](gone.md)\n\n`5` by `cargo xtask show cells kill`\n");
        tree.write("ARCHITECTURE.md", "`crates/kv`, `docs/gone`\n\n| K1 | broken |\n");
        tree.write("docs/lost.md", "");
        tree.write("notes.txt", concat!("see ../sha", "red\n"));
        let found: Vec<String> = check(tree.root()).unwrap().iter().map(ToString::to_string).collect();
        let expected = [
            "tidy: ARCHITECTURE.md:1: `docs/gone` does not exist; ",
            "tidy: ARCHITECTURE.md:3: invariant K1 is named in 0 of 2 Rust files; ",
            "tidy: README.md:1: the link `gone.md` points to nothing; ",
            "tidy: README.md:3: `5` is no figure of `cargo xtask show cells kill` in docs/measured.md; ",
            "tidy: crates/kv/Cargo.toml:2: crate `statehouse-new` is not in the table of levels; ",
            "tidy: crates/kv/src/util.rs:1: `util` names no purpose; ",
            "tidy: crates/kv/src/util.rs:1: no module documentation at the top; ",
            "tidy: docs/SUMMARY.md:1: the contents are missing; ",
            "tidy: notes.txt:1: contains ",
        ];
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found} against {expected}");
        }
        assert_eq!(run(tree.root()), Ok(false));
    }

    #[test]
    fn build_output_and_history_are_not_looked_at() {
        let tree = sound();
        for directory in [".git", "target", "crates/kv/target"] {
            tree.write(&format!("{directory}/a.md"), "[gone](gone.md)\n");
        }
        assert_eq!(check(tree.root()), Ok(Vec::new()));
    }
}
