//! The thread that writes frozen tables to the store below, oldest first, one batch each.
//!
//! Keeps: S1. A flush takes the newest version of every key of one whole table, and nothing else. A flush that failed
//! without a trace, such as one that found the disk full, is tried again with the same table until it succeeds or the
//! overlay closes. Never: retries once the store below is poisoned. Nobody knows what it holds then, so the overlay
//! refuses further commits and its owner must reopen it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Shared, Tables};
use crate::range::KeyRange;
use crate::store::{Batch, Committed, KvError, Order, Sequence};
use crate::table::Table;

/// The pause after a failed flush, doubled each time up to the second.
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(2);

pub(super) fn spawn(shared: Arc<Shared>) -> Result<JoinHandle<()>, KvError> {
    std::thread::Builder::new()
        .name("overlay-flush".into())
        .spawn(move || run(&shared))
        .map_err(|error| KvError::Io { action: "start the flush thread", reason: error.to_string() })
}

fn run(shared: &Shared) {
    // Freeing a large table takes long. Readers that still hold a flushed one must not be the ones to free it, so
    // flushed tables wait here until nobody else holds them.
    let mut retired: VecDeque<Arc<Table>> = VecDeque::new();
    let mut pause = RETRY_MIN;
    while let Some((table, upto)) = next_frozen(shared) {
        let flushed = catch_unwind(AssertUnwindSafe(|| flush(shared, &table)))
            .unwrap_or_else(|_| Err(KvError::Poisoned { first: "a flush panicked".into() }));
        match flushed {
            Ok(()) => pause = RETRY_MIN,
            Err(error) if error.may_retry() && wait_to_retry(shared, &error, upto, pause) => {
                pause = (pause * 2).min(RETRY_MAX);
                continue;
            }
            Err(error) => {
                tracing::error!(%error, sequence = upto, "flush failed; the store accepts no more writes");
                shared.lock().failure = Some(error);
                shared.changed.notify_all();
                return;
            }
        }
        publish(shared, &table, upto);
        retired.push_back(table);
        while retired.front().is_some_and(|oldest| Arc::strong_count(oldest) == 1) {
            retired.pop_front();
        }
    }
}

/// Tells those who wait for a flush that it failed, and waits a while. False when there shall be no other attempt.
fn wait_to_retry(shared: &Shared, error: &KvError, upto: Sequence, pause: Duration) -> bool {
    let mut state = shared.lock();
    if pause == RETRY_MIN {
        tracing::warn!(%error, sequence = upto, "flush failed; it will be tried again");
    }
    state.failed_flushes += 1;
    state.last_failure = Some(error.clone());
    shared.changed.notify_all();
    let waited = shared.changed.wait_timeout_while(state, pause, |state| !state.closing && !state.last_attempt);
    let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
    !state.last_attempt
}

/// Waits for the oldest frozen table and the last batch in it; none when the overlay closes.
fn next_frozen(shared: &Shared) -> Option<(Arc<Table>, Sequence)> {
    let mut state = shared.lock();
    loop {
        if state.closing {
            return None;
        }
        if let Some(upto) = state.frozen_upto.first() {
            let tables = shared.published.load();
            let table = tables.frozen.first().expect("a frozen table for every frozen sequence");
            return Some((table.clone(), *upto));
        }
        state = shared.wait(state);
    }
}

fn flush(shared: &Shared, table: &Table) -> Result<(), KvError> {
    let rows = table.scan(&KeyRange::all(), Order::Ascending, Sequence::MAX);
    let batch = Batch::from_sorted(rows.collect());
    match shared.below.commit(batch)? {
        Committed::Applied(_) => {}
        Committed::ConditionFailed => unreachable!("a flush carries no condition"),
    }
    shared.below.persist()?;
    Ok(())
}

/// Replaces the flushed table by a view of the store below that has it.
fn publish(shared: &Shared, table: &Arc<Table>, upto: Sequence) {
    let mut state = shared.lock();
    match shared.below.view() {
        Ok(below) => {
            let tables = shared.published.load_full();
            let mut frozen = tables.frozen.clone();
            let flushed = frozen.remove(0);
            assert!(Arc::ptr_eq(&flushed, table), "S1: tables are flushed oldest first");
            // First, so that a caller who sees no flush in progress also sees what the last one made durable.
            shared.durable.store(upto, Ordering::Release);
            shared.published.store(Arc::new(Tables { frozen, below, active: tables.active.clone() }));
            state.frozen_upto.remove(0);
            state.last_failure = None;
        }
        Err(error) => state.failure = Some(error),
    }
    shared.changed.notify_all();
}
