//! What a run has done so far.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts, shared by the threads of a run.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) commands: AtomicU64,
    pub(super) entries: AtomicU64,
    pub(super) executed: AtomicU64,
    pub(super) repeats: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) busy: AtomicU64,
    pub(super) expired: AtomicU64,
    pub(super) checks: AtomicU64,
    pub(super) restarts: AtomicU64,
    pub(super) images: AtomicU64,
}

/// Adds to a count.
pub(super) fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

/// Reads a count.
pub(super) fn sum(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}
