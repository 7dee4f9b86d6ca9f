//! Ranges of names: where a prefix ends, and how own writes fit into a list.

use std::collections::BTreeMap;

use contract::{Listed, NameInGroup, Versioned};

/// The smallest text after every text with this prefix, if there is one.
pub(super) fn after_prefix(prefix: &str) -> Option<String> {
    let mut kept: Vec<char> = prefix.chars().collect();
    while let Some(last) = kept.pop() {
        // The next character, past the gap of the surrogates.
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            other => char::from_u32(u32::from(other) + 1),
        };
        if let Some(next) = next {
            kept.push(next);
            return Some(kept.into_iter().collect());
        }
    }
    None
}

/// Merges own writes into a page of stored cells; none deletes.
pub(super) fn merge_own(stored: Listed, own: Vec<(NameInGroup, Option<Versioned>)>, limit: usize) -> Listed {
    let mut cells: BTreeMap<NameInGroup, Versioned> = stored.cells.into_iter().collect();
    for (name, versioned) in own {
        match versioned {
            Some(versioned) => cells.insert(name, versioned),
            None => cells.remove(&name),
        };
    }
    let more = stored.next_after.is_some() || cells.len() > limit;
    let cells: Vec<_> = cells.into_iter().take(limit).collect();
    // A page emptied by own deletions still says where to continue.
    let last = cells.last().map(|(name, _)| name.clone());
    let next_after = if more { last.or(stored.next_after) } else { None };
    Listed { cells, next_after }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_the_next_character_begins() {
        assert_eq!(after_prefix("ab").as_deref(), Some("ac"));
        assert_eq!(after_prefix("a\u{d7ff}").as_deref(), Some("a\u{e000}"));
        assert_eq!(after_prefix("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!(after_prefix("\u{10ffff}"), None);
        assert_eq!(after_prefix(""), None);
    }
}
