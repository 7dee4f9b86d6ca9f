//! A sorted map in memory that keeps every version of a key, so that a reader at an older sequence sees no change.
//!
//! One thread writes, any number read. The lock is held for one insert, one lookup or one chunk of a scan, never across
//! calls. A B-tree, not a skip list: it touches fewer cache lines and allocates less (measured in 0003 of `docs/adr`).
//!
//! Touches: nothing else. Keeps: a reader at sequence `n` sees exactly the writes up to `n`.
//! Never: forgets a version. A table is bounded by being replaced; see `overlay`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use crate::filter::{Filter, KeyHash};
use crate::key::Key;
use crate::range::KeyRange;
use crate::store::{Bytes, Order, Sequence};

/// The memory of a row besides its key and value: its share of a node, counts, a shared header.
const ROW_BYTES: usize = 200;

/// The average size of a row, to size the filter; a table with smaller rows has a weaker filter.
const EXPECTED_ROW_BYTES: usize = 400;

/// Rows that a scan copies first; every further chunk is twice as long, up to [`CHUNK_ROWS_MAX`].
const CHUNK_ROWS_FIRST: usize = 4;

/// Rows that a scan copies at a time, so that a write never waits long for a scan.
const CHUNK_ROWS_MAX: usize = 128;

/// What a table knows about a key: a value, or that it was deleted.
pub(crate) type Found = Option<Bytes>;

/// The versions of one key, each with the batch that wrote it.
struct Versions {
    newest: (Sequence, Found),
    /// Oldest first.
    older: Vec<(Sequence, Found)>,
}

impl Versions {
    /// The newest version at or below `sequence`.
    fn at(&self, sequence: Sequence) -> Option<&Found> {
        if self.newest.0 <= sequence {
            return Some(&self.newest.1);
        }
        let visible = self.older.partition_point(|(written, _)| *written <= sequence);
        visible.checked_sub(1).map(|last| &self.older[last].1)
    }
}

type Rows = BTreeMap<Key, Versions>;

pub(crate) struct Table {
    rows: RwLock<Rows>,
    /// Most looked-up keys are not in a table; the filter rules them out without a search.
    filter: Filter,
    bytes: AtomicUsize,
}

impl Table {
    /// An empty table, expected to grow to about `bytes_max`.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            rows: RwLock::new(Rows::new()),
            filter: Filter::new(bytes_max / EXPECTED_ROW_BYTES),
            bytes: AtomicUsize::new(0),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Rows> {
        self.rows.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a write of the batch with this sequence, which is never below that of an earlier write.
    pub(crate) fn insert(&self, key: Key, value: Found, sequence: Sequence) {
        let bytes = key.len() + value.as_ref().map_or(0, |value| value.len()) + ROW_BYTES;
        self.filter.add(&key);
        let newest = (sequence, value);
        match self.rows.write().unwrap_or_else(PoisonError::into_inner).entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert(Versions { newest, older: Vec::new() });
            }
            Entry::Occupied(mut occupied) => {
                let versions = occupied.get_mut();
                let before = std::mem::replace(&mut versions.newest, newest);
                versions.older.push(before);
            }
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// About how much memory the table takes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// How many keys it has, with however many versions.
    pub(crate) fn keys(&self) -> usize {
        self.read().len()
    }

    /// The newest version of `probe`'s key at or below its sequence; none if the table has none.
    pub(crate) fn get(&self, probe: &Probe<'_>) -> Option<Found> {
        if !self.filter.may_contain(&probe.hash) {
            return None;
        }
        self.read().get(probe.key)?.at(probe.sequence).cloned()
    }

    /// The newest version of each key of `range` at or below `sequence`, deletions included.
    pub(crate) fn scan(&self, range: &KeyRange, order: Order, sequence: Sequence) -> TableScan<'_> {
        TableScan {
            table: self,
            rest: Some(range.clone()),
            order,
            sequence,
            chunk: Vec::new().into_iter(),
            chunk_rows: CHUNK_ROWS_FIRST,
        }
    }
}

