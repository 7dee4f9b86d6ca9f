//! The change feed: the changes of every applied command, one row per entry; `docs/formats/changes.md`.
//!
//! - `row`: a row's bytes, written change by change and read the same way.
//! - `low_end`: the rows that retention has removed, and the row that records it.
//! - [`read`]: a page of the feed after a cursor.
//!
//! Touches: the `Changes` rows of the shard. Keeps: F1 (a follower of the feed misses no change and sees none twice),
//! and K7 for the feed: changes noted by a rejected command are dropped. Never: reads the changed things.

mod low_end;
pub mod read;
mod row;

use contract::Limits;
pub use contract::{Reason, Subject};
use kv::Staging;
use session::{Halt, Stamp};

use crate::keys::Keys;
use crate::tally::Tally;
use low_end::LowEnd;
pub(crate) use low_end::{begin, begin_after};
pub use read::{CHANGES_LOOKED_AT_MAX, Filter, changes_after, for_each_change};
use row::RowWriter;

/// A change, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted<'name> {
    /// The kind of thing that changed.
    pub subject: Subject,
    /// How.
    pub reason: Reason,
    /// Its space.
    pub space: u32,
    /// Its branch.
    pub branch: u32,
    /// Its group; none if that is the name itself.
    pub group: Option<&'name str>,
    /// Its name.
    pub name: &'name str,
    /// Its version after the change.
    pub version: u64,
}

/// The changes of the current entry, and the state of the feed before it.
#[derive(Default)]
pub(crate) struct ChangeLog {
    row: RowWriter,
    /// None until the first row is written: readers never need it.
    low_end: Option<LowEnd>,
    /// Totals of the changes, for metrics.
    pub(crate) tally: Tally,
}

impl ChangeLog {
    /// Sets the point to which [`undo`](Self::undo) returns.
    pub(crate) fn savepoint(&mut self) {
        self.row.savepoint();
        self.tally.savepoint();
    }

    /// Drops everything noted since the savepoint.
    pub(crate) fn undo(&mut self) {
        self.row.undo();
        self.tally.undo();
    }

    /// Notes a change by the command with this number.
    pub(crate) fn note(&mut self, commit: u64, change: &Noted<'_>) {
        self.row.push(commit, change);
        self.tally.changed(change.subject, change.reason);
    }

    /// Writes the entry's row, if anything changed, and removes some rows beyond retention. `commit` is the number of
    /// the entry's last command.
    pub(crate) fn write(
        &mut self,
        state: &mut Staging,
        keys: &Keys,
        limits: &Limits,
        stamp: Stamp,
        commit: u64,
    ) -> Result<(), Halt> {
        if self.row.is_empty() {
            return Ok(());
        }
        let low_end = match &mut self.low_end {
            Some(low_end) => low_end,
            none => none.insert(LowEnd::load(state, keys)?),
        };
        state.put_encoded(keys.changes(commit), |writer| self.row.finish(writer, stamp.wall_us, commit));
        low_end.row_added(commit, stamp.wall_us);
        low_end.trim(state, keys, limits, stamp.wall_us, commit)
    }
}

#[cfg(test)]
mod tests;
