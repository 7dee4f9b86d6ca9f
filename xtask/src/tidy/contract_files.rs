//! What a contract takes outside of its folders: the files that name it in any way, which is what whoever adds the next one has to
//! change.
//!
//! Touches: the Rust files of the crates, as text, with their comments. Keeps: the last contract takes no more files than it does
//! now. Never: examines tests.

use std::path::Path;

use super::Complaint;
use super::contracts::{is_in_folder_of, shipped_files};
use crate::repository::Tree;

/// The contract that was added last may take so many files.
pub(crate) const FILES_GOAL: usize = 15;

/// It takes so many, and no more: the lists of the contracts, the keys of its rows, its routes, the pages of its codes, what a server
/// keeps for it, and the row of its setting.
const FILES_MAX: usize = 13;

const _: () = assert!(FILES_MAX <= FILES_GOAL, "the goal is reached, and stays so");

/// The contract that was added last.
const LAST: &str = "keyed";

/// A contract, and how code names it.
struct Contract {
    name: &'static str,
    /// What is in a folder or a file of such a name is the contract's own.
    folders: &'static [&'static str],
    /// So is all of these crates, which came with it.
    crates: &'static [&'static str],
    /// Identifiers begin like this.
    words: &'static [&'static str],
    /// Anything else that is only about this contract.
    texts: &'static [&'static str],
}

const CONTRACTS: &[Contract] = &[
    Contract {
        name: "cells",
        folders: &["cells", "cell"],
        crates: &[],
        words: &["Cell", "CELL", "cells"],
        texts: &["\"cells."],
    },
    Contract {
        name: "records",
        folders: &["records", "record"],
        crates: &[],
        words: &["Record", "RECORD", "records"],
        texts: &["\"records."],
    },
    Contract {
        name: "runs",
        folders: &["runs", "run"],
        crates: &[],
        words: &["Run", "RUN", "runs"],
        texts: &["\"runs."],
    },
    Contract {
        name: "keyed",
        // Stream processing is what keyed state is for, and came with it.
        folders: &["keyed", "stream"],
        crates: &["objects"],
        words: &[
            "Keyed",
            "KEYED",
            "keyed",
            "Maps",
            "MAPS",
            "MapCommit",
            "MapGuard",
            "MapOperation",
            "MapUpdate",
            "UpdateOutcome",
            "LEVEL_OF_KEYED",
            "statehouse_keyed",
        ],
        texts: &[
            "\"maps.",
            "/v1/maps",
            "Subject::Map",
            "Op::Map",
            "Guard::Map",
            "SH-80",
            "keyed state",
            "heckpoint",
            "CHECKPOINT",
        ],
    },
];

/// A file that names a contract, and where it does first.
pub(crate) struct Naming {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) word: String,
}

/// Prints the files outside of a contract's folders that name it; `Ok(false)` if there are more than may be.
pub(crate) fn print(root: &Path, contract: &str) -> Result<bool, String> {
    let found = list(&Tree::read(root)?, contract)?;
    for Naming { path, line, word } in &found {
        println!("{path}:{line}: {word}");
    }
    println!("tidy: {} files outside of its folders name {contract}; goal: at most {FILES_GOAL}", found.len());
    Ok(found.len() <= FILES_GOAL)
}

/// Compares what the last contract takes with what it may.
pub(super) fn check(tree: &Tree) -> Result<Vec<Complaint>, String> {
    let found = list(tree, LAST)?;
    let wrong = format!("{} files outside of the folders of {LAST} name it", found.len());
    let remedy =
        format!("move what one of them has to the folders: {FILES_MAX} are the most; --contract {LAST} lists them");
    let complaint = || Complaint::new("xtask/src/tidy/contract_files.rs", 1, wrong, remedy);
    Ok((found.len() > FILES_MAX).then(complaint).into_iter().collect())
}

