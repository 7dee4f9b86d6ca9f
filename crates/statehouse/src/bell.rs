//! A bell: rings for one who waits, a thread or a task.
//!
//! Keeps: nobody sleeps through a ring. One that comes while nobody waits is heard by whoever waits next.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

/// Rings for one who waits.
#[derive(Default)]
pub(crate) struct Bell {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Since the last time that it was waited for.
    rung: Option<Rung>,
    /// The task that waits.
    task: Option<Waker>,
}

/// A bell has rung.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rung {
    /// The first command of the first entry that it rang for; none if it rang for something else.
    pub(crate) first_commit: Option<u64>,
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ring(&self) {
        self.ring_for(None);
    }

    /// Rings because of an entry, which begins with this command.
    pub(crate) fn ring_for(&self, first_commit: Option<u64>) {
        let mut state = self.lock();
        let rung = state.rung.get_or_insert_default();
        rung.first_commit = rung.first_commit.or(first_commit);
        let task = state.task.take();
        drop(state);
        self.changed.notify_all();
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Whether it has rung since the last time; if not, the task is woken when it does.
    pub(crate) fn poll(&self, waker: &Waker) -> Option<Rung> {
        let mut state = self.lock();
        let rung = state.rung.take();
        state.task = rung.is_none().then(|| waker.clone());
        rung
    }

    /// Waits until it has rung since the last time.
    pub(crate) fn wait(&self, timeout: Duration) -> Option<Rung> {
        let waited = self.changed.wait_timeout_while(self.lock(), timeout, |state| state.rung.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.rung.take()
    }
}
