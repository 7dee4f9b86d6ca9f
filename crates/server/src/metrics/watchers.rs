//! Streams that follow the change feed, each with the position of its reader.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The position of a stream whose reader has everything.
const WAITS: u64 = u64::MAX;

/// The positions of all streams.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    positions: Mutex<Positions>,
}

#[derive(Debug, Default)]
struct Positions {
    by_number: BTreeMap<u64, Arc<AtomicU64>>,
    next: u64,
}

/// A stream's entry, removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    watchers: Arc<Watchers>,
    number: u64,
    position: Arc<AtomicU64>,
}

impl Watchers {
    fn lock(&self) -> MutexGuard<'_, Positions> {
        self.positions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a stream.
    pub(crate) fn join(self: &Arc<Self>) -> Watcher {
        let position = Arc::new(AtomicU64::new(WAITS));
        let mut positions = self.lock();
        let number = positions.next;
        positions.next += 1;
        positions.by_number.insert(number, position.clone());
        Watcher { watchers: self.clone(), number, position }
    }

    /// The number of streams, and how many commits the slowest is behind.
    pub(crate) fn lag(&self, newest: u64) -> (usize, u64) {
        let positions = self.lock();
        let behind = positions.by_number.values().map(|at| newest.saturating_sub(at.load(Ordering::Relaxed)));
        (positions.by_number.len(), behind.max().unwrap_or(0))
    }
}

impl Watcher {
    /// Its reader has everything, and waits for more.
    pub(crate) fn waits(&self) {
        self.position.store(WAITS, Ordering::Relaxed);
    }

    /// There is more, and its reader has everything up to this commit.
    pub(crate) fn has_upto(&self, commit: u64) {
        self.position.store(commit, Ordering::Relaxed);
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.watchers.lock().by_number.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_counts_until_it_leaves() {
        let watchers = Arc::new(Watchers::default());
        assert_eq!(watchers.lag(50), (0, 0));
        let (fast, slow) = (watchers.join(), watchers.join());
        assert_eq!(watchers.lag(50), (2, 0), "whoever waits is not behind, whatever others commit");
        fast.has_upto(40);
        slow.has_upto(10);
        assert_eq!(watchers.lag(50), (2, 40));
        slow.waits();
        assert_eq!(watchers.lag(50), (2, 10));
        drop(fast);
        assert_eq!(watchers.lag(50), (1, 0));
    }
}
