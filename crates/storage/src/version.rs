//! A version of the store: which tables hold which keys.
//!
//! The key space is cut into ranges. Each range has a *stack* of tables, newest first; a table may lie in the stacks of
//! many ranges, and its part in one of them is a *slice*. A flush lies on top of every stack, a merge replaces
//! neighbouring slices of some stacks.
//!
//! Keeps: S2 (a version never changes). The first stack starts at the empty key and their starts rise. A stack hides
//! every row of its tables that lies outside its range, because such a row may have been merged elsewhere: only what
//! `version_edit` describes moves a border.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use kv::{Bytes, Key, KeyRange, KvError, Order, Row, Rows, View, copied};

use crate::bloom::KeyHash;
use crate::failure::Failure;
use crate::merge_cursor::MergeCursor;
use crate::table::Table;
use crate::table_cursor::TableCursor;
use crate::table_facts::RowCounts;

#[derive(Clone)]
pub(crate) struct Version {
    pub(crate) stacks: Vec<Stack>,
}

/// The tables of the keys from `start` to the start of the next stack.
#[derive(Clone)]
pub(crate) struct Stack {
    pub(crate) start: Key,
    /// Newest first; the last one is the bottom.
    pub(crate) slices: Vec<Slice>,
}

/// The rows of a table within one stack.
#[derive(Clone)]
pub(crate) struct Slice {
    pub(crate) table: Arc<Table>,
    /// Exact when a table was written with this stack in place, estimated once the stack was cut.
    pub(crate) rows: RowCounts,
}

impl Version {
    pub(crate) fn empty() -> Self {
        Self { stacks: vec![Stack { start: Key::default(), slices: Vec::new() }] }
    }

    /// The place of the stack that covers `key`.
    pub(crate) fn stack_of(&self, key: &[u8]) -> usize {
        self.stacks.partition_point(|stack| *stack.start <= *key) - 1
    }

    /// The first key after a stack, unless it is the last.
    pub(crate) fn end_of(&self, stack: usize) -> Option<&[u8]> {
        self.stacks.get(stack + 1).map(|next| &*next.start)
    }

    /// Every table, by number.
    pub(crate) fn tables(&self) -> BTreeMap<u64, &Arc<Table>> {
        let slices = self.stacks.iter().flat_map(|stack| &stack.slices);
        slices.map(|slice| (slice.table.number(), &slice.table)).collect()
    }

    /// The keys of a stack.
    pub(crate) fn keys_of(&self, stack: usize) -> KeyRange {
        KeyRange { start: self.stacks[stack].start.to_vec(), end: self.end_of(stack).map(<[u8]>::to_vec) }
    }

    /// The table, if it holds any of these keys: in some range its rows may have been merged elsewhere.
    pub(crate) fn table_with(&self, table: u64, keys: &KeyRange) -> Option<&Arc<Table>> {
        let overlapping = (0..self.stacks.len()).filter(|stack| self.keys_of(*stack).overlaps(keys));
        let mut slices = overlapping.flat_map(|stack| &self.stacks[stack].slices);
        slices.find(|slice| slice.table.number() == table).map(|slice| &slice.table)
    }

