//! Until when this node may answer for a shard.
//!
//! Whoever renews an ownership extends it; every read checks it after its view was taken, so that a view is never newer than
//! what the node was allowed to see. In a directory, whose lock nobody else can have, it never ends.

use std::sync::atomic::{AtomicU64, Ordering};

use contract::{Error, Failure, FailureKind};

use crate::clock::Clock;

/// Until when this node may answer for a shard, by the clock of this machine that never goes back.
#[derive(Debug)]
pub struct Tenure {
    until_us: AtomicU64,
}

const ALWAYS: u64 = u64::MAX;

impl Tenure {
    /// A tenure without an end.
    pub fn always() -> Self {
        Self { until_us: AtomicU64::new(ALWAYS) }
    }

    /// A tenure until this time, in µs of [`Clock::monotonic_us`].
    pub fn until(until_us: u64) -> Self {
        Self { until_us: AtomicU64::new(until_us) }
    }

    /// Makes it longer. One that has ended stays so.
    pub fn extend(&self, until_us: u64) {
        let longer = |now: u64| (now != 0 && until_us > now).then_some(until_us);
        // If it is longer already, there is nothing to do.
        let _ = self.until_us.fetch_update(Ordering::AcqRel, Ordering::Acquire, longer);
    }

    /// Ends it now, for good: somebody else owns the shard.
    pub fn end(&self) {
        self.until_us.store(0, Ordering::Release);
    }

    /// Refuses once it is over.
    pub fn check(&self, clock: &dyn Clock) -> Result<(), Error> {
        let until_us = self.until_us.load(Ordering::Acquire);
        if until_us == ALWAYS || clock.monotonic_us() < until_us {
            return Ok(());
        }
        Err(Failure::not_applied(
            FailureKind::NotOwner,
            "this node may not answer for the shard any more; ask again, and its owner will answer",
        )
        .into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    /// A clock that stands still.
    struct Standing(u64);

    impl Clock for Standing {
        fn wall_us(&self) -> u64 {
            self.0
        }

        fn monotonic_us(&self) -> u64 {
            self.0
        }

        fn running_us(&self) -> u64 {
            self.0
        }
    }

    fn holds(tenure: &Tenure, now_us: u64) -> bool {
        tenure.check(&Standing(now_us)).is_ok()
    }

    #[test]
    fn it_holds_until_its_end_and_not_at_it() {
        let tenure = Tenure::until(10);
        assert_eq!([9, 10, 11].map(|now| holds(&tenure, now)), [true, false, false]);
        tenure.extend(12);
        assert_eq!([11, 12].map(|now| holds(&tenure, now)), [true, false]);
        tenure.extend(5);
        assert!(holds(&tenure, 11), "it is never made shorter");
    }

    #[test]
    fn what_was_ended_is_not_made_longer() {
        for tenure in [Tenure::always(), Tenure::until(10)] {
            tenure.end();
            tenure.extend(100);
            assert!(!holds(&tenure, 0));
        }
        assert!(Tenure::always().check(&SystemClock::new()).is_ok());
    }
}