/// A key to look up, hashed once and used on several tables.
pub(crate) struct Probe<'key> {
    key: &'key [u8],
    sequence: Sequence,
    hash: KeyHash,
}

impl<'key> Probe<'key> {
    pub(crate) fn new(key: &'key [u8], sequence: Sequence) -> Self {
        Self { key, sequence, hash: KeyHash::of(key) }
    }
}

/// See [`Table::scan`].
pub(crate) struct TableScan<'table> {
    table: &'table Table,
    /// What was not copied yet, if anything.
    rest: Option<KeyRange>,
    order: Order,
    sequence: Sequence,
    chunk: std::vec::IntoIter<(Key, Found)>,
    chunk_rows: usize,
}

impl TableScan<'_> {
    /// Copies the next rows out of the table. Rows written since the scan started are too new to be seen.
    fn copy_chunk(&mut self, range: KeyRange) {
        let rows = self.table.read();
        let start = Bound::Included(range.start.as_slice());
        let end = range.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let found = rows.range::<[u8], _>((start, end));
        let visible = |(key, versions): (&Key, &Versions)| Some((key.clone(), versions.at(self.sequence)?.clone()));
        let chunk: Vec<_> = match self.order {
            Order::Ascending => found.filter_map(visible).take(self.chunk_rows).collect(),
            Order::Descending => found.rev().filter_map(visible).take(self.chunk_rows).collect(),
        };
        drop(rows);
        if chunk.len() == self.chunk_rows {
            let (last, _) = chunk.last().expect("a full chunk");
            let rest = match self.order {
                Order::Ascending => range.after(last),
                Order::Descending => range.before(last),
            };
            self.rest = (!rest.is_empty()).then_some(rest);
            self.chunk_rows = (self.chunk_rows * 2).min(CHUNK_ROWS_MAX);
        }
        self.chunk = chunk.into_iter();
    }
}

impl Iterator for TableScan<'_> {
    type Item = (Key, Found);

    fn next(&mut self) -> Option<(Key, Found)> {
        if let Some(row) = self.chunk.next() {
            return Some(row);
        }
        let rest = self.rest.take()?;
        self.copy_chunk(rest);
        self.chunk.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let table = Table::new(0);
        for (key, value, sequence) in [("a", Some("a1"), 1), ("b", Some("b1"), 1), ("a", None, 2), ("a", Some("a3"), 3)]
        {
            table.insert(key.as_bytes().into(), value.map(|v| v.as_bytes().into()), sequence);
        }
        table
    }

    fn scan(order: Order, sequence: Sequence) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let rows = table()
            .scan(&KeyRange::all(), order, sequence)
            .map(|(key, found)| format!("{}={}", text(&key), found.as_ref().map_or("-".into(), |value| text(value))))
            .collect::<Vec<_>>();
        rows.join(" ")
    }

    #[test]
    fn a_reader_sees_the_version_of_its_sequence() {
        let get = |sequence| table().get(&Probe::new(b"a", sequence)).map(|v| v.map(|v| v.to_vec()));
        assert_eq!(get(0), None);
        assert_eq!(get(1), Some(Some(b"a1".to_vec())));
        assert_eq!(get(2), Some(None));
        assert_eq!(get(9), Some(Some(b"a3".to_vec())));
    }

    #[test]
    fn a_scan_yields_one_version_of_each_key_in_both_orders() {
        assert_eq!(scan(Order::Ascending, 0), "");
        assert_eq!(scan(Order::Ascending, 1), "a=a1 b=b1");
        assert_eq!(scan(Order::Ascending, 2), "a=- b=b1");
        assert_eq!(scan(Order::Descending, 2), "b=b1 a=-");
        assert_eq!(scan(Order::Descending, 3), "b=b1 a=a3");
    }
}
