//! The conditions of a commit: all of them must hold when it is applied, or nothing of it happens.

use contract::Value;

use super::Commit;
use super::parts::OwnGuard;

impl Commit {
    /// Only if the record is in one of these states.
    pub fn if_state_in(mut self, record: &str, states: &[&str]) -> Self {
        let states = states.iter().map(|state| (*state).to_owned()).collect();
        self.guards.push(OwnGuard::RecordStateIn(record.to_owned(), states));
        self
    }

    /// Only if the record is at this version.
    pub fn if_record_version(mut self, record: &str, version: u64) -> Self {
        self.guards.push(OwnGuard::RecordVersionIs(record.to_owned(), version));
        self
    }

    /// Only if the record does not exist.
    pub fn if_record_absent(mut self, record: &str) -> Self {
        self.guards.push(OwnGuard::RecordAbsent(record.to_owned()));
        self
    }

    /// Only if the field of the record holds this value; none expects that the field does not exist.
    pub fn if_field(mut self, record: &str, field: &str, value: Option<Value>) -> Self {
        self.guards.push(OwnGuard::RecordFieldIs(record.to_owned(), field.to_owned(), value));
        self
    }

    /// Only if the last event of the run has this sequence; 0 expects that there was never such a run. A deleted run is
    /// refused, whatever is expected.
    pub fn if_run_last(mut self, run: &str, sequence: u64) -> Self {
        self.guards.push(OwnGuard::RunLastIs(run.to_owned(), sequence));
        self
    }

    /// Only if the cell is at this version.
    pub fn if_cell_version(mut self, cell: &str, version: u64) -> Self {
        self.guards.push(OwnGuard::CellVersionIs(cell.to_owned(), version));
        self
    }

    /// Only if the cell does not exist.
    pub fn if_cell_absent(mut self, cell: &str) -> Self {
        self.guards.push(OwnGuard::CellAbsent(cell.to_owned()));
        self
    }

    /// Only if the record exists.
    pub fn if_record_exists(mut self, record: &str) -> Self {
        self.guards.push(OwnGuard::RecordExists(record.to_owned()));
        self
    }

    /// Only if the record is at this attempt, whether that is live or over.
    pub fn if_record_attempt(mut self, record: &str, attempt: u64) -> Self {
        self.guards.push(OwnGuard::RecordAttemptIs(record.to_owned(), attempt));
        self
    }

    /// Only if no commit after this one has written the record.
    pub fn if_record_unchanged_since(mut self, record: &str, commit: u64) -> Self {
        self.guards.push(OwnGuard::RecordUnchangedSince(record.to_owned(), commit));
        self
    }

    /// Only if the cell exists.
    pub fn if_cell_exists(mut self, cell: &str) -> Self {
        self.guards.push(OwnGuard::CellExists(cell.to_owned()));
        self
    }

    /// Only if the cell is at a lower version, or does not exist.
    pub fn if_cell_version_below(mut self, cell: &str, version: u64) -> Self {
        self.guards.push(OwnGuard::CellVersionBelow(cell.to_owned(), version));
        self
    }

    /// Only if no commit after this one has written the cell.
    pub fn if_cell_unchanged_since(mut self, cell: &str, commit: u64) -> Self {
        self.guards.push(OwnGuard::CellUnchangedSince(cell.to_owned(), commit));
        self
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
    pub fn if_cells_unchanged_since(mut self, from: &str, before: Option<&str>, commit: u64) -> Self {
        let (from, before) = (from.to_owned(), before.map(str::to_owned));
        self.guards.push(OwnGuard::CellsUnchangedSince { from, before, commit });
        self
    }
}
