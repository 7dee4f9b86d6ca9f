//! The progress of opening a directory, for callers that wait for a long replay.

use std::sync::atomic::{AtomicU64, Ordering};

/// The progress of opening a directory. Pass it to [`Options::opening`](crate::options::Options::opening), and read it from
/// another thread.
#[derive(Debug, Default)]
pub struct Opening {
    replayed: AtomicU64,
    to_replay: AtomicU64,
}

impl Opening {
    /// The number of replayed entries of the journal.
    pub fn replayed(&self) -> u64 {
        self.replayed.load(Ordering::Relaxed)
    }

    /// The number of entries to replay; 0 until it is known, or if there is nothing to replay.
    pub fn to_replay(&self) -> u64 {
        self.to_replay.load(Ordering::Relaxed)
    }

    pub(crate) fn begin(&self, entries: u64) {
        self.to_replay.store(entries, Ordering::Relaxed);
    }

    pub(crate) fn at(&self, replayed: u64) {
        self.replayed.store(replayed, Ordering::Relaxed);
    }
}
