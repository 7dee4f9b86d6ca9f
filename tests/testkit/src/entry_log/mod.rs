//! The suite of `journal::EntryLog`: duties J2 to J4, J6 and J7, under random operations and under appenders that fight for a
//! shard. J1 is more than one process can see: programs that kill it and that cut the power show it.
//!
//! - [`check`]: random operations on several shards, each compared with what it must do.
//! - [`fight`]: many appenders that all want to append to one shard.
//! - [`append_together`]: many appenders at the same time, each with shards of its own.
//! - [`Files`], [`Memory`] and [`Gathering`]: the logs of the journal as subjects.

mod appends;
mod driver;
mod failing;
mod fight;
mod quiet;
mod shard;
mod subjects;
mod together;
mod unknown;

use std::sync::Arc;

use journal::{EntryLog, ShardId};

pub use driver::{Checked, check};
pub use fight::{Fought, fight};
pub use subjects::{Files, Gathering, Memory};
pub use together::{Together, append_together};

/// How an append can fail because of what the log writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// There is no room.
    NoRoom,
    /// A write fails. A part of it may have been written.
    Write,
    /// A sync fails.
    Sync,
}

/// A log under test.
pub trait Subject {
    /// The log, as it is open now.
    fn log(&self) -> Arc<dyn EntryLog>;

    /// Closes the log and opens it again. Nobody holds it.
    fn reopen(&mut self);

    /// Makes the log forget the last entries of a shard, although they were durable, and what is on its way to it; false if it
    /// never does.
    fn forget(&self, _shard: ShardId, _entries: usize) -> bool {
        false
    }

    /// The numbers of the oldest and the newest file; none if the log is not in files that are freed one by one.
    fn file_numbers(&self) -> Option<(u64, u64)> {
        None
    }

    /// Lets the next append fail, and nothing after it; false if that cannot be done to this log.
    fn fail_next_append(&self, _failure: Failure) -> bool {
        false
    }
}
