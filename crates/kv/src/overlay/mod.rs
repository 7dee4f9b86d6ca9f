//! The overlay: every batch is visible at once from memory, and reaches the store below later, in bulk.
//!
//! A batch goes into the *active* table. When that has grown to [`OverlayOptions::table_bytes_max`] it is frozen, a new
//! one takes its place, and a thread writes the frozen one to the store below as one batch (one *flush*). A view is a set
//! of published tables (active, frozen, and a view of the store below) and the newest sequence it may see.
//!
//! Touches: the store below, which it owns exclusively. Keeps: S1 (after power loss the store is exactly one of the
//! flushes: tables are frozen between batches, flushed oldest first, one batch each) and S2 (a view never changes).
//! Never: logs ahead. Unflushed data is lost with the process; the journal above replays it.

mod flusher;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use arc_swap::ArcSwap;

use crate::merge::{Merge, Writes};
use crate::range::KeyRange;
use crate::store::{Batch, Bytes, Committed, KvError, Order, Rows, Sequence, Store, View};
use crate::table::{Probe, Table};

/// Bounds of an [`Overlay`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OverlayOptions {
    /// A table is frozen and flushed when it holds this many bytes.
    pub table_bytes_max: usize,
    /// A commit waits while this many frozen tables are not flushed yet.
    pub frozen_tables_max: usize,
}

impl Default for OverlayOptions {
    fn default() -> Self {
        Self { table_bytes_max: 64 << 20, frozen_tables_max: 2 }
    }
}

impl OverlayOptions {
    /// The most bytes that wait in memory: the table that is written to, and the frozen ones.
    pub fn memory_bytes_max(&self) -> u64 {
        (self.table_bytes_max as u64).saturating_mul(self.frozen_tables_max as u64 + 1)
    }

    /// Sets [`table_bytes_max`](Self::table_bytes_max).
    pub fn table_bytes_max(mut self, bytes: usize) -> Self {
        self.table_bytes_max = bytes;
        self
    }
}

/// A [`Store`] above another; see the module.
///
/// ```
/// use statehouse_kv::{Batch, MemoryStore, Overlay, OverlayOptions, Store, View};
/// use std::sync::Arc;
///
/// let below = Arc::new(MemoryStore::new());
/// let overlay = Overlay::new(below.clone(), OverlayOptions::default())?;
/// overlay.commit(Batch::new().put(b"k".as_slice(), b"v".as_slice()))?;
/// assert_eq!((overlay.durable(), below.view()?.get(b"k")?), (0, None), "visible above, not yet below");
/// overlay.persist()?;
/// assert_eq!(overlay.durable(), 1);
/// assert!(below.view()?.get(b"k")?.is_some());
/// # Ok::<(), statehouse_kv::KvError>(())
/// ```
pub struct Overlay {
    shared: Arc<Shared>,
    options: OverlayOptions,
    flusher: Option<JoinHandle<()>>,
}

/// State shared by the committing thread, the flushing thread and the readers.
struct Shared {
    below: Arc<dyn Store>,
    /// What new views read. Replaced under `state`'s lock, and rarely: a replacement looks at every thread that ever read it.
    published: ArcSwap<Tables>,
    /// The last batch that new views see. Raised under `state`'s lock, after its rows are in the active table.
    newest: AtomicU64,
    state: Mutex<State>,
    /// Signalled when a table was frozen, a flush ended, or the overlay closes.
    changed: Condvar,
    durable: AtomicU64,
    table_bytes_max: usize,
}

