//! The content of a shard as named things, for files that other programs read; and building a new shard from such
//! things.
//!
//! - [`Item`]: one thing: a cell's version, a record, a run, an event, a message.
//! - [`walk`]: every thing that a view holds, in the order of keys.
//! - [`Builder`]: puts things into an empty store, with every derived row: indexes, schedule, counts.
//!
//! Derived rows are not items. Neither are sessions and the change feed: they concern the clients of one store. Things
//! held by a session name it, and are released in the new shard, as when a session ends.
//!
//! Keeps: walking a built shard returns what was put into it, in the same order.

mod build;
mod walk;

pub use build::{BuildError, Builder};
pub use walk::walk;

use contract::runs::StepSnapshot;

use crate::cells::row::Old;
use crate::keys::things::OwnedId;
use crate::outbox::Stored;
use crate::records::row::Row;
use crate::runs::row::{EventRow, RunHead};

/// One thing. Those of a bucket follow its [`Bucket`](Item::Bucket).
#[derive(Clone, Debug, PartialEq)]
pub enum Item<'row> {
    /// The start of a bucket, with the counters from which its records without rows continue.
    Bucket {
        /// Its number.
        bucket: u16,
        /// The highest version of such a record.
        version: u64,
        /// The highest attempt.
        attempt: u64,
        /// The last command that changed one of them; 0 if that is not known.
        commit: u64,
    },
    /// The version above which new cells of a branch start, in the bucket before.
    CellFloor {
        /// The bucket.
        bucket: u16,
        /// The space.
        space: u32,
        /// The branch.
        branch: u32,
        /// The version.
        version: u64,
        /// The last command that changed one of those that were forgotten; 0 if that is not known.
        commit: u64,
        /// Its time.
        updated_at: u64,
    },
    /// An older version of a cell. They come in order, before the newest.
    CellVersion {
        /// Which cell.
        cell: &'row OwnedId,
        /// Which version.
        version: u64,
        /// The write.
        write: Old<'row>,
    },
    /// The newest version of a cell.
    Cell {
        /// Which cell.
        cell: &'row OwnedId,
        /// Which version.
        version: u64,
        /// The write.
        write: Old<'row>,
    },
    /// A record, or the remains of a deleted one. Large values are inline.
    Record {
        /// Which record.
        record: &'row OwnedId,
        /// The record.
        row: Row<'row>,
    },
    /// A run. Its events and its steps follow.
    Run {
        /// Which run.
        run: &'row OwnedId,
        /// Its head.
        head: RunHead,
    },
    /// An event of a run, one that it has itself.
    Event {
        /// Which run.
        run: &'row OwnedId,
        /// Its sequence.
        seq: u64,
        /// The event.
        event: EventRow<'row>,
    },
    /// A step of a run's projection.
    Step {
        /// Which run.
        run: &'row OwnedId,
        /// The step.
        step: StepSnapshot,
    },
    /// The rows of a deleted run are to go.
    RunRemoval {
        /// Which run.
        run: &'row OwnedId,
        /// Since when.
        at_us: u64,
    },
    /// A message that waits.
    Message {
        /// When it is due; none if it waits to be published.
        due_us: Option<u64>,
        /// The command that sent it, or that released it when it was due.
        commit: u64,
        /// Its place among that command's messages.
        ordinal: u32,
        /// The message.
        message: Stored<'row>,
    },
    /// A row of a user's machine.
    MachineState {
        /// The space.
        space: u32,
        /// The machine.
        machine: u16,
        /// The group.
        group: &'row str,
        /// The machine's own key.
        key: &'row [u8],
        /// The value.
        value: &'row [u8],
    },
    /// A user's machine has seen a session.
    MachineMember {
        /// The session.
        session: u64,
        /// The space.
        space: u32,
        /// The machine.
        machine: u16,
        /// The group.
        group: &'row str,
    },
}
