//! An open transaction with what it must see: the view's cells with own writes, and what it has read.

use std::collections::{BTreeMap, BTreeSet};

use contract::{ListPage, Listed, NameInGroup, Versioned};
use statehouse::{Isolation, Transaction};

use super::Place;
use crate::model::cells::command::Op;

/// A transaction and what it must see.
pub(super) struct Open {
    pub(super) transaction: Transaction,
    pub(super) isolation: Isolation,
    pub(super) place: Place,
    /// The one name that a transaction without a group keeps to.
    pub(super) only: &'static str,
    /// The commit number of the view.
    pub(super) commit: u64,
    pub(super) cells: BTreeMap<&'static str, Seen>,
    pub(super) own: Vec<Op>,
    pub(super) names_read: BTreeSet<&'static str>,
    pub(super) ranges_read: Vec<RangeRead>,
}

/// A cell with own writes.
#[derive(Clone, Default)]
pub(super) struct Seen {
    /// How often it was written.
    pub(super) counter: u64,
    pub(super) versioned: Option<Versioned>,
}

/// What a list looked at.
pub(super) struct RangeRead {
    pub(super) prefix: &'static str,
    /// Only names from this one on, or only those behind it.
    pub(super) from: Option<(String, bool)>,
    /// The last name of a full page; none if the list came to its end.
    pub(super) upto: Option<String>,
}

impl RangeRead {
    /// Whether a change of this name would have changed the page.
    pub(super) fn has_seen(&self, name: &str) -> bool {
        self.may_guard(name) && self.upto.as_deref().is_none_or(|upto| name <= upto)
    }

    /// Whether the guard may cover this name: it is allowed to reach further than the page.
    pub(super) fn may_guard(&self, name: &str) -> bool {
        let is_after = |(from, included): &(String, bool)| name > from.as_str() || (*included && name == from);
        name.starts_with(self.prefix) && self.from.as_ref().is_none_or(is_after)
    }
}

impl Open {
    pub(super) fn seen(&self, name: &str) -> Seen {
        self.cells.get(name).cloned().unwrap_or_default()
    }

    pub(super) fn read(&mut self, name: &'static str) -> Seen {
        self.names_read.insert(name);
        self.seen(name)
    }

    pub(super) fn write(&mut self, op: Op) -> u64 {
        let counter = self.seen(op.name()).counter + 1;
        let versioned = op.value().map(|value| Versioned::new(value.clone(), counter, 0, 0));
        self.cells.insert(op.name(), Seen { counter, versioned });
        self.own.push(op);
        counter
    }

    /// The name of a cell of the transaction's group, as a list gives it.
    pub(super) fn named(&self, name: &str) -> NameInGroup {
        NameInGroup::new(name, self.place.group.filter(|group| *group != name).map(str::to_owned))
    }

    pub(super) fn list(&self, prefix: &str, page: &ListPage) -> Listed {
        let named = |name: &str| self.named(name);
        let after = |name: &str| page.after.as_ref().is_none_or(|after| named(name) > *after);
        let matching = self.cells.iter().filter(|(name, _)| name.starts_with(prefix) && after(name));
        let existing = matching.filter_map(|(name, seen)| Some((named(name), seen.versioned.clone()?)));
        let mut cells: Vec<_> = existing.collect();
        let more = cells.len() > page.limit;
        cells.truncate(page.limit);
        let next_after = cells.last().map(|(name, _)| name.clone()).filter(|_| more);
        Listed { cells, next_after }
    }
}
