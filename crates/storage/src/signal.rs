//! What the merging thread, the committing thread and callers that wait tell each other.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kv::KvError;

use crate::status::SpaceState;

#[derive(Default)]
pub(crate) struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Rises with everything that may give the merging thread something to do.
    changes: u64,
    /// Rises with what makes an idle store busy again: files that nobody needs any more do not.
    additions: u64,
    /// Up to which change nothing is due, and up to which not even in an idle store.
    rested_at: Option<u64>,
    settled_at: Option<u64>,
    /// Callers that wait until the store is settled: it does not wait to become idle then.
    settling: usize,
    /// Why merges wait.
    waiting: Option<KvError>,
    space: SpaceState,
    closing: bool,
    /// The merging thread is gone.
    stopped: bool,
}

/// What the merging thread shall look for.
#[derive(Clone, Copy)]
pub(crate) struct Task {
    changes: u64,
    additions: u64,
    pub(crate) idle: bool,
    pub(crate) space: SpaceState,
}

impl State {
    /// The next task, unless the store closes. A store that was idle stays so until something is added: otherwise each
    /// step of what an idle store does would wait for its time.
    fn task_after(&self, before: Option<Task>) -> Option<Task> {
        let State { changes, additions, space, .. } = *self;
        let idle = before.is_some_and(|task| task.idle && task.additions == additions);
        (!self.closing).then_some(Task { changes, additions, idle, space })
    }
}

impl Signal {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'lock>(&self, state: MutexGuard<'lock, State>) -> MutexGuard<'lock, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that a table was added.
    pub(crate) fn table_added(&self) {
        self.lock().additions += 1;
        self.wake();
    }

    /// Says that files can be removed.
    pub(crate) fn files_unneeded(&self) {
        self.wake();
    }

    fn wake(&self) {
        self.lock().changes += 1;
        self.changed.notify_all();
    }

    pub(crate) fn set_space(&self, space: SpaceState) {
        let before = std::mem::replace(&mut self.lock().space, space);
        match (before, space) {
            // What did not fit may fit now.
            (SpaceState::Short { unflushed_bytes: before }, SpaceState::Short { unflushed_bytes: now }) => {
                if now < before {
                    self.wake();
                }
            }
            (SpaceState::Enough, SpaceState::Enough) => {}
            _ => self.table_added(),
        }
    }

    pub(crate) fn close(&self) {
        self.lock().closing = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.lock().closing
    }

    /// Why merges wait, if they do.
    pub(crate) fn waiting(&self) -> Option<KvError> {
        self.lock().waiting.clone()
    }

    /// Waits while there are more tables than `depth` in a stack and merges can change that. If they cannot now, it says why
    /// not, but only beyond twice the depth: what is about to be added may be what merges wait for, such as deletions.
    pub(crate) fn wait_for_merges(&self, depth: usize, deepest: impl Fn() -> usize) -> Result<(), KvError> {
        let mut state = self.lock();
        while deepest() >= depth && state.rested_at != Some(state.changes) && !state.stopped {
            match &state.waiting {
                Some(waiting) if deepest() >= 2 * depth => return Err(waiting.clone()),
                Some(_) => return Ok(()),
                None => {}
            }
            state = self.wait(state);
        }
        Ok(())
    }

    /// Waits until nothing is due, not even in an idle store. An error says why merges cannot go on now.
    pub(crate) fn settle(&self) -> Result<(), KvError> {
        let mut state = self.lock();
        state.settling += 1;
        self.changed.notify_all();
        let mut result = Ok(());
        while state.settled_at != Some(state.changes) && !state.stopped {
            if let Some(waiting) = &state.waiting {
                result = Err(waiting.clone());
                break;
            }
            state = self.wait(state);
        }
        state.settling -= 1;
        result
    }

    /// The first task.
    pub(crate) fn task(&self) -> Option<Task> {
        self.lock().task_after(None)
    }

    /// The task after one that was done.
    pub(crate) fn progressed(&self, task: Task) -> Option<Task> {
        let mut state = self.lock();
        state.waiting = None;
        self.changed.notify_all();
        state.task_after(Some(task))
    }

    /// Nothing was due: waits for the next task, or none when the store closes. An idle store waits until something
    /// changes, unless it shall look again sooner.
    pub(crate) fn rest(&self, task: Task, idle_after: Duration, again_after: Option<Duration>) -> Option<Task> {
        let mut state = self.lock();
        state.waiting = None;
        state.rested_at = Some(task.changes);
        if task.idle {
            state.settled_at = Some(task.changes);
        }
        self.changed.notify_all();
        loop {
            if state.closing || state.changes != task.changes {
                return state.task_after(Some(task));
            }
            let time = match (task.idle, again_after) {
                (true, None) => {
                    state = self.wait(state);
                    continue;
                }
                (true, Some(again_after)) => again_after,
                (false, _) => idle_after,
            };
            let idle = |state: &State| Some(Task { idle: true, space: state.space, ..task });
            if state.settling > 0 && !task.idle {
                return idle(&state);
            }
            let waited = self.changed.wait_timeout(state, time);
            let (next, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            if timeout.timed_out() && next.changes == task.changes && !next.closing {
                return idle(&next);
            }
            state = next;
        }
    }

    /// Merges cannot go on: waits for the time given, or less if something changes.
    pub(crate) fn back_off(&self, task: Task, reason: KvError, time: Duration) -> Option<Task> {
        let mut state = self.lock();
        state.waiting = Some(reason);
        self.changed.notify_all();
        let unchanged = |state: &mut State| state.changes == task.changes && !state.closing;
        let waited = self.changed.wait_timeout_while(state, time, unchanged);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.task_after(Some(task))
    }

    /// The merging thread ends.
    pub(crate) fn stopped(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_store_stays_idle_until_something_is_added() {
        let signal = Signal::default();
        let task = signal.task().expect("open");
        assert!(!task.idle);
        let task = signal.rest(task, Duration::ZERO, None).expect("open");
        assert!(task.idle, "nothing was added meanwhile");
        let task = signal.progressed(task).expect("open");
        assert!(task.idle, "a merge was done, and the next follows at once");
        signal.files_unneeded();
        let task = signal.progressed(task).expect("open");
        assert!(task.idle, "its files can be removed");
        signal.table_added();
        assert!(!signal.progressed(task).expect("open").idle);
        assert!(!signal.rest(task, Duration::from_secs(600), None).expect("open").idle, "it does not wait");
    }
}