#[derive(Default)]
struct State {
    /// The last batch of each frozen table, oldest first; the tables are in the published view.
    frozen_upto: Vec<Sequence>,
    closing: bool,
    /// Counts flushes that failed and will be tried again, for those who wait for one.
    failed_flushes: u64,
    /// Why the newest flush failed, until one succeeds.
    last_failure: Option<KvError>,
    /// A flush that fails from now on is not tried again.
    last_attempt: bool,
    /// A commit does not wait for a flush that cannot be done now.
    accepts_unflushed: bool,
    failure: Option<KvError>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'lock>(&self, state: MutexGuard<'lock, State>) -> MutexGuard<'lock, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the active table aside for flushing. The caller holds the lock.
    fn freeze(&self, state: &mut State) {
        let tables = self.published.load_full();
        if tables.active.is_empty() {
            return;
        }
        let mut frozen = tables.frozen.clone();
        frozen.push(tables.active.clone());
        let active = Arc::new(Table::new(self.table_bytes_max));
        self.published.store(Arc::new(Tables { active, frozen, below: tables.below.clone() }));
        state.frozen_upto.push(self.newest.load(Ordering::Relaxed));
        self.changed.notify_all();
    }

    fn view(&self) -> OverlayView {
        // Tables that are loaded afterwards have every batch up to the sequence. If the store below has later ones by then, it
        // has them wholly, and they are seen.
        let sequence = self.newest.load(Ordering::Acquire);
        OverlayView { tables: self.published.load_full(), sequence }
    }
}

impl State {
    /// Whether a commit waits for a flush.
    fn must_wait(&self, frozen_tables_max: usize) -> bool {
        let goes_on = self.accepts_unflushed && self.last_failure.is_some();
        self.frozen_upto.len() >= frozen_tables_max && self.failure.is_none() && !goes_on
    }

    fn refuse_if_failed(&self) -> Result<(), KvError> {
        match &self.failure {
            Some(first) => Err(KvError::Poisoned { first: first.to_string() }),
            None => Ok(()),
        }
    }
}

impl Overlay {
    /// A [`view`](Store::view) that lies on the stack: an allocation is a fiftieth of the time of a small read.
    pub fn newest(&self) -> OverlayView {
        self.shared.view()
    }

    /// An overlay above `below`; from now on, every write must go through the overlay.
    pub fn new(below: Arc<dyn Store>, options: OverlayOptions) -> Result<Self, KvError> {
        let tables =
            Tables { active: Arc::new(Table::new(options.table_bytes_max)), frozen: Vec::new(), below: below.view()? };
        let shared = Arc::new(Shared {
            below,
            published: ArcSwap::from_pointee(tables),
            newest: AtomicU64::new(0),
            state: Mutex::default(),
            changed: Condvar::new(),
            durable: AtomicU64::new(0),
            table_bytes_max: options.table_bytes_max,
        });
        let flusher = flusher::spawn(shared.clone())?;
        Ok(Self { shared, options, flusher: Some(flusher) })
    }

    /// Starts a flush of everything committed so far, without waiting for it.
    pub fn start_flush(&self) {
        self.shared.freeze(&mut self.shared.lock());
    }

    /// Whether a flush is in progress, so that [`durable`](Store::durable) is about to rise.
    pub fn is_flushing(&self) -> bool {
        !self.shared.published.load().frozen.is_empty()
    }

    /// Ends the waiting for a store below that cannot take a flush now: the flush in progress, or the next one, is the
    /// last attempt. If it fails, so do all commits from then on. Called before the owner waits for its commits to end.
    pub fn stop_retrying(&self) {
        self.shared.lock().last_attempt = true;
        self.shared.changed.notify_all();
    }

    /// Whether a flush that the store below cannot take now is tried again.
    pub fn retries(&self) -> bool {
        !self.shared.lock().last_attempt
    }

    /// Lets new views read the store below as it is now, if something was committed to it directly: rows that the overlay does
    /// not have.
    pub fn refresh(&self) -> Result<(), KvError> {
        let _state = self.shared.lock();
        let below = self.shared.below.view()?;
        let tables = self.shared.published.load_full();
        self.shared.published.store(Arc::new(Tables { below, ..(*tables).clone() }));
        Ok(())
    }

