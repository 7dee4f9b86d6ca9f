//! The structure of the tree in numbers: what [`check`](super::check) keeps within bounds.

use std::path::Path;

use super::{circles, contracts, modules, single};
use crate::repository::Tree;

/// A number and its bound.
pub(crate) struct Measure {
    pub(crate) name: &'static str,
    pub(crate) found: usize,
    pub(crate) max: usize,
    pub(crate) unit: &'static str,
}

/// Measures the tree.
pub(crate) fn measure(root: &Path) -> Result<Vec<Measure>, String> {
    let tree = Tree::read(root)?;
    let of = |name, found, max, unit| Measure { name, found, max, unit };
    Ok(vec![
        of("circles", circles::largest(&tree)?, circles::FILES_MAX, "files-in-the-largest-circle"),
        of("contracts", contracts::naming(&tree)?.len(), contracts::LISTED_MAX, "files-outside-name-a-contract"),
        of("lines", modules::longest(&tree)?, modules::LINES_MAX, "lines-in-the-longest-file"),
        of("single", single::most(&tree)?, 1, "driver-harness-and-client-each"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_within_its_bound_and_something_is_measured() {
        for Measure { name, found, max, .. } in measure(&crate::repository::root().unwrap()).unwrap() {
            assert!((1..=max).contains(&found), "{name}: {found}");
        }
    }
}
