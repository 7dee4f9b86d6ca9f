//! Workers that wait for something to claim.
//!
//! Every record that becomes ready wakes one waiter, the one that has waited longest among those whose prefix covers
//! its queue. A job therefore costs one claim, however many workers wait.
//!
//! Keeps: nobody sleeps through a record. A waiter is in the list before its last check for records, and a chosen one
//! checks again before it gives up.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

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

/// The waiting workers.
#[derive(Default)]
pub(crate) struct Waiters {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In order of arrival. A chosen waiter is no longer here.
    waiting: VecDeque<Waiting>,
    next: u64,
    closing: bool,
}

struct Waiting {
    number: u64,
    wanted: Wanted,
    /// Its task, once it sleeps.
    task: Option<Waker>,
}

impl State {
    fn position(&self, number: u64) -> Option<usize> {
        self.waiting.iter().position(|waiting| waiting.number == number)
    }

    /// Chooses the longest waiting one that fits, if any; its task must be woken without the lock.
    fn choose(&mut self, fits: impl Fn(&Wanted) -> bool) -> Option<Waker> {
        let first = self.waiting.iter().position(|waiting| fits(&waiting.wanted))?;
        self.waiting.remove(first)?.task
    }
}

/// A place among the waiters; removed on drop.
pub(crate) struct Place<'waiters> {
    waiters: &'waiters Waiters,
    number: u64,
    wanted: Wanted,
    /// Whether it knows that it was chosen, and will look for records.
    heard: bool,
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
        state.waiting.push_back(Waiting { number, wanted: wanted.clone(), task: None });
        Some(Place { waiters: self, number, wanted, heard: false })
    }

    /// Records of these queues have become ready, one for each time that a queue is named.
    pub(crate) fn ready(&self, queues: &[ReadyQueue]) {
        if queues.is_empty() {
            return;
        }
        let mut state = self.lock();
        let tasks: Vec<_> = queues.iter().filter_map(|queue| state.choose(|wanted| wanted.covers(queue))).collect();
        drop(state);
        tasks.into_iter().for_each(Waker::wake);
    }

    /// The number of waiters.
    pub(crate) fn count(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Wakes everyone: nothing will become ready any more.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closing = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().filter_map(|waiting| waiting.task).for_each(Waker::wake);
    }
}

impl Place<'_> {
    /// Waits to be chosen, or until the time is up; returns whether it was chosen.
    pub(crate) async fn turn(&mut self, mut time_over: Pin<&mut impl Future<Output = ()>>) -> bool {
        poll_fn(|context| {
            if self.is_chosen(context.waker()) {
                return Poll::Ready(true);
            }
            time_over.as_mut().poll(context).map(|()| false)
        })
        .await
    }

    /// Whether it was chosen; if not, the task is woken when it is.
    fn is_chosen(&mut self, waker: &Waker) -> bool {
        let mut state = self.waiters.lock();
        match state.position(self.number) {
            None => self.heard = true,
            Some(here) => state.waiting[here].task = Some(waker.clone()),
        }
        self.heard
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.waiters.lock();
        match state.position(self.number) {
            Some(here) => drop(state.waiting.remove(here)),
            None if self.heard => {}
            // It was chosen for a record that it does not look for any more: somebody else should.
            None => {
                let task = state.choose(|other| other.meets(&self.wanted));
                drop(state);
                if let Some(task) = task {
                    task.wake();
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

    /// Whether it is chosen by now.
    fn chosen(place: &mut Place<'_>) -> bool {
        place.is_chosen(Waker::noop())
    }

    #[test]
    fn the_longest_waiting_worker_whose_prefix_covers_the_queue_is_woken() {
        let waiters = Waiters::default();
        let mut mail = waiters.join(wanted("jobs.mail.")).expect("open");
        let mut any = waiters.join(wanted("jobs.")).expect("open");
        let mut again = waiters.join(wanted("jobs.mail.")).expect("open");
        waiters.ready(&[queue("jobs.print."), queue("jobs.mail.")]);
        assert!(chosen(&mut any) && chosen(&mut mail));
        assert!(!chosen(&mut again), "one record, one worker");
        let mut next = waiters.join(wanted("jobs.mail.")).expect("open");
        waiters.ready(&[queue("jobs.mail.")]);
        drop(again);
        assert!(chosen(&mut next), "who leaves without having heard passes it on");
        let mut again = waiters.join(wanted("jobs.")).expect("open");
        waiters.close();
        assert!(chosen(&mut again));
        assert!(waiters.join(wanted("")).is_none());
    }
}
