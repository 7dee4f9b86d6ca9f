//! The thread that merges runs, and the waiting of writers for it.
//!
//! Keeps: S2 (a merge never changes what a view reads; views pin their tables, so every older version of a key may be
//! dropped). Never: runs after a failed batch; a failed merge poisons the store.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use kv::KvError;
use lsm_tree::compaction::Leveled;
use lsm_tree::{AbstractTree, SeqNo};

use crate::Options;
use crate::pinned::Pinned;
use crate::tree::{Shared, tree_error};

pub(crate) struct Compactor {
    signal: Arc<Signal>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Something was added since the last merge.
    due: bool,
    working: bool,
    closing: bool,
    stopped: bool,
}

impl Signal {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'lock>(&self, state: MutexGuard<'lock, State>) -> MutexGuard<'lock, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Compactor {
    pub(crate) fn spawn(shared: Arc<Shared>, options: &Options) -> Result<Self, KvError> {
        // A process may have died with many runs unmerged, for which the first batch would wait: look at once.
        let state = Mutex::new(State { due: true, ..State::default() });
        let signal = Arc::new(Signal { state, changed: Condvar::new() });
        let strategy = Leveled::default()
            .with_l0_threshold(options.unmerged_tables_max)
            .with_table_target_size(options.table_bytes_target);
        let thread = std::thread::Builder::new()
            .name("store-compact".into())
            .spawn({
                let (signal, shared) = (signal.clone(), shared.clone());
                move || run(&signal, &shared, strategy)
            })
            .map_err(|error| KvError::Io { action: "start the compaction thread", reason: error.to_string() })?;
        Ok(Self { signal, shared, thread: Some(thread) })
    }

    /// Says that a run was added.
    pub(crate) fn wake(&self) {
        self.signal.lock().due = true;
        self.signal.changed.notify_all();
    }

    /// Waits until fewer than `runs` lie unmerged.
    pub(crate) fn wait_below(&self, runs: usize) {
        let mut state = self.signal.lock();
        while self.shared.standard_tree().l0_run_count() >= runs && !state.stopped {
            state = self.signal.wait(state);
        }
    }

    /// Waits until nothing is due.
    pub(crate) fn settle(&self) {
        let mut state = self.signal.lock();
        while (state.due || state.working) && !state.stopped {
            state = self.signal.wait(state);
        }
    }
}

impl Drop for Compactor {
    fn drop(&mut self) {
        self.signal.lock().closing = true;
        self.signal.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has already poisoned the store.
            let _ = thread.join();
        }
    }
}

fn run(signal: &Signal, shared: &Shared, strategy: Leveled) {
    let strategy = Arc::new(strategy);
    loop {
        {
            let mut state = signal.lock();
            state.working = false;
            signal.changed.notify_all();
            while !state.due && !state.closing {
                state = signal.wait(state);
            }
            if state.closing {
                return;
            }
            state.due = false;
            state.working = true;
        }
        // One call does at most one merge, and tells by the version whether it did.
        loop {
            let before = shared.tree.current_version().id();
            let merge = || shared.tree.compact(strategy.clone(), SeqNo::MAX);
            let merged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(merge));
            let failure = match merged {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(tree_error("merge runs", &PathBuf::from("tables"), &error).to_string()),
                Err(_) => Some("the merge of runs panicked".to_owned()),
            };
            if let Some(failure) = failure {
                tracing::error!(%failure, "compaction failed; the store accepts no more writes");
                shared.lock().failure.get_or_insert(failure);
                signal.lock().stopped = true;
                signal.changed.notify_all();
                return;
            }
            if shared.tree.current_version().id() == before {
                break;
            }
            {
                // No run can be added while the lock is held, so the newest version has the same content as `content`.
                let writer = shared.lock();
                writer.content.move_to(Pinned::newest(&shared.tree));
            }
            signal.changed.notify_all();
            if signal.lock().closing {
                return;
            }
        }
    }
}
