//! One place for a contract: its folder in each crate. What is outside of the folders and names a contract is what somebody
//! has to find and read who adds the next one.
//!
//! Touches: the Rust files of the crates, as text. Keeps: the files outside of the folders that name a contract are those of
//! [`LISTED`], and a listed file still names one. Never: examines tests.

use std::collections::BTreeMap;

use super::{Complaint, is_test, shipped_part};
use crate::repository::Tree;

/// The names of the contracts' folders and files, and the words that their types begin with.
const CONTRACTS: [(&[&str], [&str; 2]); 4] = [
    (&["cells", "cell"], ["Cells", "Cell"]),
    (&["records", "record"], ["Records", "Record"]),
    (&["runs", "run"], ["Runs", "Run"]),
    (&["keyed"], ["Keyed", "Maps"]),
];

/// What uses the contracts, as a program does.
const USERS: &[&str] = &["crates/statehouse/src/stream/"];

/// Imports from libraries whose types begin with the same words. A type that is given another name there names no contract.
const FOREIGN: &[&str] = &["use comfy_table::"];

/// So many files may be listed.
pub(super) const LISTED_MAX: usize = 15;

/// The files outside of the contracts' folders that name a contract.
const LISTED: &[&str] = &[
    "crates/cli/src/main.rs",
    "crates/client/src/lib.rs",
    "crates/contract/src/lib.rs",
    // The audit is kept in runs.
    "crates/kernel/src/audit/mod.rs",
    "crates/statehouse/src/audit.rs",
    "crates/kernel/src/catalogue/type_bytes.rs",
    "crates/kernel/src/catalogue/types.rs",
    "crates/kernel/src/contracts.rs",
    "crates/kernel/src/keys.rs",
    "crates/kernel/src/lib.rs",
    "crates/kernel/src/machine.rs",
    "crates/server/src/api/mod.rs",
    "crates/node/src/lib.rs",
    "crates/statehouse/src/lib.rs",
    "crates/wire/src/lib.rs",
];

/// Compares the files that name a contract with the list.
pub(super) fn check(tree: &Tree) -> Result<Vec<Complaint>, String> {
    // A tree of a test has few of them.
    let listed: Vec<&str> = LISTED.iter().copied().filter(|path| tree.exists(path)).collect();
    check_against(tree, &listed)
}

fn check_against(tree: &Tree, listed: &[&str]) -> Result<Vec<Complaint>, String> {
    let naming = naming(tree)?;
    let mut complaints = Vec::new();
    for (path, (line, word)) in naming.iter().filter(|(path, _)| !listed.contains(&path.as_str())) {
        let wrong = format!("names a contract outside of its folders: {word}");
        let remedy = "move what it does to the folders, or list it in xtask/src/tidy/contracts.rs";
        complaints.push(Complaint::new(path, *line, wrong, remedy));
    }
    for path in listed.iter().filter(|path| !naming.contains_key(**path)) {
        complaints.push(Complaint::new(path, 1, "is listed and names no contract", "take it from the list"));
    }
    if listed.len() > LISTED_MAX {
        let wrong = format!("{} files name a contract outside of its folders", listed.len());
        complaints.push(Complaint::new("xtask/src/tidy/contracts.rs", 1, wrong, format!("{LISTED_MAX} are the most")));
    }
    Ok(complaints)
}

/// The files outside of the folders that name a contract, each with the first line that does and the word.
pub(super) fn naming(tree: &Tree) -> Result<BTreeMap<String, (usize, String)>, String> {
    let outside = |(path, _): &(String, String)| {
        let is_user = USERS.iter().any(|folder| path.starts_with(folder));
        !is_user && !CONTRACTS.iter().any(|(folders, _)| is_in_folder_of(path, folders))
    };
    let files = shipped_files(tree)?.into_iter().filter(outside);
    Ok(files.filter_map(|(path, text)| first_name(&text).map(|named| (path, named))).collect())
}

/// The files of the crates with what is shipped of them.
pub(super) fn shipped_files(tree: &Tree) -> Result<Vec<(String, String)>, String> {
    let only_tests = test_modules(tree)?;
    let paths = tree.files_with("rs").filter(|path| {
        let shipped = path.starts_with("crates/") && path.contains("/src/") && !is_test(path);
        shipped && !only_tests.iter().any(|module| is_in(path, module))
    });
    paths.map(|path| Ok((path.to_owned(), shipped_part(&tree.text(path)?).to_owned()))).collect()
}

/// Whether a file is in one of these folders, or is all that a crate has of it.
pub(super) fn is_in_folder_of(path: &str, folders: &[&str]) -> bool {
    let inside = path.split_once("/src/").map_or(path, |(_, inside)| inside);
    inside.split(['/', '.']).any(|part| folders.contains(&part))
}

/// The modules that are only compiled for tests, as paths without an ending.
fn test_modules(tree: &Tree) -> Result<Vec<String>, String> {
    let mut modules = Vec::new();
    for path in tree.files_with("rs").filter(|path| path.starts_with("crates/")) {
        let text = tree.text(path)?;
        let folder = match path.strip_suffix(".rs") {
            Some(file) if matches!(file.rsplit('/').next(), Some("lib" | "main" | "mod")) => {
                file.rsplit_once('/').map_or("", |(folder, _)| folder)
            }
            Some(file) => file,
            None => continue,
        };
        for declared in text.split("#[cfg(test)]\nmod ").skip(1).filter_map(|rest| rest.split_once(';')) {
            if declared.0.chars().all(|letter| letter.is_alphanumeric() || letter == '_') {
                modules.push(format!("{folder}/{}", declared.0));
            }
        }
    }
    Ok(modules)
}

