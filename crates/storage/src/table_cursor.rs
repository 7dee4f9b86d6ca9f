//! A position in a table that moves in both directions: at a row, or at a damaged part.
//!
//! A reader's cursor takes blocks from the cache; a merge's reads ahead and leaves the cache as it is.

use std::sync::Arc;

use kv::{Key, Order};

use crate::block::{Block, Kind, Place};
use crate::failure::{Damage, Failure};
use crate::rows::RowCursor;
use crate::table::Table;

/// A merge reads this much of a table at a time.
const READ_AHEAD_BYTES: usize = 256 << 10;

pub(crate) struct TableCursor {
    table: Arc<Table>,
    source: Source,
    /// The partition of `position`, or the number of partitions after the last row.
    partition: usize,
    position: Option<Position>,
    /// In place of a position: the rows that follow are damaged.
    barrier: Option<Barrier>,
}

/// A damaged part that a cursor stands before.
pub(crate) struct Barrier {
    pub(crate) damage: Box<Damage>,
    /// Its first key in ascending order, or the key after its last in descending order, as seen by the cursor.
    pub(crate) at: Key,
}

struct Position {
    index: RowCursor,
    rows: RowCursor,
}

enum Source {
    Cache,
    /// Bytes of the file from an offset on.
    ReadAhead {
        offset: u64,
        bytes: Vec<u8>,
    },
}

impl TableCursor {
    /// A cursor for readers; it must be moved to a row first.
    pub(crate) fn cached(table: Arc<Table>) -> Self {
        Self { table, source: Source::Cache, partition: 0, position: None, barrier: None }
    }

    /// A cursor for merges and other long passes.
    pub(crate) fn reading_ahead(table: Arc<Table>) -> Self {
        let source = Source::ReadAhead { offset: 0, bytes: Vec::new() };
        Self { table, source, partition: 0, position: None, barrier: None }
    }

    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Whether neither a row nor a damaged part follows.
    pub(crate) fn is_at_end(&self) -> bool {
        self.position.is_none() && self.barrier.is_none()
    }

    pub(crate) fn barrier(&self) -> Option<&Barrier> {
        self.barrier.as_ref()
    }

    /// The key of the row, or where the damaged part begins.
    ///
    /// # Panics
    /// If the cursor is at the end.
    pub(crate) fn key(&self) -> &[u8] {
        match (&self.barrier, &self.position) {
            (Some(barrier), _) => &barrier.at,
            (None, position) => position.as_ref().expect("the cursor is not at the end").rows.key(),
        }
    }

    /// The value, or none for a tombstone.
    ///
    /// # Panics
    /// If the cursor is not at a row.
    pub(crate) fn value(&self) -> Option<&[u8]> {
        self.position.as_ref().expect("the cursor is at a row").rows.value()
    }

