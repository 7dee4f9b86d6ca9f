//! A sorted map in memory that keeps every version of a key, so that a reader at an older sequence sees no change.
//!
//! Touches: nothing else. Keeps: a reader at sequence `n` sees exactly the writes up to `n`.
//! Never: forgets a version. A table is bounded by being replaced; see `overlay`.

use std::cmp::Reverse;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_skiplist::SkipMap;
use crossbeam_skiplist::map::{Entry, Range};

use crate::filter::{Filter, KeyHash};
use crate::key::Key;
use crate::range::KeyRange;
use crate::store::{Bytes, Order, Sequence};

/// What a node of the map costs beside its key and value: tower, counts, two shared headers.
const NODE_BYTES: usize = 160;

/// What a row takes on average, to size the filter; a table with smaller rows has a weaker filter.
const EXPECTED_ROW_BYTES: usize = 400;

/// A key with the batch that wrote it; newer versions of a key sort first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Versioned {
    key: Key,
    sequence: Reverse<Sequence>,
}

/// What a table knows of a key: a value, or that it was deleted.
pub(crate) type Found = Option<Bytes>;

pub(crate) struct Table {
    versions: SkipMap<Versioned, Found>,
    /// Most keys that are looked up are not in a table; this says so without a search.
    filter: Filter,
    bytes: AtomicUsize,
}

impl Table {
    /// An empty table that is expected to grow to about `bytes_max`.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            versions: SkipMap::new(),
            filter: Filter::new(bytes_max / EXPECTED_ROW_BYTES),
            bytes: AtomicUsize::new(0),
        }
    }

    /// Adds a write of the batch with this sequence.
    pub(crate) fn insert(&self, key: Key, value: Found, sequence: Sequence) {
        let bytes = key.len() + value.as_ref().map_or(0, |value| value.len()) + NODE_BYTES;
        self.filter.add(&key);
        self.versions.insert(Versioned { key, sequence: Reverse(sequence) }, value);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// About how much memory the table takes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    /// The newest version of `probe`'s key at or below its sequence; none if the table has none.
    pub(crate) fn get(&self, probe: &Probe) -> Option<Found> {
        if !self.filter.may_contain(&probe.hash) {
            return None;
        }
        let probe = &probe.versioned;
        let entry = self.versions.lower_bound(Bound::Included(probe))?;
        (entry.key().key == probe.key).then(|| entry.value().clone())
    }

    /// The newest version of each key of `range` at or below `sequence`, deletions included.
    pub(crate) fn scan(&self, range: &KeyRange, order: Order, sequence: Sequence) -> TableScan<'_> {
        let start = Bound::Included(Versioned { key: range.start.as_slice().into(), sequence: NEWEST });
        let end = match &range.end {
            None => Bound::Unbounded,
            Some(end) => Bound::Excluded(Versioned { key: end.as_slice().into(), sequence: NEWEST }),
        };
        let range = self.versions.range((start, end));
        let versions = match order {
            Order::Ascending => Direction::Ascending(range),
            Order::Descending => Direction::Descending(range),
        };
        TableScan { versions: versions.peekable(), order, sequence }
    }
}

/// Sorts before every version of its key.
const NEWEST: Reverse<Sequence> = Reverse(Sequence::MAX);

/// A key to look up, made once and used on several tables.
pub(crate) struct Probe {
    versioned: Versioned,
    hash: KeyHash,
}

impl Probe {
    pub(crate) fn new(key: &[u8], sequence: Sequence) -> Self {
        let versioned = Versioned { key: key.into(), sequence: Reverse(sequence) };
        Self { versioned, hash: KeyHash::of(key) }
    }
}

type TableRange<'table> = Range<'table, Versioned, (Bound<Versioned>, Bound<Versioned>), Versioned, Found>;

enum Direction<'table> {
    Ascending(TableRange<'table>),
    Descending(TableRange<'table>),
}

impl<'table> Iterator for Direction<'table> {
    type Item = Entry<'table, Versioned, Found>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Direction::Ascending(range) => range.next(),
            Direction::Descending(range) => range.next_back(),
        }
    }
}

/// See [`Table::scan`].
pub(crate) struct TableScan<'table> {
    versions: Peekable<Direction<'table>>,
    order: Order,
    sequence: Sequence,
}

impl Iterator for TableScan<'_> {
    type Item = (Key, Found);

    fn next(&mut self) -> Option<(Key, Found)> {
        loop {
            let first = self.versions.next()?;
            let key = first.key().key.clone();
            // The versions of one key stand together: newest first going up, oldest first going down.
            let mut chosen = None;
            let mut entry = first;
            loop {
                let visible = entry.key().sequence.0 <= self.sequence;
                let better = chosen.is_none() || self.order == Order::Descending;
                if visible && better {
                    chosen = Some(entry.value().clone());
                }
                match self.versions.next_if(|next| next.key().key == key) {
                    Some(next) => entry = next,
                    None => break,
                }
            }
            if let Some(found) = chosen {
                return Some((key, found));
            }
        }
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
