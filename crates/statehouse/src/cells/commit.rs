//! Cells in a commit: its operations on them, and its conditions.

use contract::limits::NAME_BYTES_MAX;
use contract::{Error, Rejection, Value, names};
use kernel::{CellAct, CellGuard, Guard, Op, OpOutcome, ValueRef};

use super::Cells;
use crate::commit::{Commit, OwnGuard, OwnOp};

pub(super) enum OwnCellGuard {
    VersionIs(String, u64),
    VersionBelow(String, u64),
    Absent(String),
    Exists(String),
    UnchangedSince(String, u64),
    RangeUnchangedSince { from: String, before: Option<String>, commit: u64 },
}

impl OwnGuard for OwnCellGuard {
    fn check(&self) -> Result<(), Error> {
        match self {
            Self::VersionIs(cell, _)
            | Self::VersionBelow(cell, _)
            | Self::Absent(cell)
            | Self::Exists(cell)
            | Self::UnchangedSince(cell, _) => names::check_cell(cell)?,
            Self::RangeUnchangedSince { from, before, .. } => {
                // The ends of a range need not be names of cells.
                for end in std::iter::once(from).chain(before) {
                    Rejection::check_limit("name_bytes_max", NAME_BYTES_MAX, end.len())?;
                }
            }
        }
        Ok(())
    }

    fn guard(&self) -> Guard<'_> {
        Guard::Cell(match self {
            Self::VersionIs(cell, version) => CellGuard::VersionIs(cell, *version),
            Self::VersionBelow(cell, version) => CellGuard::VersionBelow(cell, *version),
            Self::Absent(cell) => CellGuard::Absent(cell),
            Self::Exists(cell) => CellGuard::Exists(cell),
            Self::UnchangedSince(cell, commit) => CellGuard::UnchangedSince(cell, *commit),
            Self::RangeUnchangedSince { from, before, commit } => {
                CellGuard::RangeUnchangedSince(from, before.as_deref(), *commit)
            }
        })
    }
}

pub(super) enum OwnCellOp {
    Set(String, Value),
    Init(String, Value),
    Delete(String),
}

impl OwnOp for OwnCellOp {
    fn check(&self) -> Result<(), Error> {
        match self {
            Self::Set(cell, _) | Self::Init(cell, _) | Self::Delete(cell) => Ok(names::check_cell(cell)?),
        }
    }

    fn op(&self) -> Op<'_> {
        match self {
            Self::Set(cell, value) => Op::Cell(cell, CellAct::Set(ValueRef::from(value))),
            Self::Init(cell, value) => Op::Cell(cell, CellAct::Init(ValueRef::from(value))),
            Self::Delete(cell) => Op::Cell(cell, CellAct::Delete),
        }
    }
}

/// The result of an operation on a cell, where it is more than a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CellDone {
    /// The cell already existed, at this version, and was left unchanged.
    Existing {
        /// The version.
        version: u64,
    },
}

impl CellDone {
    /// The cell's version.
    pub fn version(&self) -> Option<u64> {
        let Self::Existing { version } = self;
        Some(*version)
    }
}

/// The result of an operation, if only cells have such results.
pub(crate) fn done(outcome: &OpOutcome) -> Option<CellDone> {
    match *outcome {
        OpOutcome::Existing(version) => Some(CellDone::Existing { version }),
        _ => None,
    }
}

impl Commit {
    /// Writes a cell.
    pub fn set_cell(self, cell: &str, value: impl Into<Value>) -> Self {
        self.with_op(OwnCellOp::Set(cell.to_owned(), value.into()))
    }

    /// Creates a cell if it does not exist; an existing one stays unchanged.
    pub fn init_cell(self, cell: &str, value: impl Into<Value>) -> Self {
        self.with_op(OwnCellOp::Init(cell.to_owned(), value.into()))
    }

    /// Deletes a cell.
    pub fn delete_cell(self, cell: &str) -> Self {
        self.with_op(OwnCellOp::Delete(cell.to_owned()))
    }

    /// Only if the cell is at this version.
    pub fn if_cell_version(self, cell: &str, version: u64) -> Self {
        self.with_guard(OwnCellGuard::VersionIs(cell.to_owned(), version))
    }

    /// Only if the cell is at a lower version, or does not exist.
    pub fn if_cell_version_below(self, cell: &str, version: u64) -> Self {
        self.with_guard(OwnCellGuard::VersionBelow(cell.to_owned(), version))
    }

    /// Only if the cell does not exist.
    pub fn if_cell_absent(self, cell: &str) -> Self {
        self.with_guard(OwnCellGuard::Absent(cell.to_owned()))
    }

    /// Only if the cell exists.
    pub fn if_cell_exists(self, cell: &str) -> Self {
        self.with_guard(OwnCellGuard::Exists(cell.to_owned()))
    }

    /// Only if no commit after this one has written the cell.
    pub fn if_cell_unchanged_since(self, cell: &str, commit: u64) -> Self {
        self.with_guard(OwnCellGuard::UnchangedSince(cell.to_owned(), commit))
    }

    /// Only if no commit after this one has written a cell of the group with a name from `from` to before `before`, or to the
    /// last.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// let order = house.group("order-7");
    /// let seen = order.commit().set_cell("items.1", 20).run()?.commit;
    /// // Nobody may have added an item to what was summed up.
    /// let total = |seen| order.commit().if_cells_unchanged_since("items.", Some("items/"), seen).set_cell("total", 20).run();
    /// let added = order.commit().set_cell("items.2", 30).run()?.commit;
    /// assert!(total(seen).is_err() && total(added).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn if_cells_unchanged_since(self, from: &str, before: Option<&str>, commit: u64) -> Self {
        let (from, before) = (from.to_owned(), before.map(str::to_owned));
        self.with_guard(OwnCellGuard::RangeUnchangedSince { from, before, commit })
    }
}

impl Cells {
    /// Starts a commit in the group of these cells. Cells without a group form one each, so the commit can concern only
    /// one of them.
    pub fn commit(&self) -> Commit {
        Commit::new(self.scope.clone(), self.group.as_deref().map(str::to_owned))
    }
}
