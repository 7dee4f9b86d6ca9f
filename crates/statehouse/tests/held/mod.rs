//! A store whose time advances only when the test says so.

#![allow(dead_code, reason = "each test uses some of it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use statehouse::{Clock, Options, Statehouse};

/// The initial wall time of a held clock, ms since 1970.
pub const STARTED_MS: u64 = 1_700_000_000_000;

/// Both clocks advance only when the test says so.
#[derive(Default)]
pub struct HeldClock(AtomicU64);

impl HeldClock {
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(u64::try_from(by.as_micros()).expect("short"), Ordering::SeqCst);
    }

    /// The current time of a worker.
    pub fn now_ms(&self) -> u64 {
        self.wall_us() / 1_000
    }
}

impl Clock for HeldClock {
    fn wall_us(&self) -> u64 {
        STARTED_MS * 1_000 + self.0.load(Ordering::SeqCst)
    }
    fn monotonic_us(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// An empty store, in a directory that is removed with it.
pub fn house() -> (tempfile::TempDir, Arc<HeldClock>, Statehouse) {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = Arc::new(HeldClock::default());
    let house = Options::default().clock(clock.clone()).open(directory.path().join("house")).expect("a house");
    (directory, clock, house)
}

/// Waits for background work of the timer.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..500 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}
