//! A slot: where one answer is put, for a thread that blocks or a task that awaits it.
//!
//! Keeps: an answer is given once and taken once.

use std::task::Waker;

use crate::sync::{Mutex, Thread, current, lock, park};

/// Where an answer is put.
///
/// ```
/// use std::sync::Arc;
/// let slot = Arc::new(statehouse_waiting::Slot::default());
/// let waits = std::thread::spawn({
///     let slot = slot.clone();
///     move || slot.wait()
/// });
/// slot.give("done");
/// assert_eq!(waits.join().ok(), Some("done"));
/// ```
pub struct Slot<Answer> {
    state: Mutex<State<Answer>>,
}

impl<Answer> Default for Slot<Answer> {
    fn default() -> Self {
        Self { state: Mutex::new(State::Empty) }
    }
}

enum State<Answer> {
    Empty,
    Parked(Thread),
    Awaited(Waker),
    Given(Answer),
    Taken,
}

impl<Answer> Slot<Answer> {
    /// Delivers the answer and wakes its waiter.
    ///
    /// # Panics
    /// If it was given before.
    pub fn give(&self, answer: Answer) {
        let before = std::mem::replace(&mut *lock(&self.state), State::Given(answer));
        match before {
            State::Parked(thread) => thread.unpark(),
            State::Awaited(waker) => waker.wake(),
            State::Empty => {}
            State::Given(_) | State::Taken => unreachable!("an answer is given once"),
        }
    }

    /// Blocks until the answer is there. Only one may wait, and only once.
    pub fn wait(&self) -> Answer {
        loop {
            let mut state = lock(&self.state);
            match std::mem::replace(&mut *state, State::Taken) {
                State::Given(answer) => return answer,
                _ => *state = State::Parked(current()),
            }
            drop(state);
            // A stale permit only costs one more turn of the loop.
            park();
        }
    }

    /// The answer; if it is not there yet, the task is woken when it is.
    ///
    /// # Panics
    /// If it was taken before.
    pub fn poll(&self, waker: &Waker) -> Option<Answer> {
        let mut state = lock(&self.state);
        match std::mem::replace(&mut *state, State::Taken) {
            State::Given(answer) => Some(answer),
            State::Taken => panic!("a pending answer was polled after it was ready"),
            _ => {
                *state = State::Awaited(waker.clone());
                None
            }
        }
    }
}
