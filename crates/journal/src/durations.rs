//! A histogram of durations in plain atomics, cheap enough for every request.
//!
//! Keeps: every duration is counted once. Never: locks, or allocates when counting. A snapshot taken while others count
//! may include a duration in the sum but not yet in a bucket.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the buckets, in ns; longer durations go to one more bucket.
pub const BOUNDS_NS: [u64; 16] = [
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
];

const BUCKETS: usize = BOUNDS_NS.len() + 1;

/// A histogram of durations.
#[derive(Debug, Default)]
pub struct Durations {
    buckets: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
}

/// A snapshot of [`Durations`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The number of durations up to each of [`BOUNDS_NS`] and above the previous one; last, those beyond.
    pub buckets: [u64; BUCKETS],
    /// Their sum.
    pub sum_ns: u64,
}

impl Durations {
    /// Counts one.
    pub fn count(&self, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        // Most are short, so this ends after a few steps.
        let bucket = BOUNDS_NS.iter().position(|bound| ns <= *bound).unwrap_or(BOUNDS_NS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// A snapshot.
    pub fn counted(&self) -> Counted {
        let buckets = std::array::from_fn(|bucket| self.buckets[bucket].load(Ordering::Relaxed));
        Counted { buckets, sum_ns: self.sum_ns.load(Ordering::Relaxed) }
    }
}

impl Counted {
    /// The number of durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_in_the_first_bucket_that_holds_it() {
        let durations = Durations::default();
        for us in [0, 100, 101, 10_000_000, 10_000_001] {
            durations.count(Duration::from_micros(us));
        }
        let counted = durations.counted();
        assert_eq!((counted.buckets[0], counted.buckets[1]), (2, 1));
        assert_eq!((counted.buckets[15], counted.buckets[16]), (1, 1));
        assert_eq!((counted.count(), counted.sum_ns), (5, 20_000_202_000));
    }
}
