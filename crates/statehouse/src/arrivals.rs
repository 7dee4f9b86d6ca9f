//! Wakes those who wait for changes. The apply loop publishes its progress; while nobody waits, that takes no lock.
//!
//! Keeps: nobody sleeps through an entry. A waiter registers before it checks the loop's progress, and the loop
//! publishes its progress before it checks for waiters, so one of the two sees the other.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

/// The progress of the apply loop, and those who wait for it.
pub(crate) struct Arrivals {
    newest: AtomicU64,
    stopped: AtomicBool,
    waiting: AtomicUsize,
    /// Tasks that wait.
    lock: Mutex<Vec<Waker>>,
    arrived: Condvar,
}

/// Why waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// Something newer is visible.
    Arrived,
    /// Nothing came in time.
    TimeOver,
    /// Nothing more will come.
    Stopped,
}

impl Arrivals {
    /// Everything up to this commit is visible.
    pub(crate) fn new(newest: u64) -> Self {
        Self {
            newest: AtomicU64::new(newest),
            stopped: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            lock: Mutex::new(Vec::new()),
            arrived: Condvar::new(),
        }
    }

    /// Everything up to this commit is visible now.
    pub(crate) fn reached(&self, commit: u64) {
        self.newest.store(commit, Ordering::SeqCst);
        self.wake();
    }

    /// Everything up to this commit is visible.
    pub(crate) fn newest(&self) -> u64 {
        self.newest.load(Ordering::SeqCst)
    }

    /// Nothing more will come.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        // Taking the lock once ensures that a waiter who checked and found nothing is asleep and is woken by this.
        let tasks = std::mem::take(&mut *self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.arrived.notify_all();
        self.waiting.fetch_sub(tasks.len(), Ordering::SeqCst);
        for task in tasks {
            task.wake();
        }
    }

    /// Whether something newer than `commit` is visible, or nothing more will come; otherwise the task is woken when
    /// there is something to check.
    pub(crate) fn poll_beyond(&self, commit: u64, waker: &Waker) -> Option<Waited> {
        let look = || match (self.newest.load(Ordering::SeqCst) > commit, self.stopped.load(Ordering::SeqCst)) {
            (true, _) => Some(Waited::Arrived),
            (false, true) => Some(Waited::Stopped),
            (false, false) => None,
        };
        let mut tasks = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if !tasks.iter().any(|task| task.will_wake(waker)) {
            tasks.push(waker.clone());
            self.waiting.fetch_add(1, Ordering::SeqCst);
        }
        // The waiter is registered before it checks; anything that arrives now wakes it.
        look()
    }

    /// Waits, in a task, until something newer than `commit` is visible or nothing more will come.
    pub(crate) async fn beyond(&self, commit: u64) -> Waited {
        poll_fn(|context| match self.poll_beyond(commit, context.waker()) {
            Some(waited) => Poll::Ready(waited),
            None => Poll::Pending,
        })
        .await
    }

    /// Waits until something newer than `commit` is visible.
    pub(crate) fn wait_beyond(&self, commit: u64, timeout: Duration) -> Waited {
        let newer = || self.newest.load(Ordering::SeqCst) > commit;
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let nothing = |_: &mut Vec<Waker>| !newer() && !self.stopped.load(Ordering::SeqCst);
        let waited = self.arrived.wait_timeout_while(lock, timeout, nothing);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        if newer() {
            Waited::Arrived
        } else if self.stopped.load(Ordering::SeqCst) {
            Waited::Stopped
        } else {
            Waited::TimeOver
        }
    }
}

/// Announces on drop that nothing more will come: at the end of the apply loop, however it ends.
pub(crate) struct StopsAtEnd(pub(crate) std::sync::Arc<crate::shared::Shared>);

impl Drop for StopsAtEnd {
    fn drop(&mut self) {
        self.0.arrivals.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, channel};

    /// Longer than any test: a waiter that is not woken misses the test's deadline.
    const LONG: Duration = Duration::from_secs(3_600);
    const SOON: Duration = Duration::from_secs(20);

    fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
        let (sender, receiver) = channel();
        std::thread::spawn(move || sender.send(work()));
        receiver
    }

    #[test]
    fn who_waits_is_woken_by_what_is_newer_and_by_the_end() {
        let arrivals = Arc::new(Arrivals::new(3));
        assert_eq!(arrivals.wait_beyond(2, LONG), Waited::Arrived);
        assert_eq!(arrivals.wait_beyond(3, Duration::from_millis(5)), Waited::TimeOver);
        for (commit, expected) in [(3, Waited::Arrived), (4, Waited::Stopped)] {
            let waiter = {
                let arrivals = arrivals.clone();
                apart(move || arrivals.wait_beyond(commit, LONG))
            };
            while arrivals.waiting.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            if expected == Waited::Arrived {
                arrivals.reached(4)
            } else {
                arrivals.stop()
            }
            assert_eq!(waiter.recv_timeout(SOON), Ok(expected));
        }
        assert_eq!(arrivals.wait_beyond(3, LONG), Waited::Arrived, "what has come is still said after the end");
    }

    #[test]
    fn nobody_sleeps_through_an_entry() {
        let arrivals = Arc::new(Arrivals::new(0));
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                let arrivals = arrivals.clone();
                apart(move || (0..20_000).all(|seen| arrivals.wait_beyond(seen, LONG) == Waited::Arrived))
            })
            .collect();
        for commit in 1..=20_000 {
            arrivals.reached(commit);
        }
        for waiter in waiters {
            assert_eq!(waiter.recv_timeout(SOON), Ok(true));
        }
    }
}
