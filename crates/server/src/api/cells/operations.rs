//! Cells in a transaction: operations on them, and conditions on them.

use statehouse::{CellDone, Commit};
use wire::cells::{CellGuard, CellOperation, CellRange};
use wire::contracts::Done;
use wire::transactions::WrittenOperation;

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