/// The files outside of a contract's folders that name it.
pub(crate) fn list(tree: &Tree, contract: &str) -> Result<Vec<Naming>, String> {
    let names = CONTRACTS.iter().map(|contract| contract.name).collect::<Vec<_>>().join(", ");
    let contract = CONTRACTS.iter().find(|known| known.name == contract);
    let contract = contract.ok_or_else(|| format!("no such contract; there are {names}"))?;
    let mut found = Vec::new();
    for (path, text) in shipped_files(tree)? {
        let of_crate = |name: &&str| path.starts_with(&format!("crates/{name}/"));
        if !is_in_folder_of(&path, contract.folders)
            && !contract.crates.iter().any(of_crate)
            && let Some((line, word)) = first_name(contract, &text)
        {
            found.push(Naming { path, line, word });
        }
    }
    Ok(found)
}

/// The first line that names a contract, and how.
fn first_name(contract: &Contract, text: &str) -> Option<(usize, String)> {
    text.lines().enumerate().find_map(|(number, line)| {
        let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let word = words.find(|word| contract.words.iter().any(|begin| begins(word, begin)));
        let text = contract.texts.iter().find(|text| line.contains(**text)).copied();
        word.or(text).map(|found| (number + 1, found.to_owned()))
    })
}

/// Whether a word begins with another, which ends there: `KeyedAct` with `Keyed`, and not `Celling` with `Cell`.
fn begins(word: &str, begin: &str) -> bool {
    let is_end = |rest: &str| rest.chars().next().is_none_or(|next| !next.is_ascii_lowercase());
    word.strip_prefix(begin).is_some_and(|rest| is_end(rest) || is_end(rest.strip_prefix('s').unwrap_or(rest)))
}

#[cfg(test)]
mod tests {
    use super::super::temporary::TemporaryTree;
    use super::*;

    fn found(contract: &str, files: &[(&str, &str)]) -> Vec<(String, usize, String)> {
        let found = list(&TemporaryTree::with(files).tree(), contract).unwrap();
        found.into_iter().map(|Naming { path, line, word }| (path, line, word)).collect()
    }

    #[test]
    fn whatever_names_a_contract_outside_of_its_folders_is_listed() {
        for line in [
            "mod keyed;",
            "use contract::KeyedRejection;",
            "pub const KEYED_UPDATES_MAX: usize = 1;",
            "const LEVEL: u32 = LEVEL_OF_KEYED;",
            "fn f(outcome: UpdateOutcome) {}",
            "let a = \"maps.list\";",
            "matches!(code, \"SH-8001\")",
            "// Updates of keyed state.",
            "counter(\"statehouse_keyed_updates_total\")",
            "use statehouse::Maps;",
            "match subject { Subject::Map => 1 }",
            "Refusal::NoCheckpoints => {}",
        ] {
            let text = format!("//! A file.\n{line}\n");
            let found = found("keyed", &[("crates/some/src/other.rs", &text)]);
            assert_eq!(found.len(), 1, "{line}");
            assert_eq!((found[0].0.as_str(), found[0].1), ("crates/some/src/other.rs", 2), "{line}");
        }
    }

    #[test]
    fn what_is_its_own_and_what_is_a_test_is_not_listed() {
        let files = [
            ("crates/some/src/keyed/mod.rs", "pub struct KeyedRow;\n"),
            ("crates/some/src/keys/keyed.rs", "pub struct KeyedRow;\n"),
            ("crates/some/src/stream/node.rs", "use crate::keyed::Maps;\n"),
            ("crates/objects/src/lib.rs", "// The checkpoints.\n"),
            ("crates/some/src/cells/tests.rs", "use crate::keyed::Maps;\n"),
            ("crates/some/src/a.rs", "fn a() {}\n#[cfg(test)]\nmod tests {\n    use crate::keyed::Maps;\n}\n"),
            ("crates/some/src/lib.rs", "#[cfg(test)]\nmod script;\n"),
            ("crates/some/src/script/mod.rs", "mod keyed;\n"),
            ("crates/some/src/b.rs", "fn b(monkeyed: BTreeMap<u8, u8>, mapsy: Mapster) {}\n"),
            ("tests/some/src/a.rs", "use crate::keyed::Maps;\n"),
        ];
        assert_eq!(found("keyed", &files), []);
        assert!(list(&TemporaryTree::new().tree(), "nothing").is_err());
    }
}