    /// Whether commits go on while the store below cannot take a flush, whatever they take in memory. For a replay, which
    /// has an end, and without which nothing can be read; otherwise they wait.
    pub fn accept_unflushed(&self, accept: bool) {
        self.shared.lock().accepts_unflushed = accept;
    }

    /// Why the newest flush failed, if it will be tried again.
    pub fn flush_failure(&self) -> Option<KvError> {
        self.shared.lock().last_failure.clone()
    }

    /// The number of bytes in memory: the active table and the frozen ones.
    pub fn bytes_in_memory(&self) -> usize {
        let tables = self.shared.published.load();
        tables.active.bytes() + tables.frozen.iter().map(|table| table.bytes()).sum::<usize>()
    }
}

impl Store for Overlay {
    fn view(&self) -> Result<Arc<dyn View>, KvError> {
        Ok(Arc::new(self.shared.view()))
    }

    fn commit(&self, batch: Batch) -> Result<Committed, KvError> {
        let mut state = self.shared.lock();
        while state.must_wait(self.options.frozen_tables_max) {
            state = self.shared.wait(state);
        }
        state.refuse_if_failed()?;
        let view = self.shared.view();
        if !batch.condition_holds(&view)? {
            return Ok(Committed::ConditionFailed);
        }
        if batch.is_empty() {
            return Ok(Committed::Applied(view.sequence));
        }
        let sequence = view.sequence + 1;
        for (key, value) in batch.into_writes() {
            // Readers cannot see these yet: their sequence is too low.
            view.tables.active.insert(key, value, sequence);
        }
        self.shared.newest.store(sequence, Ordering::Release);
        if view.tables.active.bytes() >= self.options.table_bytes_max {
            self.shared.freeze(&mut state);
        }
        Ok(Committed::Applied(sequence))
    }

    fn durable(&self) -> Sequence {
        self.shared.durable.load(Ordering::Acquire)
    }

    fn persist(&self) -> Result<Sequence, KvError> {
        let mut state = self.shared.lock();
        let committed = self.shared.newest.load(Ordering::Relaxed);
        let failed_before = state.failed_flushes;
        self.shared.freeze(&mut state);
        loop {
            state.refuse_if_failed()?;
            let durable = self.durable();
            if durable >= committed {
                return Ok(durable);
            }
            if state.failed_flushes != failed_before
                && let Some(error) = &state.last_failure
            {
                return Err(error.clone());
            }
            state = self.shared.wait(state);
        }
    }
}

impl Drop for Overlay {
    /// Ends the flushing thread after its current flush; the journal still has what is in memory.
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_all();
        if let Some(flusher) = self.flusher.take() {
            // A panic of the flusher was already turned into a failure that commits report.
            let _ = flusher.join();
        }
    }
}

/// Everything there is to read.
#[derive(Clone)]
struct Tables {
    active: Arc<Table>,
    /// Oldest first.
    frozen: Vec<Arc<Table>>,
    below: Arc<dyn View>,
}

impl Tables {
    fn newest_first(&self) -> impl Iterator<Item = &Arc<Table>> {
        std::iter::once(&self.active).chain(self.frozen.iter().rev())
    }
}

/// The whole store after one of its batches.
pub struct OverlayView {
    tables: Arc<Tables>,
    sequence: Sequence,
}

impl View for OverlayView {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        let probe = Probe::new(key, self.sequence);
        for table in self.tables.newest_first() {
            if let Some(found) = table.get(&probe) {
                return Ok(found);
            }
        }
        self.tables.below.get(key)
    }

    fn scan(&self, range: &KeyRange, order: Order) -> Rows<'_> {
        if range.is_empty() {
            return Box::new(std::iter::empty());
        }
        let scans = self.tables.newest_first().map(|table| table.scan(range, order, self.sequence));
        let tables = scans.map(|scan| Box::new(scan) as Writes<'_>).collect();
        Box::new(Merge::new(tables, self.tables.below.scan(range, order), order))
    }
}

#[cfg(test)]
mod tests;
