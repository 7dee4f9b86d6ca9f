//! Writes in preparation above a view, read together with it.
//!
//! A machine applies the commands of one entry to a staging; the result becomes one batch. A command rejected half-way
//! leaves nothing: its writes are undone to the last savepoint.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::codec::Writer;
use crate::key::Key;
use crate::merge::{Merge, Writes};
use crate::range::KeyRange;
use crate::store::{Batch, Bytes, KvError, Order, Rows, View, copied};

/// Writes in preparation above a view.
///
/// ```
/// use statehouse_kv::{MemoryStore, Staging, Store};
/// let store = MemoryStore::new();
/// let mut staging = Staging::new(store.view()?);
/// staging.put(b"kept".to_vec(), b"1".to_vec());
/// staging.savepoint();
/// staging.put(b"kept".to_vec(), b"2".to_vec());
/// staging.delete(b"other".to_vec());
/// staging.undo();
/// assert_eq!(staging.get(b"kept")?.as_deref(), Some(b"1".as_slice()));
/// assert_eq!(staging.into_batch().writes().len(), 1);
/// # Ok::<(), statehouse_kv::KvError>(())
/// ```
pub struct Staging {
    below: Arc<dyn View>,
    writes: BTreeMap<Key, Option<Bytes>>,
    /// The previous content of each key in `writes` that was written since the savepoint.
    before: Vec<(Key, Option<Option<Bytes>>)>,
    /// Values are assembled here, so that each is allocated once, at its final size.
    scratch: Writer,
}

impl View for Staging {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.get(key)
    }

    fn scan(&self, range: &KeyRange, order: Order) -> Rows<'_> {
        self.scan(range, order)
    }
}

impl Staging {
    /// No writes above `below`.
    pub fn new(below: Arc<dyn View>) -> Self {
        Self { below, writes: BTreeMap::new(), before: Vec::new(), scratch: Writer::new() }
    }

    /// The value at `key` with the staged writes.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        match self.writes.get(key) {
            Some(staged) => Ok(staged.clone()),
            None => self.below.get(key),
        }
    }

    /// The rows of `range` with the staged writes.
    pub fn scan(&self, range: &KeyRange, order: Order) -> Rows<'_> {
        if range.is_empty() {
            return Box::new(std::iter::empty());
        }
        let start = Bound::Included(range.start.as_slice());
        let end = range.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let staged = self.writes.range::<[u8], _>((start, end));
        let staged = staged.map(|(key, value)| (key.clone(), value.clone()));
        let staged: Writes<'_> = match order {
            Order::Ascending => Box::new(staged),
            Order::Descending => Box::new(staged.rev()),
        };
        Box::new(Merge::new(vec![staged], self.below.scan(range, order), order))
    }

    /// Stages a write.
    pub fn put(&mut self, key: impl Into<Key>, value: impl Into<Bytes>) {
        self.write(key.into(), Some(value.into()));
    }

    /// Stages a write of what `encode` writes. Returns the number of its bytes.
    pub fn put_encoded(&mut self, key: impl Into<Key>, encode: impl FnOnce(&mut Writer)) -> usize {
        self.scratch.clear();
        encode(&mut self.scratch);
        let value = copied(self.scratch.as_slice());
        let bytes = value.len();
        self.write(key.into(), Some(value));
        bytes
    }

    /// Stages a deletion.
    pub fn delete(&mut self, key: impl Into<Key>) {
        self.write(key.into(), None);
    }

    fn write(&mut self, key: Key, value: Option<Bytes>) {
        let before = self.writes.insert(key.clone(), value);
        self.before.push((key, before));
    }

    /// Sets the point to which [`undo`](Self::undo) returns.
    pub fn savepoint(&mut self) {
        self.before.clear();
    }

    /// Undoes the writes since the savepoint.
    pub fn undo(&mut self) {
        while let Some((key, before)) = self.before.pop() {
            match before {
                Some(value) => self.writes.insert(key, value),
                None => self.writes.remove(&key),
            };
        }
    }

    /// The staged writes in key order; none deletes.
    pub fn writes(&self) -> impl ExactSizeIterator<Item = (&Key, Option<&Bytes>)> {
        self.writes.iter().map(|(key, value)| (key, value.as_ref()))
    }

    /// The staged writes as a batch.
    pub fn into_batch(self) -> Batch {
        Batch::from_sorted(self.writes.into_iter().collect())
    }
}
