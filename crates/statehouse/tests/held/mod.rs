//! A store whose time advances only when the test says so.

#![allow(dead_code, reason = "each test uses some of it")]

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use statehouse::{Clock, Options, Statehouse};

/// The initial wall time of a held clock, ms since 1970.
pub const STARTED_MS: u64 = 1_700_000_000_000;

/// Both clocks advance only when the test says so.
#[derive(Default)]
pub struct HeldClock {
    passed_us: AtomicU64,
    /// How often each thread has asked for the time, by its name.
    readings: Mutex<HashMap<String, u64>>,
}

impl HeldClock {
    pub fn advance(&self, by: Duration) {
        self.passed_us.fetch_add(u64::try_from(by.as_micros()).expect("short"), Ordering::SeqCst);
    }

    /// How often a thread of the store has asked for the time: a sign that it works.
    pub fn readings(&self, thread: &str) -> u64 {
        self.readings.lock().expect("no panic").get(thread).copied().unwrap_or(0)
    }

    fn read_us(&self) -> u64 {
        if let Some(thread) = std::thread::current().name() {
            *self.readings.lock().expect("no panic").entry(thread.to_owned()).or_default() += 1;
        }
        self.passed_us.load(Ordering::SeqCst)
    }

    /// The current time of a worker.
    pub fn now_ms(&self) -> u64 {
        self.wall_us() / 1_000
    }
}

impl Clock for HeldClock {
    fn wall_us(&self) -> u64 {
        STARTED_MS * 1_000 + self.read_us()
    }
    fn monotonic_us(&self) -> u64 {
        self.read_us()
    }
}

/// An empty store, in a directory that is removed with it.
pub fn house() -> (tempfile::TempDir, Arc<HeldClock>, Statehouse) {
    let directory = tempfile::tempdir().expect("a directory");
    let clock = Arc::new(HeldClock::default());
    let house = Options::default().clock(clock.clone()).open(directory.path().join("house")).expect("a house");
    (directory, clock, house)
}

/// Waits for background work, as long as it may take on a machine with other work.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6_000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}

/// Wakes the thread that polls.
struct Unparks(std::thread::Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future on this thread.
pub fn blocked_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unparks(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}
