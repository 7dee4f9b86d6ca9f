//! Cells in an interactive transaction.

use contract::{
    Deleted, Error, Expected, Initialised, ListPage, Listed, NameInGroup, Rejection, Subject, Swapped, Value,
    Versioned, Written,
};
use kernel::OpOutcome;
use kernel::cells::{ViewCells, get};
use kernel::names::InGroup;
use node::error::{from_halt, unexpected_answer};

use super::after_prefix::after_prefix;
use super::commit::{OwnCellGuard, OwnCellOp};
use super::list_cells;
use crate::paging::check_page;
use crate::transaction::Transaction;

impl Transaction {
    /// The value of a cell, with this transaction's own writes.
    pub fn get(&mut self, cell: &str) -> Result<Option<Value>, Error> {
        Ok(self.get_versioned(cell)?.map(|versioned| versioned.value))
    }

    /// The value with its version. A cell that this transaction wrote has commit 0 and time 0 until it is committed.
    pub fn get_versioned(&mut self, cell: &str) -> Result<Option<Versioned>, Error> {
        self.read(Subject::Cell, cell, self.cell_unchanged(cell))?;
        let seen = self.seen();
        let cells = ViewCells { view: seen.view, keys: seen.ids.keys };
        let found = get::get_versioned(&cells, &seen.thing(cell)?).map_err(|halt| from_halt(&halt))?;
        Ok(found.map(not_yet_committed))
    }

    /// The cells of the group whose names start with `prefix`, including this transaction's own writes.
    pub fn list(&mut self, prefix: &str, page: ListPage) -> Result<Listed, Error> {
        self.check_age()?;
        check_page(page.limit)?;
        let group = self.group().map(str::to_owned).ok_or(Rejection::TransactionState {
            reason: "a transaction without a group cannot list; start it with house.group(name)",
        })?;
        let seen = self.seen();
        let listed = list_cells(seen.view, seen.catalogue, seen.ids, InGroup::Named(&group), prefix, &page)?;
        let start = match &page.after {
            None => prefix.to_owned(),
            // In another group, the cell may precede the one of this group with the same name.
            Some(after) if *after < in_group(&after.name, &group) => after.name.clone(),
            Some(after) => format!("{}\0", after.name),
        };
        let from = start.max(prefix.to_owned());
        // That there is more is read too: the next one tells.
        let next = match &listed.next_after {
            None => None,
            Some(last) => {
                let page = ListPage { after: Some(last.clone()), limit: 1 };
                let more = list_cells(seen.view, seen.catalogue, seen.ids, InGroup::Named(&group), prefix, &page)?;
                more.cells.into_iter().next().map(|(next, _)| next.name)
            }
        };
        let before = match &listed.next_after {
            None => after_prefix(prefix),
            Some(last) => Some(format!("{}\0", last.name)),
        };
        if let Some(next) = next {
            self.read(Subject::Cell, &next, self.cell_unchanged(&next))?;
        }
        let commit = self.seen_commit();
        self.read_range(listed.cells.len(), OwnCellGuard::RangeUnchangedSince { from, before, commit })?;
        let cells = listed.cells.into_iter().map(|(name, versioned)| (name, not_yet_committed(versioned)));
        Ok(Listed { cells: cells.collect(), next_after: listed.next_after })
    }

    /// Creates the cell if it does not exist.
    pub fn init(&mut self, cell: &str, value: impl Into<Value>) -> Result<Initialised, Error> {
        match self.get_versioned(cell)? {
            Some(versioned) => Ok(Initialised { version: versioned.version, created: false }),
            None => {
                let version = self.write_cell(cell, OwnCellOp::Init(cell.to_owned(), value.into()))?;
                Ok(Initialised { version, created: true })
            }
        }
    }

    /// Writes the value unconditionally. This alone does not guard the cell.
    pub fn set(&mut self, cell: &str, value: impl Into<Value>) -> Result<(), Error> {
        self.write_cell(cell, OwnCellOp::Set(cell.to_owned(), value.into())).map(drop)
    }

    /// Writes the value unconditionally, and returns the version it will have. To know that, it reads the cell.
    pub fn set_versioned(&mut self, cell: &str, value: impl Into<Value>) -> Result<u64, Error> {
        self.read(Subject::Cell, cell, self.cell_unchanged(cell))?;
        self.write_cell(cell, OwnCellOp::Set(cell.to_owned(), value.into()))
    }

    /// Writes the value if the cell is as expected.
    pub fn cas(&mut self, cell: &str, expected: Expected, value: impl Into<Value>) -> Result<Swapped, Error> {
        let current = self.get_versioned(cell)?.map(|versioned| versioned.version);
        let expected = match expected {
            Expected::Absent => None,
            Expected::Version(version) => Some(version),
        };
        if current != expected {
            return Ok(Swapped::Conflict { current });
        }
        let version = self.write_cell(cell, OwnCellOp::Set(cell.to_owned(), value.into()))?;
        Ok(Swapped::Written(Written { version, commit: 0 }))
    }

    /// Deletes the cell, if it exists.
    pub fn delete(&mut self, cell: &str) -> Result<Deleted, Error> {
        if self.get_versioned(cell)?.is_none() {
            return Ok(Deleted { version: None });
        }
        let version = self.write_cell(cell, OwnCellOp::Delete(cell.to_owned()))?;
        Ok(Deleted { version: Some(version) })
    }

    fn cell_unchanged(&self, cell: &str) -> OwnCellGuard {
        OwnCellGuard::UnchangedSince(cell.to_owned(), self.seen_commit())
    }

    fn write_cell(&mut self, cell: &str, op: OwnCellOp) -> Result<u64, Error> {
        match self.write(Subject::Cell, cell, self.cell_unchanged(cell), op)? {
            OpOutcome::Written(version) => Ok(version),
            other => Err(unexpected_answer("a write in a transaction", &other)),
        }
    }
}

/// What a transaction wrote has no time yet, as it has no commit.
fn not_yet_committed(mut versioned: Versioned) -> Versioned {
    if versioned.commit == 0 {
        versioned.updated_at = 0;
    }
    versioned
}

fn in_group(name: &str, group: &str) -> NameInGroup {
    NameInGroup::new(name.to_owned(), (name != group).then(|| group.to_owned()))
}
