//! The thread that writes frozen tables to the store below, oldest first, one batch each.
//!
//! Keeps: S1. A flush takes the newest version of every key of one whole table, and nothing else. Never: retries. After
//! a failed flush nobody knows what the store below holds, so the overlay refuses further commits and its owner must
//! reopen it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use super::{OverlayView, Shared};
use crate::range::KeyRange;
use crate::store::{Batch, Committed, KvError, Order, Sequence};
use crate::table::Table;

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
    while let Some((table, upto)) = next_frozen(shared) {
        let flushed = catch_unwind(AssertUnwindSafe(|| flush(shared, &table)))
            .unwrap_or_else(|_| Err(KvError::Io { action: "flush a table", reason: "a panic".into() }));
        match flushed {
            Ok(()) => {}
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

/// Waits for the oldest frozen table and the last batch in it; none when the overlay closes.
fn next_frozen(shared: &Shared) -> Option<(Arc<Table>, Sequence)> {
    let mut state = shared.lock();
    loop {
        if state.closing {
            return None;
        }
        if let Some(upto) = state.frozen_upto.first() {
            let view = shared.published.load();
            let table = view.frozen.first().expect("a frozen table for every frozen sequence");
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
            let view = shared.published.load_full();
            let mut frozen = view.frozen.clone();
            let flushed = frozen.remove(0);
            assert!(Arc::ptr_eq(&flushed, table), "S1: tables are flushed oldest first");
            // First, so that a caller who sees no flush in progress also sees what the last one made durable.
            shared.durable.store(upto, Ordering::Release);
            shared.published.store(Arc::new(OverlayView { frozen, below, ..(*view).clone() }));
            state.frozen_upto.remove(0);
        }
        Err(error) => state.failure = Some(error),
    }
    shared.changed.notify_all();
}
