//! Names of types as labels: limited, so that user names cannot make the metrics grow without end.
//!
//! Keeps: a name shown once is always shown; beyond the limit, names are counted together as `other`.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use statehouse::counters::{OTHER_TYPES, TYPES_COUNTED_MAX};

/// Values of the label `type`.
pub const TYPE_VALUES_MAX: usize = TYPES_COUNTED_MAX;

/// The label of a thing without a type.
const NO_TYPE: &str = "none";

/// The type names shown so far.
#[derive(Debug, Default)]
pub(crate) struct TypeLabels {
    known: Mutex<BTreeSet<String>>,
}

impl TypeLabels {
    /// The label of a type.
    pub(crate) fn shown(&self, name: &str) -> String {
        let name = if name.is_empty() { NO_TYPE } else { name };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if name == NO_TYPE || known.contains(name) {
            return name.to_owned();
        }
        if known.len() >= TYPE_VALUES_MAX {
            return OTHER_TYPES.to_owned();
        }
        known.insert(name.to_owned());
        name.to_owned()
    }

    /// The number of names shown.
    pub(crate) fn count(&self) -> usize {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_bound_are_shown_together_and_earlier_ones_stay() {
        let labels = TypeLabels::default();
        for number in 0..TYPE_VALUES_MAX {
            assert_eq!(labels.shown(&format!("type-{number}")), format!("type-{number}"));
        }
        assert_eq!((labels.shown("one-more"), labels.count()), ("other".to_owned(), TYPE_VALUES_MAX));
        assert_eq!((labels.shown("type-0"), labels.shown("")), ("type-0".to_owned(), "none".to_owned()));
    }
}
