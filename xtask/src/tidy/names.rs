//! Names: no module or crate is named for being a drawer.
//!
//! Touches: the paths and `mod` items of Rust files, and package names. Keeps: a name states a purpose, so that the
//! next thing without a place needs a thought and not a drawer. Never: examines functions and types.

use super::Complaint;
use crate::repository::Tree;

const DRAWERS: &[&str] = &["util", "utils", "common", "helpers"];

/// Checks file and directory names, inline modules and package names.
pub(super) fn check(tree: &Tree) -> Result<Vec<Complaint>, String> {
    let mut complaints = Vec::new();
    for path in tree.files_with("rs") {
        let modules = path.strip_suffix(".rs").unwrap_or(path).split('/');
        complaints.extend(modules.filter_map(|name| judge(path, 1, name)));
        for (index, line) in tree.text(path)?.lines().enumerate() {
            // A module in its own file is found by its path; this finds `mod util { … }`.
            let inline = module_of(line).filter(|_| line.trim_end().ends_with('{'));
            complaints.extend(inline.and_then(|name| judge(path, index + 1, name)));
        }
    }
    for path in tree.files().filter(|path| path.ends_with("Cargo.toml")) {
        for (index, line) in tree.text(path)?.lines().enumerate() {
            let name = line.strip_prefix("name = \"").and_then(|rest| rest.strip_suffix('"'));
            let words = name.into_iter().flat_map(|name| name.split(['-', '_']));
            complaints.extend(words.filter_map(|word| judge(path, index + 1, word)));
        }
    }
    Ok(complaints)
}

fn judge(path: &str, line: usize, name: &str) -> Option<Complaint> {
    DRAWERS.contains(&name).then(|| {
        let wrong = format!("`{name}` names no purpose");
        Complaint::new(path, line, wrong, "name it for what it does, or move it to its user")
    })
}

/// The name in `mod NAME`, whatever its visibility.
fn module_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let item = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1.trim_start(),
        Some(rest) => rest.trim_start(),
        None => line,
    };
    item.strip_prefix("mod ")?.split([' ', ';', '{']).next()
}

#[cfg(test)]
mod tests {
    use super::super::temporary::TemporaryTree;
    use super::*;

    #[test]
    fn a_drawer_is_an_error_wherever_it_stands() {
        for (path, text, line) in [
            ("crates/kv/src/util.rs", "", 1),
            ("crates/kv/src/utils/mod.rs", "", 1),
            ("crates/kv/tests/common/mod.rs", "", 1),
            ("crates/common/src/lib.rs", "", 1),
            ("crates/kv/src/lib.rs", "\nmod helpers {\n}\n", 2),
            ("crates/kv/src/lib.rs", "\n\npub(crate) mod util {\n}\n", 3),
            ("crates/one/Cargo.toml", "[package]\nname = \"statehouse-utils\"\n", 2),
        ] {
            let found = check(&TemporaryTree::with(&[(path, text)]).tree()).unwrap();
            assert_eq!(found.len(), 1, "{path}: {found:?}");
            assert_eq!((found[0].path.as_str(), found[0].line), (path, line));
        }
    }

    #[test]
    fn a_word_inside_another_is_no_drawer() {
        let files = [
            ("crates/kv/src/utility.rs", "mod commonly {\n}\n// mod util {\n"),
            ("crates/kv/Cargo.toml", "name = \"statehouse-kv\"\n"),
        ];
        assert_eq!(check(&TemporaryTree::with(&files).tree()).unwrap(), []);
    }
}