fn is_in(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// The first line of a text that names a contract in code, and the word.
fn first_name(text: &str) -> Option<(usize, String)> {
    let std_cell = text.contains("cell::Cell");
    for (number, line) in text.lines().enumerate() {
        if FOREIGN.iter().any(|import| line.starts_with(import)) {
            continue;
        }
        let code = without_strings(line);
        let code = code.split("//").next().unwrap_or_default();
        let imports = code.contains("use ") || code.contains("mod ");
        let (mut before, mut rest) = ("", code);
        while let Some(begin) = rest.find(|letter: char| letter.is_alphanumeric() || letter == '_') {
            let word_and_rest = &rest[begin..];
            let end = word_and_rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
            let (word, after) = word_and_rest.split_at(end.unwrap_or(word_and_rest.len()));
            let of_std = &rest[..begin] == "::" && matches!(before, "std" | "core");
            if names_contract(word, after, imports) && !of_std && !(std_cell && word == "Cell") {
                return Some((number + 1, word.to_owned()));
            }
            (before, rest) = (word, after);
        }
    }
    None
}

/// A contract's module, in a path or where modules are declared and imported; or a type whose name begins with a contract's.
fn names_contract(word: &str, after: &str, imports: bool) -> bool {
    CONTRACTS.iter().any(|(folders, types)| {
        let of_type = |name: &str| {
            word.strip_prefix(name)
                .is_some_and(|rest| rest.chars().next().is_none_or(|letter| letter.is_ascii_uppercase()))
        };
        ((imports || after.starts_with("::")) && folders.contains(&word)) || types.iter().any(|name| of_type(name))
    })
}

/// A line without what stands between quotes.
fn without_strings(line: &str) -> String {
    let mut quoted = false;
    let mut before = ' ';
    line.chars()
        .filter(|letter| {
            let quote = *letter == '"' && before != '\\' && before != '\'';
            before = *letter;
            quoted ^= quote;
            !quoted && !quote
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::temporary::TemporaryTree;
    use super::*;

    #[test]
    fn names_are_found_in_code_only() {
        assert_eq!(first_name("// records::X\nlet s = \"Cell\"; /// RunId\n"), None);
        assert_eq!(first_name("use comfy_table::{CellAlignment as Alignment, Table};\n"), None);
        assert_eq!(first_name("use a::Recorder;\nlet running = Runtime::new(std::cell::Cell::new(1));"), None);
        assert_eq!(first_name("fn a() {}\nuse crate::records::row;"), Some((2, "records".to_owned())));
        assert_eq!(first_name("fn a(run: &RunRow) {}"), Some((1, "RunRow".to_owned())));
        assert_eq!(first_name("let runs = 1;\nuse crate::{cells, keys};"), Some((2, "cells".to_owned())));
        assert_eq!(first_name("pub(crate) mod runs;"), Some((1, "runs".to_owned())));
        assert_eq!(first_name("match op { Op::Cell(_) => {} }"), Some((1, "Cell".to_owned())));
        assert_eq!(first_name("use crate::record::held;"), Some((1, "record".to_owned())));
        assert_eq!(first_name("check(run::replay::check(&house))"), Some((1, "run".to_owned())));
        assert_eq!(first_name("mod cell;"), Some((1, "cell".to_owned())));
        assert_eq!(first_name("use std::cell::RefCell;\nlet cell = core::cell::OnceCell::new(run.record(1));"), None);
    }

    #[test]
    fn every_listed_file_exists() {
        let root = crate::repository::root().unwrap();
        for path in LISTED {
            assert!(root.join(path).is_file(), "{path} is listed");
        }
    }

    #[test]
    fn a_file_outside_of_the_folders_has_to_be_listed() {
        let tree = TemporaryTree::new();
        tree.write("crates/some/src/lib.rs", "pub mod cells;\nuse cells::Cells;\n#[cfg(test)]\nmod script;\n");
        tree.write("crates/some/src/cells/row.rs", "pub struct CellRow;\n");
        tree.write("crates/some/src/run.rs", "pub struct RunRow;\n");
        tree.write("crates/some/src/script/words.rs", "use crate::cells::CellRow;\n");
        tree.write("crates/some/src/other.rs", "#[cfg(test)]\nmod tests {\n    use crate::cells::CellRow;\n}\n");
        let complaints = check_against(&tree.tree(), &[]).unwrap();
        assert_eq!(complaints.len(), 1, "{complaints:?}");
        assert_eq!((complaints[0].path.as_str(), complaints[0].line), ("crates/some/src/lib.rs", 1));
        assert_eq!(check_against(&tree.tree(), &["crates/some/src/lib.rs"]).unwrap(), []);
        let complaints = check_against(&tree.tree(), &["crates/some/src/lib.rs", "crates/some/src/other.rs"]).unwrap();
        assert_eq!(complaints[0].wrong, "is listed and names no contract");
    }
}
