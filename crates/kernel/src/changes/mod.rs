//! The change feed: what every applied command changed, one row for each entry; `docs/formats/changes.md`.
//!
//! Touches: the `Changes` rows of the shard. Keeps: a change is in the row of the entry that made it, so a reader that
//! follows commit numbers misses none.

use kv::{Staging, Writer};
use session::Stamp;

use crate::keys::Keys;

const FORMAT: u8 = 1;

/// What kind of thing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Subject {
    /// A cell.
    Cell = 1,
    /// A record.
    Record = 2,
    /// A message to another group; its name is the group that sent it, its version the number of the command that did.
    Message = 3,
}

/// Why it changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// It was written.
    Written = 1,
    /// It was deleted.
    Deleted = 2,
    /// Its time was over.
    Expired = 3,
    /// A worker took it.
    Claimed = 4,
    /// Its worker gave it back, or failed and may try again.
    Released = 5,
    /// Its worker did not come back in time.
    Rescued = 6,
    /// It reached a terminal state.
    Finished = 7,
    /// Its attempts are used up.
    Exhausted = 8,
    /// The message was applied in its target.
    Delivered = 9,
    /// The target refused the message, which is gone.
    Refused = 10,
}

/// What changed, borrowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted<'name> {
    pub(crate) subject: Subject,
    pub(crate) reason: Reason,
    pub(crate) space: u32,
    pub(crate) branch: u32,
    /// None if it is the name itself.
    pub(crate) group: Option<&'name str>,
    pub(crate) name: &'name str,
    pub(crate) version: u64,
}

/// The changes of the entry that is being applied.
#[derive(Default)]
pub(crate) struct ChangeLog {
    encoded: Writer,
    at_savepoint: usize,
}

impl ChangeLog {
    pub(crate) fn savepoint(&mut self) {
        self.at_savepoint = self.encoded.len();
    }

    pub(crate) fn undo(&mut self) {
        self.encoded.truncate(self.at_savepoint);
    }

    /// Notes a change by the command with this number.
    pub(crate) fn note(&mut self, commit: u64, change: &Noted<'_>) {
        let writer = &mut self.encoded;
        writer.u64(commit).u8(change.subject as u8).u8(change.reason as u8);
        writer.u32(change.space).u32(change.branch);
        match change.group {
            None => writer.u8(0),
            Some(group) => writer.u8(1).bytes(group.as_bytes()),
        };
        writer.bytes(change.name.as_bytes()).u64(change.version);
    }

    /// Writes the entry's row, if anything changed. `commit` is the number of the entry's last command.
    pub(crate) fn write(&mut self, state: &mut Staging, keys: &Keys, stamp: Stamp, commit: u64) {
        if self.encoded.is_empty() {
            return;
        }
        state.put_encoded(keys.changes(commit), |writer| {
            writer.u8(FORMAT).u64(stamp.wall_us).raw(self.encoded.as_slice());
        });
        self.encoded.clear();
    }
}
