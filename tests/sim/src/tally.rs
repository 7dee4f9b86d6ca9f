//! Counts that the threads of a run share.

use std::sync::atomic::{AtomicU64, Ordering};

/// Adds to a count.
pub(crate) fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

/// Reads a count.
pub(crate) fn sum(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}
