//! Workers that wait for something to claim.
//!
//! For every record that becomes ready one waiter is woken, the one that has waited longest among those whose prefix
//! covers its queue. So a job costs one claim however many workers wait.
//!
//! Keeps: nobody sleeps through a record. A waiter is in the list before it looks for records the last time, and one
//! that was chosen looks again before it gives up.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kernel::ReadyQueue;

/// What a worker waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) space: u32,
    pub(crate) branch: u32,
    pub(crate) prefix: String,
}

impl Wanted {
    fn covers(&self, queue: &ReadyQueue) -> bool {
        self.space == queue.space && self.branch == queue.branch && queue.name.starts_with(&self.prefix)
    }

    /// Whether a queue can be of interest to both.
    fn meets(&self, other: &Self) -> bool {
        let nested = self.prefix.starts_with(&other.prefix) || other.prefix.starts_with(&self.prefix);
        self.space == other.space && self.branch == other.branch && nested
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Waiters {
    state: Mutex<State>,
    chosen: Condvar,
}

#[derive(Default)]
struct State {
    /// In the order they came. One that was chosen is not here any more.
    waiting: VecDeque<(u64, Wanted)>,
    next: u64,
    closing: bool,
}

/// A place among the waiters; given up when it is dropped.
pub(crate) struct Place<'waiters> {
    waiters: &'waiters Waiters,
    number: u64,
    wanted: Wanted,
    /// Whether it knows that it was chosen, and will look for records.
    heard: std::cell::Cell<bool>,
}

impl Waiters {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the waiters; none when there is nothing more to wait for.
    pub(crate) fn join(&self, wanted: Wanted) -> Option<Place<'_>> {
        let mut state = self.lock();
        if state.closing {
            return None;
        }
        let number = state.next;
        state.next += 1;
        state.waiting.push_back((number, wanted.clone()));
        let heard = std::cell::Cell::new(false);
        Some(Place { waiters: self, number, wanted, heard })
    }

    /// Records of these queues have become ready, one for each time that a queue is named.
    pub(crate) fn ready(&self, queues: &[ReadyQueue]) {
        if queues.is_empty() {
            return;
        }
        let mut state = self.lock();
        let mut any = false;
        for queue in queues {
            let first = state.waiting.iter().position(|(_, wanted)| wanted.covers(queue));
            any |= first.and_then(|first| state.waiting.remove(first)).is_some();
        }
        drop(state);
        if any {
            self.chosen.notify_all();
        }
    }

    /// How many wait.
    pub(crate) fn count(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Wakes everyone: nothing will become ready any more.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closing = true;
        state.waiting.clear();
        drop(state);
        self.chosen.notify_all();
    }
}

impl Place<'_> {
    /// Waits to be chosen, at most so long; whether it was.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        let here = |state: &mut State| state.waiting.iter().any(|(number, _)| *number == self.number);
        let waited = self.waiters.chosen.wait_timeout_while(self.waiters.lock(), timeout, here);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        self.heard.set(!here(&mut state));
        self.heard.get()
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.waiters.lock();
        let here = state.waiting.iter().position(|(number, _)| *number == self.number);
        match here {
            Some(here) => drop(state.waiting.remove(here)),
            None if self.heard.get() => {}
            // It was chosen for a record that it does not look for any more: somebody else should.
            None => {
                let next = state.waiting.iter().position(|(_, other)| other.meets(&self.wanted));
                let woken = next.and_then(|next| state.waiting.remove(next)).is_some();
                drop(state);
                if woken {
                    self.waiters.chosen.notify_all();
                }
            }
        }
    }
}

/// The waiters of a shard, shared by its handles and its apply loop.
pub(crate) type SharedWaiters = Arc<Waiters>;

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str) -> ReadyQueue {
        ReadyQueue { space: 1, branch: 1, name: name.to_owned() }
    }

    fn wanted(prefix: &str) -> Wanted {
        Wanted { space: 1, branch: 1, prefix: prefix.to_owned() }
    }

    #[test]
    fn the_longest_waiting_worker_whose_prefix_covers_the_queue_is_woken() {
        let waiters = Waiters::default();
        let mail = waiters.join(wanted("jobs.mail.")).expect("open");
        let any = waiters.join(wanted("jobs.")).expect("open");
        let again = waiters.join(wanted("jobs.mail.")).expect("open");
        waiters.ready(&[queue("jobs.print."), queue("jobs.mail.")]);
        assert!(any.wait(Duration::ZERO) && mail.wait(Duration::ZERO));
        assert!(!again.wait(Duration::ZERO), "one record, one worker");
        let next = waiters.join(wanted("jobs.mail.")).expect("open");
        waiters.ready(&[queue("jobs.mail.")]);
        drop(again);
        assert!(next.wait(Duration::ZERO), "who leaves without having heard passes it on");
        let again = waiters.join(wanted("jobs.")).expect("open");
        waiters.close();
        assert!(again.wait(Duration::ZERO));
        assert!(waiters.join(wanted("")).is_none());
    }
}
