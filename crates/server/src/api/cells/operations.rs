//! Cells in a transaction: operations on them, and conditions on them.

use contract::access::{Area, Verb};
use statehouse::{CellDone, Commit};
use wire::cells::{CellDelete, CellGuard, CellInit, CellOperation, CellRange, CellSet};
use wire::contracts::Done;
use wire::transactions::WrittenOperation;

use crate::access::Needs;
use crate::api::Refusal;
use crate::api::transactions::{CommitBuilder, Parts};

/// Adds an operation on a cell to a commit. Returns the operations of the commit that it became.
pub(in crate::api) fn add_operation(
    builder: &mut CommitBuilder<'_>,
    operation: CellOperation,
) -> Result<Parts, Refusal> {
    builder.change(|commit| match operation {
        CellOperation::Set(of) => commit.set_cell(&of.name, of.value.0),
        CellOperation::Init(of) => commit.init_cell(&of.name, of.value.0),
        CellOperation::Delete(of) => commit.delete_cell(&of.name),
    });
    Ok(Parts::ONE)
}

/// Shows a result that only operations on cells have.
pub(in crate::api) fn done(done: &CellDone) -> Done {
    let written = WrittenOperation::at(done.version().unwrap_or_default());
    Done::Written(match done {
        CellDone::Existing { .. } => WrittenOperation { existing: Some(true), ..written },
        _ => written,
    })
}

/// Adds the conditions on a cell, or on a range of cells.
pub(in crate::api) fn add_guard(mut commit: Commit, guard: CellGuard) -> Commit {
    let CellGuard { cell, cells, version, version_below, absent, exists, unchanged_since } = guard;
    if let (Some(CellRange { from, before }), Some(since)) = (&cells, unchanged_since) {
        commit = commit.if_cells_unchanged_since(from, before.as_deref(), since);
    }
    let Some(cell) = &cell else {
        return commit;
    };
    if absent == Some(true) {
        commit = commit.if_cell_absent(cell);
    }
    if exists == Some(true) {
        commit = commit.if_cell_exists(cell);
    }
    if let Some(version) = version {
        commit = commit.if_cell_version(cell, version);
    }
    if let Some(version) = version_below {
        commit = commit.if_cell_version_below(cell, version);
    }
    if let Some(since) = unchanged_since {
        commit = commit.if_cell_unchanged_since(cell, since);
    }
    commit
}

impl<'request> Needs<'request> {
    /// A verb on a cell of a group.
    pub(in crate::api) fn cell(&mut self, verb: Verb, group: &'request str, name: &'request str) {
        self.thing(verb, Area::Cell, Some(group), name);
    }
}

/// Collects what an operation on a cell of a group needs.
pub(in crate::api) fn operation_needs<'request>(
    operation: &'request CellOperation,
    group: &'request str,
    needs: &mut Needs<'request>,
) {
    let (verb, name) = match operation {
        CellOperation::Set(CellSet { name, value: _ }) => (Verb::Write, name),
        CellOperation::Init(CellInit { name, value: _ }) => (Verb::Cas, name),
        CellOperation::Delete(CellDelete { name }) => (Verb::Write, name),
    };
    needs.cell(verb, group, name);
}

/// Collects what conditions on a cell or on a range of cells of a group need.
pub(in crate::api) fn guard_needs<'request>(
    guard: &'request CellGuard,
    group: &'request str,
    needs: &mut Needs<'request>,
) {
    let CellGuard { cell, cells, version: _, version_below: _, absent: _, exists: _, unchanged_since: _ } = guard;
    if let Some(cell) = cell {
        needs.cell(Verb::Read, group, cell);
    }
    if let Some(CellRange { from, before }) = cells {
        needs.prefix(Verb::Read, Area::Cell, Some(group), prefix_of(from, before.as_deref()));
    }
}

/// The longest prefix of `from` that every name from it to before `before` has.
fn prefix_of<'range>(from: &'range str, before: Option<&str>) -> &'range str {
    let Some(before) = before else {
        return "";
    };
    let mut last = before.chars();
    for (place, letter) in from.char_indices() {
        match last.next() {
            Some(same) if same == letter => {}
            // All names that begin with `a.` end before `a/`.
            Some(next) if last.as_str().is_empty() && u32::from(next) == u32::from(letter) + 1 => {
                return &from[..place + letter.len_utf8()];
            }
            _ => return &from[..place],
        }
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_of_a_range_have_its_prefix() {
        for (from, before, prefix) in [
            ("", None, ""),
            ("a.", None, ""),
            ("a.", Some("a/"), "a."),
            ("a.5", Some("a/"), "a."),
            ("a.", Some("a0"), "a"),
            ("a.", Some("a/b"), "a"),
            ("a.1", Some("a.7"), "a."),
            ("a.1", Some("a.2"), "a.1"),
            ("a", Some("a.7"), "a"),
            ("", Some("a"), ""),
            ("\u{e9}1", Some("\u{ea}"), "\u{e9}"),
            ("\u{d7ff}", Some("\u{e000}"), ""),
            ("b", Some("a"), ""),
        ] {
            assert_eq!(prefix_of(from, before), prefix, "{from:?} to {before:?}");
        }
    }
}
