//! A store in memory: every duty of the trait but durability.
//!
//! Keeps: the promises of [`Store`] about views and batches. Never: survives the process; a batch counts as durable
//! only after [`persist`](Store::persist), so that code depending on durability can be tested above it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::range::KeyRange;
use crate::store::{Batch, Bytes, Committed, KvError, Order, Rows, Sequence, Store, View};
use crate::table::{Probe, Table};

/// The expected size of a store in memory; it may hold more.
const MEMORY_STORE_BYTES: usize = 1 << 20;

/// A [`Store`] in memory.
pub struct MemoryStore {
    table: Arc<Table>,
    committed: AtomicU64,
    durable: AtomicU64,
    writer: Mutex<()>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self {
            table: Arc::new(Table::new(MEMORY_STORE_BYTES)),
            committed: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            writer: Mutex::new(()),
        }
    }

    fn memory_view(&self) -> MemoryView {
        MemoryView { table: self.table.clone(), sequence: self.committed.load(Ordering::Acquire) }
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Store for MemoryStore {
    fn view(&self) -> Result<Arc<dyn View>, KvError> {
        Ok(Arc::new(self.memory_view()))
    }

    fn commit(&self, batch: Batch) -> Result<Committed, KvError> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if !batch.condition_holds(&self.memory_view())? {
            return Ok(Committed::ConditionFailed);
        }
        let sequence = self.committed.load(Ordering::Acquire) + 1;
        for (key, value) in batch.into_writes() {
            self.table.insert(key, value, sequence);
        }
        self.committed.store(sequence, Ordering::Release);
        Ok(Committed::Applied(sequence))
    }

    fn durable(&self) -> Sequence {
        self.durable.load(Ordering::Acquire)
    }

    fn persist(&self) -> Result<Sequence, KvError> {
        let committed = self.committed.load(Ordering::Acquire);
        self.durable.fetch_max(committed, Ordering::AcqRel);
        Ok(committed)
    }
}

struct MemoryView {
    table: Arc<Table>,
    sequence: Sequence,
}

impl View for MemoryView {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        Ok(self.table.get(&Probe::new(key, self.sequence)).flatten())
    }

    fn scan(&self, range: &KeyRange, order: Order) -> Rows<'_> {
        if range.is_empty() {
            return Box::new(std::iter::empty());
        }
        let rows = self.table.scan(range, order, self.sequence);
        Box::new(rows.filter_map(|(key, found)| found.map(|value| Ok((key, value)))))
    }
}
