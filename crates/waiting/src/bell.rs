//! A bell: rings for one who waits, a thread or a task.
//!
//! Keeps: nobody sleeps through a ring. One that comes while nobody waits is heard by whoever waits next.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

use crate::sync::{Condvar, Mutex, lock, wait_while};

/// Rings for one who waits.
///
/// ```
/// use std::time::Duration;
/// use statehouse_waiting::Bell;
/// let bell = Bell::default();
/// bell.ring_for(Some(7));
/// bell.ring_for(Some(8));
/// assert_eq!(bell.wait(Duration::ZERO).and_then(|rung| rung.first_commit), Some(7));
/// assert_eq!(bell.wait(Duration::ZERO), None);
/// ```
#[derive(Default)]
pub struct Bell {
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
pub struct Rung {
    /// The number of the first commit that it rang for; none if it rang for something else.
    pub first_commit: Option<u64>,
}

impl Bell {
    /// Rings.
    pub fn ring(&self) {
        self.ring_for(None);
    }

    /// Rings, for a commit if there was one.
    pub fn ring_for(&self, commit: Option<u64>) {
        let mut state = lock(&self.state);
        let rung = state.rung.get_or_insert_default();
        rung.first_commit = rung.first_commit.or(commit);
        let task = state.task.take();
        drop(state);
        self.changed.notify_all();
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Whether it has rung since the last time; if not, the task is woken when it does.
    pub fn poll(&self, waker: &Waker) -> Option<Rung> {
        let mut state = lock(&self.state);
        let rung = state.rung.take();
        state.task = rung.is_none().then(|| waker.clone());
        rung
    }

    /// Waits until it has rung since the last time.
    pub fn wait(&self, timeout: Duration) -> Option<Rung> {
        wait_while(&self.changed, lock(&self.state), timeout, |state| state.rung.is_none()).rung.take()
    }
}

/// A task that is woken rings it.
impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ring();
    }
}
