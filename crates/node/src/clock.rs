//! Time, through one seam, and the stamps that entries get from it.
//!
//! Keeps: K4 (stamps rise strictly). The machine's clock is trusted when the store is opened; from then on wall time is
//! that start plus the elapsed time, adjusted towards the machine's clock by at most one part in twenty. A clock that
//! is set back or forward while the store is open therefore moves stamps slowly and never back.

use std::sync::{Arc, Mutex, PoisonError};

use session::Stamp;

/// The source of time.
pub trait Clock: Send + Sync + 'static {
    /// µs since 1970 in UTC, as the machine believes.
    fn wall_us(&self) -> u64;

    /// µs since some fixed moment; never goes back.
    fn monotonic_us(&self) -> u64;

    /// The same, without the time during which this process did not run. It is called several times a second.
    ///
    /// Leases and sessions count this time: a worker whose heartbeat waits in the socket of a stopped server is not late.
    fn running_us(&self) -> u64 {
        self.monotonic_us()
    }
}

/// A process that has not looked at its clock for longer than this was stopped, or as good as stopped; only this much of
/// the time counts.
const UNSEEN_MAX_US: u64 = 500_000;

/// The time that was seen passing.
#[derive(Debug, Default)]
struct Seen {
    monotonic_us: u64,
    running_us: u64,
}

impl Seen {
    fn at(&mut self, monotonic_us: u64) -> u64 {
        self.running_us += monotonic_us.saturating_sub(self.monotonic_us).min(UNSEEN_MAX_US);
        self.monotonic_us = self.monotonic_us.max(monotonic_us);
        self.running_us
    }
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    started: std::time::Instant,
    seen: Mutex<Seen>,
}

#[allow(clippy::disallowed_methods, reason = "this is the seam")]
impl SystemClock {
    /// The machine's clocks, from now on.
    pub fn new() -> Self {
        Self { started: std::time::Instant::now(), seen: Mutex::default() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

#[allow(clippy::disallowed_methods, reason = "this is the seam")]
impl Clock for SystemClock {
    fn wall_us(&self) -> u64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }

    fn monotonic_us(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn running_us(&self) -> u64 {
        // Read under the lock, so that two threads do not see time pass in the wrong order.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.at(self.monotonic_us())
    }
}

/// One part in this many is how far wall time is drawn towards the machine's clock.
const SLEW_DIVISOR: u64 = 20;

/// Generates the stamps of one leadership: in a library, of one opening.
#[derive(Clone)]
pub(crate) struct Stamper {
    wall_us: u64,
    cluster_us: u64,
    monotonic_us: u64,
    running_us: u64,
}

impl Stamper {
    /// Continues from the last applied stamp.
    pub(crate) fn new(clock: &dyn Clock, last: Stamp) -> Self {
        Self {
            wall_us: clock.wall_us().max(last.wall_us),
            cluster_us: last.cluster_us,
            monotonic_us: clock.monotonic_us(),
            running_us: clock.running_us(),
        }
    }

    pub(crate) fn stamp(&mut self, clock: &dyn Clock) -> Stamp {
        let monotonic_us = clock.monotonic_us();
        let elapsed = monotonic_us.saturating_sub(self.monotonic_us);
        self.monotonic_us = monotonic_us;
        let expected = self.wall_us + elapsed;
        let slew = elapsed / SLEW_DIVISOR;
        let drawn = clock.wall_us().clamp(expected - slew, expected + slew);
        self.wall_us = drawn.max(self.wall_us + 1);
        let running_us = clock.running_us();
        self.cluster_us += running_us.saturating_sub(self.running_us);
        self.running_us = running_us;
        Stamp { wall_us: self.wall_us, cluster_us: self.cluster_us }
    }
}

/// The time of stamps, for the thread that generates them and for those that wait for due work.
pub(crate) struct Time {
    clock: Arc<dyn Clock>,
    stamper: Mutex<Stamper>,
}

impl Time {
    /// Continues from the last applied stamp.
    pub(crate) fn new(clock: Arc<dyn Clock>, last: Stamp) -> Self {
        let stamper = Mutex::new(Stamper::new(&*clock, last));
        Self { clock, stamper }
    }

    /// The stamp of the next entry.
    pub(crate) fn stamp(&self) -> Stamp {
        self.stamper.lock().unwrap_or_else(PoisonError::into_inner).stamp(&*self.clock)
    }

    /// The current stamp, without consuming one.
    pub(crate) fn now(&self) -> Stamp {
        self.stamper.lock().unwrap_or_else(PoisonError::into_inner).clone().stamp(&*self.clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Default)]
    struct SetClock {
        wall: AtomicU64,
        monotonic: AtomicU64,
    }

    impl Clock for SetClock {
        fn wall_us(&self) -> u64 {
            self.wall.load(Ordering::SeqCst)
        }
        fn monotonic_us(&self) -> u64 {
            self.monotonic.load(Ordering::SeqCst)
        }
    }

    #[test]
    fn a_clock_that_jumps_moves_stamps_by_a_twentieth_at_most() {
        let clock = SetClock::default();
        clock.wall.store(1_000_000, Ordering::SeqCst);
        let mut stamper = Stamper::new(&clock, Stamp::default());
        for (jump_to, expected) in [(1_000_000_000, 1_001_050), (0, 1_002_000), (1_003_001, 1_003_001)] {
            clock.wall.store(jump_to, Ordering::SeqCst);
            clock.monotonic.fetch_add(1_000, Ordering::SeqCst);
            assert_eq!(stamper.stamp(&clock).wall_us, expected);
        }
    }

    #[test]
    fn time_that_nobody_saw_passing_does_not_count() {
        let mut seen = Seen::default();
        assert_eq!([100_000, 200_000, 250_000].map(|us| seen.at(us)), [100_000, 200_000, 250_000]);
        assert_eq!(seen.at(3_250_000), 750_000, "stopped for three seconds");
        assert_eq!(seen.at(3_300_000), 800_000);
        assert_eq!(seen.at(3_200_000), 800_000, "two threads overtook each other");
        assert_eq!(seen.at(3_400_000), 900_000);
    }

    #[test]
    fn stamps_rise_when_no_time_passes_and_cluster_time_goes_on_from_the_last() {
        let clock = SetClock::default();
        clock.wall.store(50, Ordering::SeqCst);
        let mut stamper = Stamper::new(&clock, Stamp { wall_us: 100, cluster_us: 7 });
        assert_eq!(stamper.stamp(&clock), Stamp { wall_us: 101, cluster_us: 7 });
        assert_eq!(stamper.stamp(&clock), Stamp { wall_us: 102, cluster_us: 7 });
        clock.monotonic.store(10, Ordering::SeqCst);
        assert_eq!(stamper.stamp(&clock).cluster_us, 17);
    }
}
