//! The bounded queue in front of the writer thread.
//!
//! Keeps: commands leave in the order they came. Never: exceeds its limits.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::local::{LocalOptions, QueueFull, Queued};
use crate::meter::JournalMeter;

pub(crate) struct Queue<C> {
    state: Mutex<State<C>>,
    changed: Condvar,
    commands_max: usize,
    bytes_max: usize,
    entry_bytes_max: usize,
}

struct State<C> {
    commands: VecDeque<C>,
    bytes: usize,
    /// Set while the journal's files are at their limit; holds their size.
    files_full: Option<u64>,
    cut_before: Option<u64>,
    waiting: bool,
    closed: bool,
}

/// The next task of the writer thread.
pub(crate) enum Work<C> {
    Append(Vec<C>),
    Cut(u64),
    Nothing,
    Close,
}

impl<C: Queued> Queue<C> {
    pub(crate) fn new(options: &LocalOptions) -> Self {
        let state = State {
            commands: VecDeque::new(),
            bytes: 0,
            files_full: None,
            cut_before: None,
            waiting: false,
            closed: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            commands_max: options.queue_commands_max,
            bytes_max: options.queue_bytes_max,
            entry_bytes_max: options.entry_bytes_max,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a command, or returns it with the limit that was reached.
    pub(crate) fn push(&self, command: C) -> Result<(), (C, QueueFull)> {
        let bytes = command.bytes();
        let mut state = self.lock();
        let full = if state.closed {
            Some(QueueFull::Closed)
        } else if let Some(bytes) = state.files_full {
            Some(QueueFull::JournalBytes { bytes })
        } else if state.commands.len() >= self.commands_max {
            Some(QueueFull::Commands { commands_max: self.commands_max })
        } else if state.bytes + bytes > self.bytes_max {
            Some(QueueFull::Bytes { bytes_max: self.bytes_max })
        } else {
            None
        };
        if let Some(full) = full {
            return Err((command, full));
        }
        state.commands.push_back(command);
        state.bytes += bytes;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        if waiting {
            self.changed.notify_one();
        }
        Ok(())
    }

    /// Takes everything that waits, up to what one entry may hold; waits for it at most `patience`.
    pub(crate) fn next(&self, patience: Option<Duration>) -> Work<C> {
        let mut state = self.lock();
        loop {
            if let Some(first_kept) = state.cut_before.take() {
                return Work::Cut(first_kept);
            }
            if !state.commands.is_empty() {
                return Work::Append(self.drain(&mut state));
            }
            if state.closed {
                return Work::Close;
            }
            state.waiting = true;
            match patience {
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(patience) => {
                    let waited = self.changed.wait_timeout(state, patience);
                    let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                    state = woken;
                    if timeout.timed_out() && state.commands.is_empty() {
                        return Work::Nothing;
                    }
                }
            }
        }
    }

    fn drain(&self, state: &mut State<C>) -> Vec<C> {
        let mut taken = Vec::with_capacity(state.commands.len());
        let mut taken_bytes = 0;
        while let Some(command) = state.commands.front() {
            let bytes = command.bytes();
            // One command always fits: its own limit is below an entry's.
            if taken_bytes + bytes > self.entry_bytes_max && !taken.is_empty() {
                break;
            }
            taken_bytes += bytes;
            taken.extend(state.commands.pop_front());
        }
        state.bytes -= taken_bytes;
        taken
    }

    pub(crate) fn cut(&self, first_kept: u64) {
        let mut state = self.lock();
        state.cut_before = state.cut_before.max(Some(first_kept));
        drop(state);
        self.changed.notify_one();
    }

    pub(crate) fn files_full(&self, bytes: Option<u64>) {
        self.lock().files_full = bytes;
    }

    /// Says what waits.
    pub(crate) fn measure(&self, meter: JournalMeter) -> JournalMeter {
        let state = self.lock();
        JournalMeter {
            queue_commands: state.commands.len(),
            queue_bytes: state.bytes,
            queue_bytes_max: self.bytes_max,
            files_full: state.files_full.is_some(),
            ..meter
        }
    }

    /// Takes no more commands; those that wait are still written.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// Accepts no more commands and returns the waiting ones.
    pub(crate) fn abandon(&self) -> Vec<C> {
        let mut state = self.lock();
        state.closed = true;
        state.bytes = 0;
        state.commands.drain(..).collect()
    }
}
