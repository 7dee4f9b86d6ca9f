//! A clock that stands still until it is told.

use std::sync::atomic::{AtomicU64, Ordering};

use statehouse::Clock;
use testkit::random::Random;

/// Time passes in steps of this, and ages end half a step off, so that a few µs never decide what is too old.
pub(super) const STEP_US: u64 = 20_000;

pub(super) struct ManualClock {
    start_us: u64,
    passed_us: AtomicU64,
}

impl ManualClock {
    pub(super) fn new(start_us: u64) -> Self {
        Self { start_us, passed_us: AtomicU64::new(0) }
    }

    pub(super) fn now_us(&self) -> u64 {
        self.start_us + self.passed_us.load(Ordering::SeqCst)
    }

    /// Lets time pass: as a rule little, sometimes days.
    pub(super) fn advance(&self, random: &mut Random) {
        let steps = match random.below(12) {
            0 => random.below(20_000_000),
            1..=2 => random.below(200_000),
            _ => 1 + random.below(20),
        };
        self.pass(steps * STEP_US);
    }

    pub(super) fn pass(&self, us: u64) {
        self.passed_us.fetch_add(us, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn wall_us(&self) -> u64 {
        self.now_us()
    }

    fn monotonic_us(&self) -> u64 {
        self.passed_us.load(Ordering::SeqCst)
    }
}
