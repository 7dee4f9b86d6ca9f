//! The reads of a transaction: each name and each range becomes a guard of its commit.

use std::collections::BTreeSet;

use contract::Rejection;
use contract::limits::{TRANSACTION_GUARDS_MAX, TRANSACTION_READS_MAX};
use kernel::{CellGuard, Guard};

#[derive(Default)]
pub(super) struct Reads {
    names: BTreeSet<String>,
    ranges: Vec<(String, Option<String>)>,
    cells: usize,
}

impl Reads {
    /// Remembers that a cell was read, whether or not it exists. Reading it again costs nothing.
    pub(super) fn add_name(&mut self, cell: &str) -> Result<(), Rejection> {
        if self.names.contains(cell) {
            return Ok(());
        }
        self.count(1)?;
        self.room_for_a_guard()?;
        self.names.insert(cell.to_owned());
        Ok(())
    }

    /// Remembers that all cells with names from `from` to before `to` were read.
    pub(super) fn add_range(&mut self, from: String, to: Option<String>) -> Result<(), Rejection> {
        self.room_for_a_guard()?;
        self.ranges.push((from, to));
        Ok(())
    }

    /// Counts cells read.
    pub(super) fn count(&mut self, cells: usize) -> Result<(), Rejection> {
        self.cells += cells;
        Rejection::check_limit("transaction_reads_max", TRANSACTION_READS_MAX, self.cells)
    }

    fn room_for_a_guard(&self) -> Result<(), Rejection> {
        let guards = self.names.len() + self.ranges.len() + 1;
        Rejection::check_limit("transaction_guards_max", TRANSACTION_GUARDS_MAX, guards)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Guards that nothing read was written by a commit after that one (T1).
    pub(super) fn guards(&self, commit: u64) -> Vec<Guard<'_>> {
        let names = self.names.iter().map(|name| Guard::Cell(CellGuard::UnchangedSince(name, commit)));
        let ranges = self.ranges.iter();
        let ranges = ranges.map(|(from, to)| Guard::Cell(CellGuard::RangeUnchangedSince(from, to.as_deref(), commit)));
        names.chain(ranges).collect()
    }
}