    /// Goes to the first row at or after `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<(), Failure> {
        self.leave();
        let result = self.seek_row(key);
        self.or_barrier(result, |damage| {
            let inside = damage.keys.end.as_deref().is_none_or(|end| key < end);
            inside.then(|| key.max(&damage.keys.start).into())
        })
    }

    fn seek_row(&mut self, key: &[u8]) -> Result<(), Failure> {
        let top = self.table.top()?;
        self.partition = top.partition_point(|partition| *partition.last_key < *key);
        if self.partition == top.len() {
            return Ok(());
        }
        let mut index = self.index_at(key)?;
        let mut rows = self.rows(&mut index)?;
        self.checked(rows.seek(key))?;
        self.place(index, rows)
    }

    /// The index of the partition, at the block that `key` lies in.
    fn index_at(&mut self, key: &[u8]) -> Result<RowCursor, Failure> {
        let mut index = self.index()?;
        self.checked(index.seek(key))?;
        if !index.is_at_row() {
            return self.checked(Err(crate::rows::Malformed));
        }
        Ok(index)
    }

    /// Goes on to the first row at or after `key`, and never back.
    pub(crate) fn seek_forward(&mut self, key: &[u8]) -> Result<(), Failure> {
        if !self.is_at_end() && self.key() >= key { Ok(()) } else { self.seek(key) }
    }

    /// Goes to the last row before `end`, or to the very last.
    pub(crate) fn seek_before(&mut self, end: Option<&[u8]>) -> Result<(), Failure> {
        self.leave();
        let result = self.seek_row_before(end);
        self.or_barrier(result, |damage| {
            let inside = end.is_none_or(|end| *end > *damage.keys.start);
            let part_end = damage.keys.end.as_deref().unwrap_or_default();
            inside.then(|| end.map_or(part_end, |end| end.min(part_end)).into())
        })
    }

    fn seek_row_before(&mut self, end: Option<&[u8]>) -> Result<(), Failure> {
        let top = self.table.top()?;
        self.partition = match end {
            None => top.len(),
            Some(end) => top.partition_point(|partition| *partition.last_key < *end),
        };
        let Some(end) = end.filter(|_| self.partition < top.len()) else { return self.previous_block(None) };
        // Of a damaged part that begins at `end`, nothing is needed.
        let needless = |failure: &Failure| matches!(failure, Failure::Damaged(damage) if *end <= *damage.keys.start);
        let mut index = match self.index_at(end) {
            Err(failure) if needless(&failure) => return self.previous_block(None),
            index => index?,
        };
        match self.rows(&mut index) {
            Err(failure) if needless(&failure) => {
                let index = self.index_at(end)?;
                self.previous_block(Some(index))
            }
            rows => {
                let mut rows = rows?;
                self.checked(rows.seek(end))?;
                self.place(index, rows)?;
                self.previous_row()
            }
        }
    }

    pub(crate) fn next(&mut self) -> Result<(), Failure> {
        let result = self.next_row();
        self.or_barrier(result, |damage| Some((&*damage.keys.start).into()))
    }

    fn next_row(&mut self) -> Result<(), Failure> {
        let Some(position) = &mut self.position else { return Ok(()) };
        let moved = position.rows.next();
        if moved.is_ok() && position.rows.is_at_row() {
            return Ok(());
        }
        self.checked(moved)?;
        let Some(Position { mut index, .. }) = self.position.take() else { return Ok(()) };
        self.checked(index.next())?;
        if !index.is_at_row() {
            self.partition += 1;
            if self.partition == self.table.top()?.len() {
                return Ok(());
            }
            index = self.index()?;
            self.checked(index.first())?;
        }
        let mut rows = self.rows(&mut index)?;
        self.checked(rows.first())?;
        self.place(index, rows)
    }

    /// Goes one row back. Before the first row the cursor is at its end.
    pub(crate) fn previous(&mut self) -> Result<(), Failure> {
        let result = self.previous_row();
        self.or_barrier(result, |damage| Some(damage.keys.end.as_deref().unwrap_or_default().into()))
    }

    fn previous_row(&mut self) -> Result<(), Failure> {
        let Some(position) = &mut self.position else { return Ok(()) };
        let moved = position.rows.previous();
        if moved == Ok(true) {
            return Ok(());
        }
        self.checked(moved)?;
        let index = self.position.take().map(|position| position.index);
        self.previous_block(index)
    }

    /// Goes to the last row before the index's block, or else of the partition before.
    fn previous_block(&mut self, index: Option<RowCursor>) -> Result<(), Failure> {
        let mut before = None;
        if let Some(mut index) = index
            && self.checked(index.previous())?
        {
            before = Some(index);
        }
        let mut index = match before {
            Some(index) => index,
            None => {
                let Some(before) = self.partition.checked_sub(1) else { return Ok(()) };
                self.partition = before;
                let mut index = self.index()?;
                self.checked(index.previous())?;
                index
            }
        };
        let mut rows = self.rows(&mut index)?;
        self.checked(rows.previous())?;
        self.place(index, rows)
    }

    /// Goes to the first row behind the damaged part that the cursor stands before.
    pub(crate) fn pass_barrier(&mut self, order: Order) -> Result<(), Failure> {
        let Some(Barrier { damage, .. }) = self.barrier.take() else { return Ok(()) };
        self.skip(&damage, order)
    }

    /// Goes behind the keys of a damaged part, and never back.
    pub(crate) fn skip(&mut self, damage: &Damage, order: Order) -> Result<(), Failure> {
        let (start, end) = (&damage.keys.start, damage.keys.end.as_deref());
        let facts = &self.table.facts;
        match order {
            Order::Ascending if end.is_none_or(|end| *end > *facts.largest) => self.leave(),
            Order::Ascending => self.seek_forward(end.unwrap_or_default())?,
            Order::Descending if **start <= *facts.smallest => self.leave(),
            Order::Descending if self.position.is_some() && self.key() < start.as_slice() => {}
            Order::Descending => self.seek_before(Some(start))?,
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.position = None;
        self.barrier = None;
    }

    /// Makes a damaged part that was met a place to stand at. Without a place, nothing of it is needed.
    fn or_barrier(
        &mut self,
        result: Result<(), Failure>,
        place: impl FnOnce(&Damage) -> Option<Key>,
    ) -> Result<(), Failure> {
        match result {
            Err(Failure::Damaged(damage)) => {
                self.leave();
                self.barrier = place(&damage).map(|at| Barrier { damage, at });
                Ok(())
            }
            other => other,
        }
    }

    fn place(&mut self, index: RowCursor, rows: RowCursor) -> Result<(), Failure> {
        if !rows.is_at_row() {
            return self.checked(Err(crate::rows::Malformed));
        }
        self.position = Some(Position { index, rows });
        Ok(())
    }

    fn index(&mut self) -> Result<RowCursor, Failure> {
        let (table, source) = (&self.table, &mut self.source);
        table.index(self.partition, |kind, place| source.block(table, kind, place))
    }

    fn rows(&mut self, index: &mut RowCursor) -> Result<RowCursor, Failure> {
        let (table, source) = (&self.table, &mut self.source);
        table.data(self.partition, index, |kind, place| source.block(table, kind, place))
    }

    fn checked<T>(&self, result: Result<T, crate::rows::Malformed>) -> Result<T, Failure> {
        let top = self.table.top()?;
        self.table.rows_result(top.get(self.partition).map_or(0, |partition| partition.data_offset), result)
    }
}

impl Source {
    fn block(&mut self, table: &Table, kind: Kind, place: Place) -> Result<Block, Failure> {
        match self {
            Source::Cache => table.shared.cached_block(table.number(), kind, place),
            Source::ReadAhead { offset, bytes } if kind == Kind::Data => {
                let length = place.bytes as usize;
                let start = place.offset.checked_sub(*offset).and_then(|start| usize::try_from(start).ok());
                let found = start.and_then(|start| bytes.get(start..start.checked_add(length)?));
                let block: Arc<[u8]> = match found {
                    Some(found) => found.into(),
                    None => {
                        let rest = usize::try_from(table.facts.file_bytes - place.offset).unwrap_or(usize::MAX);
                        bytes.resize(length.max(READ_AHEAD_BYTES).min(rest), 0);
                        *offset = place.offset;
                        table.shared.read(table.number(), bytes, place.offset)?;
                        bytes[..length].into()
                    }
                };
                table.shared.verify(table.number(), kind, place.offset, block)
            }
            Source::ReadAhead { .. } => table.shared.read_block(table.number(), kind, place),
        }
    }
}
