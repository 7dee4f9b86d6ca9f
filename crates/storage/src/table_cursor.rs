//! A position in a table that moves in both directions.
//!
//! A reader's cursor takes blocks from the cache; a merge's reads ahead and leaves the cache as it is.

use std::sync::Arc;

use crate::block::{Block, Kind, Place};
use crate::failure::Failure;
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
        Self { table, source: Source::Cache, partition: 0, position: None }
    }

    /// A cursor for merges and other long passes.
    pub(crate) fn reading_ahead(table: Arc<Table>) -> Self {
        let source = Source::ReadAhead { offset: 0, bytes: Vec::new() };
        Self { table, source, partition: 0, position: None }
    }

    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub(crate) fn is_at_row(&self) -> bool {
        self.position.is_some()
    }

    /// # Panics
    /// If the cursor is not at a row.
    pub(crate) fn key(&self) -> &[u8] {
        self.position.as_ref().expect("the cursor is at a row").rows.key()
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
        let top = self.table.top()?;
        self.partition = top.partition_point(|partition| *partition.last_key < *key);
        if self.partition == top.len() {
            self.position = None;
            return Ok(());
        }
        let mut index = self.index()?;
        self.checked(index.seek(key))?;
        if !index.is_at_row() {
            return self.checked(Err(crate::rows::Malformed));
        }
        let mut rows = self.rows(&mut index)?;
        self.checked(rows.seek(key))?;
        self.place(index, rows)
    }

    /// Goes on to the first row at or after `key`, and never back.
    pub(crate) fn seek_forward(&mut self, key: &[u8]) -> Result<(), Failure> {
        match &self.position {
            Some(position) if position.rows.key() >= key => Ok(()),
            _ => self.seek(key),
        }
    }

    /// Goes to the last row before `end`, or to the very last.
    pub(crate) fn seek_before(&mut self, end: Option<&[u8]>) -> Result<(), Failure> {
        match end {
            Some(end) => self.seek(end)?,
            None => {
                self.partition = self.table.top()?.len();
                self.position = None;
            }
        }
        self.previous()
    }

    pub(crate) fn next(&mut self) -> Result<(), Failure> {
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

    /// Goes one row back, also from after the last row. Before the first row the cursor is at no row.
    pub(crate) fn previous(&mut self) -> Result<(), Failure> {
        let mut index = None;
        if let Some(position) = &mut self.position {
            let moved = position.rows.previous();
            if moved == Ok(true) {
                return Ok(());
            }
            self.checked(moved)?;
            if let Some(mut position) = self.position.take()
                && self.checked(position.index.previous())?
            {
                index = Some(position.index);
            }
        }
        let mut index = match index {
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
