//! One of a kind: programs that were written several times once, and grew apart.
//!
//! Touches: the Rust files, as text. Keeps: the mark of each kind stands in its one file. Never: recognises one that is written
//! in another way; the reviewer does.

use super::Complaint;
use crate::repository::Tree;

/// Something of which there is one.
struct Single {
    what: &'static str,
    /// Stands in its file and nowhere else below these folders.
    mark: &'static str,
    below: &'static [&'static str],
    file: &'static str,
}

const SINGLES: [Single; 3] = [
    Single {
        what: "driver of models",
        mark: "struct Course",
        below: &["tests/"],
        file: "tests/sim/src/model/stretch.rs",
    },
    Single { what: "harness that kills", mark: "trait Victim", below: &["tests/"], file: "tests/sim/src/kills.rs" },
    Single {
        what: "HTTP client",
        mark: "legacy::Client",
        below: &["crates/", "tests/", "bench/"],
        file: "crates/client/src/transport.rs",
    },
];

/// Looks for a second one of each kind.
pub(super) fn check(tree: &Tree) -> Result<Vec<Complaint>, String> {
    Ok(found(tree)?.into_iter().flat_map(|(single, files)| complaints(single, &files)).collect())
}

/// How many there are of the kind of which there are most.
pub(super) fn most(tree: &Tree) -> Result<usize, String> {
    Ok(found(tree)?.iter().map(|(_, files)| files.len()).max().unwrap_or(0))
}

fn found(tree: &Tree) -> Result<Vec<(&'static Single, Vec<String>)>, String> {
    let mut kinds: Vec<_> = SINGLES.iter().map(|single| (single, Vec::new())).collect();
    for path in tree.files_with("rs") {
        let text = tree.text(path)?;
        for (single, files) in &mut kinds {
            if single.below.iter().any(|folder| path.starts_with(folder)) && text.contains(single.mark) {
                files.push(path.to_owned());
            }
        }
    }
    // A tree of a test has few of them.
    Ok(kinds.into_iter().filter(|(single, files)| tree.exists(single.file) || !files.is_empty()).collect())
}

fn complaints(single: &Single, files: &[String]) -> Vec<Complaint> {
    let Single { what, mark, file, .. } = single;
    let others = files.iter().filter(|path| path != file);
    let mut complaints: Vec<_> = others
        .map(|path| Complaint::new(path, 1, format!("a second {what}: `{mark}`"), format!("use the one in {file}")))
        .collect();
    if !files.iter().any(|path| path == file) {
        let remedy = "give its new file or mark in xtask/src/tidy/single.rs";
        complaints.push(Complaint::new(file, 1, format!("the {what} is not here: `{mark}`"), remedy));
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::super::temporary::TemporaryTree;
    use super::*;

    #[test]
    fn each_is_in_its_file() {
        let tree = Tree::read(&crate::repository::root().unwrap()).unwrap();
        assert_eq!(
            (check(&tree).unwrap(), most(&tree).unwrap(), found(&tree).unwrap().len()),
            (vec![], 1, SINGLES.len())
        );
    }

    #[test]
    fn a_second_one_and_a_missing_one_are_found() {
        for single in &SINGLES {
            let tree = TemporaryTree::with(&[(single.file, single.mark)]);
            assert_eq!(check(&tree.tree()).unwrap(), []);
            let second = format!("{}new.rs", single.below[0]);
            tree.write(&second, single.mark);
            let found = check(&tree.tree()).unwrap();
            assert_eq!(found.iter().map(|complaint| complaint.path.as_str()).collect::<Vec<_>>(), [&second]);
            assert_eq!(most(&tree.tree()), Ok(2));
            tree.write(single.file, "// moved\n");
            assert_eq!(check(&tree.tree()).unwrap().len(), 2);
        }
    }
}
