//! Figures of the writer thread, for metrics: the duration of its syncs, and its progress.
//!
//! Keeps: one thread writes it. Never: decides anything.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::durations::{Counted, Durations};

/// The slowest sync is remembered for at least this long, and at most twice as long.
const RECENT: Duration = Duration::from_secs(10);

/// The figures, updated by the writer thread.
#[derive(Debug)]
pub(crate) struct Meter {
    began: Instant,
    syncs: Durations,
    durable_index: AtomicU64,
    /// The number of the stretch of [`RECENT`] that the two below are of.
    stretch: AtomicU64,
    slowest_ns: AtomicU64,
    slowest_before_ns: AtomicU64,
}

/// The figures of a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JournalMeter {
    /// The durations of appends, each including its sync.
    pub syncs: Counted,
    /// The slowest of the last ten to twenty seconds.
    pub slowest_recent_sync: Duration,
    /// The last durable entry.
    pub durable_index: u64,
    /// Commands that wait to be written.
    pub queue_commands: usize,
    /// Their bytes.
    pub queue_bytes: usize,
    /// The limit of the queue in bytes.
    pub queue_bytes_max: usize,
    /// Whether commands are refused because the files are as large as they may be.
    pub files_full: bool,
}

impl Meter {
    pub(crate) fn new(durable_index: u64) -> Self {
        Self {
            began: now(),
            syncs: Durations::default(),
            durable_index: AtomicU64::new(durable_index),
            stretch: AtomicU64::new(0),
            slowest_ns: AtomicU64::new(0),
            slowest_before_ns: AtomicU64::new(0),
        }
    }

    /// An entry became durable.
    pub(crate) fn synced(&self, index: u64, took: Duration) {
        self.syncs.count(took);
        self.durable_index.store(index, Ordering::Relaxed);
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let stretch = self.stretch_now();
        let before = self.stretch.swap(stretch, Ordering::Relaxed);
        if stretch == before {
            self.slowest_ns.fetch_max(ns, Ordering::Relaxed);
        } else {
            let slowest = self.slowest_ns.swap(ns, Ordering::Relaxed);
            self.slowest_before_ns.store(if stretch == before + 1 { slowest } else { 0 }, Ordering::Relaxed);
        }
    }

    fn stretch_now(&self) -> u64 {
        self.began.elapsed().as_secs() / RECENT.as_secs()
    }

    pub(crate) fn read(&self) -> JournalMeter {
        // The writer may enter a new stretch in between.
        let slowest_ns = match self.stretch_now().saturating_sub(self.stretch.load(Ordering::Relaxed)) {
            0 => self.slowest_ns.load(Ordering::Relaxed).max(self.slowest_before_ns.load(Ordering::Relaxed)),
            1 => self.slowest_ns.load(Ordering::Relaxed),
            _ => 0,
        };
        JournalMeter {
            syncs: self.syncs.counted(),
            slowest_recent_sync: Duration::from_nanos(slowest_ns),
            durable_index: self.durable_index.load(Ordering::Relaxed),
            ..JournalMeter::default()
        }
    }
}

/// The duration of a sync and the age of the watermark decide nothing that is stored, so this reads the machine's clock
/// directly.
#[allow(clippy::disallowed_methods)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