    /// The tables in the deepest stack.
    pub(crate) fn depth(&self) -> usize {
        self.stacks.iter().map(|stack| stack.slices.len()).max().unwrap_or(0)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Failure> {
        let hash = KeyHash::of(key);
        for slice in &self.stacks[self.stack_of(key)].slices {
            if let Some(found) = slice.table.get(key, hash)? {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

/// The content of the store after one of its batches, shared by every view of that moment.
///
/// A merge changes which tables hold the content, not the content. So the newest content moves on to the merged
/// version, and no view of it keeps the files that the merge has replaced.
pub(crate) struct Content {
    version: ArcSwap<Version>,
}

impl Content {
    pub(crate) fn new(version: Version) -> Self {
        Self { version: ArcSwap::from_pointee(version) }
    }

    pub(crate) fn version(&self) -> Arc<Version> {
        self.version.load_full()
    }

    /// Moves on to other tables with the same content.
    pub(crate) fn move_to(&self, version: Version) {
        self.version.store(Arc::new(version));
    }
}

impl View for Content {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.version.load().get(key).map_err(KvError::from)
    }

    fn scan(&self, range: &KeyRange, order: Order) -> Rows<'_> {
        if range.is_empty() {
            return Box::new(std::iter::empty());
        }
        Box::new(Scan::new(self.version(), range.clone(), order))
    }
}

/// The rows of a range, one stack after the other.
struct Scan {
    version: Arc<Version>,
    range: KeyRange,
    order: Order,
    /// The stack being read.
    merge: Option<MergeCursor>,
    /// The places of the stacks not read yet.
    stacks: std::ops::Range<usize>,
    /// The part of `range` within the stack being read: its first key, and the key after it.
    lower: Key,
    upper: Option<Key>,
}

impl Scan {
    fn new(version: Arc<Version>, range: KeyRange, order: Order) -> Self {
        let first = version.stack_of(&range.start);
        let end = match &range.end {
            None => version.stacks.len(),
            Some(end) => version.stacks.partition_point(|stack| *stack.start < **end),
        };
        Self { version, range, order, merge: None, stacks: first..end, lower: Key::default(), upper: None }
    }

    /// Opens the next stack; false when there is none.
    fn open_stack(&mut self) -> Result<bool, Failure> {
        let place = match self.order {
            Order::Ascending => self.stacks.next(),
            Order::Descending => self.stacks.next_back(),
        };
        let Some(place) = place else { return Ok(false) };
        let stack = &self.version.stacks[place];
        self.lower = if *stack.start > *self.range.start { stack.start.clone() } else { (&*self.range.start).into() };
        self.upper = match (self.range.end.as_deref(), self.version.end_of(place)) {
            (Some(end), Some(stack_end)) => Some(end.min(stack_end).into()),
            (end, stack_end) => end.or(stack_end).map(Key::from),
        };
        let mut cursors = Vec::with_capacity(stack.slices.len());
        for slice in &stack.slices {
            if slice.table.overlaps(&self.lower, self.upper.as_deref()) {
                let mut cursor = TableCursor::cached(slice.table.clone());
                match self.order {
                    Order::Ascending => cursor.seek(&self.lower)?,
                    Order::Descending => cursor.seek_before(self.upper.as_deref())?,
                }
                cursors.push(cursor);
            }
        }
        self.merge = Some(MergeCursor::new(cursors, self.order));
        Ok(true)
    }

    /// Whether what comes next, a row or a damaged part, lies in the stack being read.
    fn is_inside(&self) -> bool {
        let Some(merge) = &self.merge else { return false };
        match (merge.key(), merge.barrier(), self.order) {
            (Some(key), _, Order::Ascending) => self.upper.as_deref().is_none_or(|upper| *key < *upper),
            (Some(key), _, Order::Descending) => *key >= *self.lower,
            (None, Some(part), Order::Ascending) => self.upper.as_deref().is_none_or(|upper| *part.at < *upper),
            (None, Some(part), Order::Descending) => *part.at > *self.lower,
            (None, None, _) => false,
        }
    }

    fn next_row(&mut self) -> Result<Option<Row>, KvError> {
        loop {
            while self.is_inside()
                && let Some(merge) = &mut self.merge
            {
                if let Some(part) = merge.barrier() {
                    let damaged = (*part.damage).clone().met_at(part.at.clone());
                    merge.pass_barrier()?;
                    return Err(damaged);
                }
                let Some(key) = merge.key() else { break };
                let row = merge.value().map(|value| (Key::from(key), copied(value)));
                merge.advance()?;
                if row.is_some() {
                    return Ok(row);
                }
            }
            self.merge = None;
            if !self.open_stack()? {
                return Ok(None);
            }
        }
    }
}

impl Iterator for Scan {
    type Item = Result<Row, KvError>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.next_row();
        if row.as_ref().is_err_and(|error| !matches!(error, KvError::Damaged(_))) {
            // A scan with a gap that is not named would look complete, so it ends here.
            self.merge = None;
            self.stacks = 0..0;
        }
        row.transpose()
    }
}
