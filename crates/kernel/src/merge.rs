//! Merges the rows of several ranges, ordered by what follows the first bytes of their keys.
//!
//! Index rows start with their bucket. To read them in index order, one range per bucket is read and merged. A heap
//! holds the next row of each, so a row costs a few comparisons, however many buckets there are.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use kv::{Bytes, Key, KeyRange, Order, Rows, View};
use session::Halt;

/// A range of rows.
pub(crate) struct Source {
    /// In which bucket.
    pub(crate) bucket: u16,
    /// Which keys.
    pub(crate) range: KeyRange,
    /// Bytes of a key that do not count for the order.
    pub(crate) cut: usize,
}

/// The next row of all sources together.
pub(crate) struct MergedRow {
    pub(crate) bucket: u16,
    pub(crate) value: Bytes,
    key: Key,
    cut: usize,
    source: usize,
}

impl MergedRow {
    /// The part of the key that the row is sorted by.
    pub(crate) fn suffix(&self) -> &[u8] {
        &self.key[self.cut..]
    }
}

/// Rows of several ranges. Equal rows come in the order of their sources.
pub(crate) struct MergedRows<'view> {
    sources: Vec<(Source, Rows<'view>)>,
    heads: BinaryHeap<Reverse<MergedRow>>,
}

impl<'view> MergedRows<'view> {
    pub(crate) fn new(view: &'view dyn View, sources: Vec<Source>) -> Result<Self, Halt> {
        let opened = sources.into_iter().filter(|source| !source.range.is_empty());
        let opened = opened.map(|source| {
            let rows = view.scan(&source.range, Order::Ascending);
            (source, rows)
        });
        let mut merged = Self { sources: opened.collect(), heads: BinaryHeap::new() };
        for source in 0..merged.sources.len() {
            merged.advance(source)?;
        }
        Ok(merged)
    }

    /// Takes the next row of a source.
    fn advance(&mut self, source: usize) -> Result<(), Halt> {
        let (Source { bucket, cut, .. }, rows) = &mut self.sources[source];
        if let Some(row) = rows.next() {
            let (key, value) = row?;
            self.heads.push(Reverse(MergedRow { bucket: *bucket, value, key, cut: *cut, source }));
        }
        Ok(())
    }

    pub(crate) fn next(&mut self) -> Result<Option<MergedRow>, Halt> {
        let Some(Reverse(row)) = self.heads.pop() else {
            return Ok(None);
        };
        self.advance(row.source)?;
        Ok(Some(row))
    }
}

impl Ord for MergedRow {
    fn cmp(&self, other: &Self) -> Ordering {
        self.suffix().cmp(other.suffix()).then(self.source.cmp(&other.source))
    }
}

impl PartialOrd for MergedRow {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for MergedRow {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for MergedRow {}
