//! Words: text that has no meaning outside one machine stays out of the repository.
//!
//! Touches: every file. Keeps: a clone is complete by itself. Never: contains a forbidden word
//! itself; they are put together from parts.

use super::Complaint;
use crate::repository::Tree;

/// Each word in two parts, so that this file does not contain it.
const FORBIDDEN: &[(&str, &str, &str)] = &[("../sha", "red", "nothing beside the repository exists in a clone")];

/// Checks every file for the words.
pub(super) fn check(tree: &Tree) -> Result<Vec<Complaint>, String> {
    let mut complaints = Vec::new();
    for path in tree.files() {
        let text = tree.text(path)?;
        for (head, tail, reason) in FORBIDDEN {
            let word = format!("{head}{tail}");
            for (index, _) in text.lines().enumerate().filter(|(_, line)| line.contains(&word)) {
                let wrong = format!("contains `{word}`: {reason}");
                complaints.push(Complaint::new(path, index + 1, wrong, "say it in the repository"));
            }
        }
    }
    Ok(complaints)
}

#[cfg(test)]
mod tests {
    use super::super::temporary::TemporaryTree;
    use super::*;

    #[test]
    fn a_forbidden_word_is_found_in_any_file() {
        for path in ["README.md", ".ci/run", "crates/kv/src/lib.rs"] {
            let text = format!("\nsee {}{}/X\n", FORBIDDEN[0].0, FORBIDDEN[0].1);
            let found = check(&TemporaryTree::with(&[(path, &text)]).tree()).unwrap();
            assert_eq!(found.len(), 1);
            assert_eq!((found[0].path.as_str(), found[0].line), (path, 2));
        }
        let sound = [("README.md", "a shared directory\n")];
        assert_eq!(check(&TemporaryTree::with(&sound).tree()).unwrap(), []);
    }
}
