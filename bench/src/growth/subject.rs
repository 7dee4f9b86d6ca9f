//! What grows: anything that takes the commands of a worker, so that the whole library and the kernel on a bare store
//! are measured in the same way.

use std::ops::Range;
use std::time::Duration;

use hdrhistogram::Histogram;

/// Commands under way at once.
pub const IN_FLIGHT: u64 = 64;

/// A store of records and runs. Latencies are in ns.
pub trait Subject {
    /// Adds records, and a run with one event for every hundred.
    fn load(&mut self, records: Range<u64>);

    /// Claims so many records, one by one, and keeps them.
    fn claim(&mut self, count: u64, latency_ns: &mut Histogram<u64>);

    /// Gives all claimed records back, and returns how many those were.
    fn release(&mut self, latency_ns: &mut Histogram<u64>) -> u64;

    /// Writes three fields of claimed records, chosen at random.
    fn step(&mut self, count: u64, latency_ns: &mut Histogram<u64>);

    /// Appends events to runs, chosen at random.
    fn append(&mut self, count: u64, latency_ns: &mut Histogram<u64>);

    /// Reads records, chosen at random.
    fn get(&mut self, count: u64, latency_ns: &mut Histogram<u64>);

    /// Writes everything to disk and waits until nothing is left to merge.
    fn settle(&mut self);

    /// The space it takes.
    fn space(&mut self) -> Space;

    /// The store below, if it can be watched.
    fn watched(&mut self) -> Option<Watched> {
        None
    }
}

/// The space that a subject takes, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// All of its files.
    pub files: u64,
    /// Those of the store, without a journal.
    pub store: u64,
    /// Keys and values that a reader can still reach.
    pub live: u64,
}

/// What went into the store below since the last look at it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watched {
    /// Bytes of the keys and values of all batches.
    pub given_bytes: u64,
    /// The longest commit of a batch.
    pub longest_commit: Duration,
}
