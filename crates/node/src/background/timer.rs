//! The timer: proposes a tick when something is due.
//!
//! After every entry, the kernel reports when the next work is due. The timer waits until then, in the time of stamps,
//! or until something is due earlier, and proposes ticks one after another while there is more. A tick does a bounded
//! amount of work, and other commands go in between.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use contract::Error;
use kernel::{Body, NextDue};

use crate::access::Access;
use crate::clock::Time;
use crate::error::cannot_open;
use crate::pending::Pending;

/// The timer checks the clock at least this often, because stamps follow a clock that may run faster.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The pause after a refused tick.
const REFUSED_PAUSE: Duration = Duration::from_millis(20);

/// When the next work is due, as reported by the apply loop.
#[derive(Default)]
pub(crate) struct Agenda {
    state: Mutex<AgendaState>,
    changed: Condvar,
}

#[derive(Default)]
struct AgendaState {
    next: NextDue,
    closing: bool,
}

impl Agenda {
    fn lock(&self) -> MutexGuard<'_, AgendaState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next thing is due then.
    pub(crate) fn set(&self, next: NextDue) {
        let mut state = self.lock();
        if state.next != next {
            state.next = next;
            drop(state);
            self.changed.notify_one();
        }
    }

    fn close(&self) {
        self.lock().closing = true;
        self.changed.notify_one();
    }

    /// Waits until something is due; false when the timer is to end.
    fn wait(&self, time: &Time) -> bool {
        let mut state = self.lock();
        loop {
            if state.closing {
                return false;
            }
            state = match until_due_us(state.next, time) {
                Some(0) => return true,
                Some(us) => {
                    let waited = self.changed.wait_timeout(state, Duration::from_micros(us).min(WAIT_MAX));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Whether something is due now.
    fn is_due(&self, time: &Time) -> bool {
        let next = self.lock().next;
        until_due_us(next, time) == Some(0)
    }

    /// Waits a little; false when the timer is to end.
    fn pause(&self) -> bool {
        let state = self.lock();
        let waited = self.changed.wait_timeout_while(state, REFUSED_PAUSE, |state| !state.closing);
        !waited.unwrap_or_else(PoisonError::into_inner).0.closing
    }
}

/// The time until the next work is due, if there is any.
fn until_due_us(next: NextDue, time: &Time) -> Option<u64> {
    let now = time.now();
    let until = |due_us: Option<u64>, now_us: u64| due_us.map(|due_us| due_us.saturating_sub(now_us));
    let both = [until(next.wall_us, now.wall_us), until(next.cluster_us, now.cluster_us)];
    both.into_iter().flatten().min()
}

pub(crate) struct Timer {
    agenda: Arc<Agenda>,
    thread: Option<JoinHandle<()>>,
}

impl Timer {
    pub(crate) fn start(access: Access, agenda: Arc<Agenda>) -> Result<Self, Error> {
        let thread = std::thread::Builder::new()
            .name("timer".into())
            .spawn({
                let agenda = agenda.clone();
                move || run(&access, &agenda)
            })
            .map_err(|error| cannot_open(format!("could not start the timer thread: {error}")))?;
        Ok(Self { agenda, thread: Some(thread) })
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.agenda.close();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread ends the ticks; it affects nothing that was acknowledged.
            let _ = thread.join();
        }
    }
}

/// Proposes ticks while work is due. As long as one tick does not finish it, the next is submitted while it is applied;
/// other commands still go in between.
fn run(access: &Access, agenda: &Agenda) {
    let mut under_way: Option<Pending<()>> = None;
    let mut behind = false;
    while agenda.wait(access.time()) {
        let catalogue = access.catalogue();
        let tick = access.propose(&catalogue, &Body::Tick, |_| Ok(()));
        let awaited = match under_way.take() {
            Some(before) => {
                under_way = Some(tick);
                before
            }
            None if behind => {
                under_way = Some(tick);
                continue;
            }
            None => tick,
        };
        // The apply loop has updated the agenda before it answers.
        if let Err(error) = awaited.wait() {
            tracing::warn!(%error, "a tick was refused; due work waits");
            if !agenda.pause() {
                return;
            }
        }
        behind = agenda.is_due(access.time());
        if !behind {
            under_way = None;
        }
    }
}
