//! The thread that writes frozen tables to the store below, oldest first, one batch each.
//!
//! Keeps: S1. A flush takes the newest version of every key of one whole table, and nothing else. A flush that failed
//! without a trace, such as one that found the disk full, is tried again with the same table until it succeeds or the
//! overlay closes. Never: retries once the store below is poisoned. Nobody knows what it holds then, so the overlay
//! refuses further commits and its owner must reopen it.

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

/// How often to look whether the readers of a flushed table have let go of it: they do not say so.
const FREE_POLL: Duration = Duration::from_millis(50);

pub(super) fn spawn(shared: Arc<Shared>) -> Result<JoinHandle<()>, KvError> {
    std::thread::Builder::new()
        .name("overlay-flush".into())
        .spawn(move || run(&shared))
        .map_err(|error| KvError::Io { action: "start the flush thread", reason: error.to_string() })
}

fn run(shared: &Shared) {
    // Freeing a large table takes long. Readers that still hold a flushed one must not be the ones to free it, so
    // flushed tables wait here until nobody else holds them.
    let mut retired = Vec::new();
    let mut pause = RETRY_MIN;
    while let Some((table, upto)) = next_frozen(shared, &mut retired) {
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
        retired.push(table);
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

/// Waits for the oldest frozen table and the last batch in it; none when the overlay closes. Frees meanwhile what nobody
/// reads any more.
fn next_frozen(shared: &Shared, retired: &mut Vec<Arc<Table>>) -> Option<(Arc<Table>, Sequence)> {
    loop {
        // Each for itself: an old view may be read for hours, and tables that came after it must not wait for that.
        retired.retain(|table| Arc::strong_count(table) > 1);
        let state = shared.lock();
        if state.closing {
            return None;
        }
        if let Some(upto) = state.frozen_upto.first() {
            let tables = shared.published.load();
            let table = tables.frozen.first().expect("a frozen table for every frozen sequence");
            return Some((table.clone(), *upto));
        }
        if retired.is_empty() {
            drop(shared.wait(state));
        } else {
            drop(shared.changed.wait_timeout(state, FREE_POLL));
        }
    }
}

fn flush(shared: &Shared, table: &Table) -> Result<(), KvError> {
    // At its size from the beginning: while it grew, it would be in memory twice.
    let mut rows = Vec::with_capacity(table.keys());
    rows.extend(table.scan(&KeyRange::all(), Order::Ascending, Sequence::MAX));
    match shared.below.commit(Batch::from_sorted(rows))? {
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
