//! One merge: reads a piece of the store and writes the tables that replace it. The version is changed by the caller.
//!
//! Keeps: a tombstone is dropped only where the whole stack is merged, so nothing older can appear. A merge that does
//! not finish leaves no file. It fails at damage in its range, and goes past none. Never: reads or writes much more than the
//! piece's size; a stack that is larger is cut.

use std::collections::BTreeMap;
use std::sync::Arc;

use kv::{Key, Order};

use crate::failure::Failure;
use crate::merge_cursor::MergeCursor;
use crate::policy::Piece;
use crate::table::Table;
use crate::table_cursor::TableCursor;
use crate::table_facts::RowCounts;
use crate::table_files::TableFiles;
use crate::table_writer::TableWriter;
use crate::version::{Stack, Version};
use crate::version_edit::{Made, Merged};

/// Rows between two questions whether to stop.
const ROWS_BETWEEN_STOPS: u32 = 256;

/// What a merge may use.
pub(crate) struct Merging<'merge> {
    pub(crate) shared: &'merge Arc<TableFiles>,
    pub(crate) next_number: &'merge dyn Fn() -> u64,
    pub(crate) stopped: &'merge dyn Fn() -> bool,
    pub(crate) table_bytes_target: u64,
    pub(crate) room: Option<u64>,
}

/// Where the stack of a piece must be cut, so that the piece does not read much more than `bytes`.
pub(crate) fn cut_of(version: &Version, piece: &Piece, bytes: u64) -> Result<Option<Key>, Failure> {
    if piece.stacks.len() > 1 || piece.bytes <= bytes + bytes / 2 {
        return Ok(None);
    }
    let place = piece.stacks.start;
    let (start, end) = (&version.stacks[place].start, version.end_of(place));
    let mut partitions: Vec<(&Key, u64)> = Vec::new();
    for slice in &version.stacks[place].slices[piece.windows[0].clone()] {
        let inside = |key: &Key| *key >= *start && end.is_none_or(|end| **key < *end);
        let top = slice.table.top()?.iter();
        partitions.extend(top.map(|part| (&part.last_key, part.rows.bytes())).filter(|(key, _)| inside(key)));
    }
    partitions.sort();
    let mut sum = 0;
    let enough = partitions.into_iter().find(|(_, size)| {
        sum += size;
        sum >= bytes
    });
    Ok(enough.and_then(|(last_key, _)| {
        // The smallest key after it.
        let mut cut = last_key.clone();
        cut.push(0);
        end.is_none_or(|end| *cut < *end).then_some(cut)
    }))
}

/// Merges a piece of `version`.
pub(crate) fn merge(version: &Version, piece: &Piece, merging: &Merging<'_>) -> Result<Merged, Failure> {
    let stacks = &version.stacks[piece.stacks.clone()];
    let mut output = Output::new(stacks, piece, merging);
    let mut cursors = BTreeMap::new();
    for (place, (stack, window)) in stacks.iter().zip(&piece.windows).enumerate() {
        let end = version.end_of(piece.stacks.start + place);
        let mut inputs = Vec::with_capacity(window.len());
        for slice in &stack.slices[window.clone()] {
            let known = cursors.remove(&slice.table.number());
            let mut cursor = known.unwrap_or_else(|| TableCursor::reading_ahead(slice.table.clone()));
            cursor.seek_forward(&stack.start)?;
            inputs.push(cursor);
        }
        let mut rows = MergeCursor::new(inputs, Order::Ascending);
        output.begin_stack(place);
        let mut until_stop = 0;
        loop {
            if let Some(part) = rows.barrier().filter(|part| end.is_none_or(|end| *part.at < *end)) {
                return Err(Failure::Damaged(part.damage.clone()));
            }
            let Some(key) = rows.key().filter(|key| end.is_none_or(|end| *key < end)) else { break };
            if until_stop == 0 {
                if (merging.stopped)() {
                    return Err(Failure::Stopped);
                }
                until_stop = ROWS_BETWEEN_STOPS;
            }
            until_stop -= 1;
            output.add(key, rows.value())?;
            rows.advance()?;
        }
        // Neighbouring stacks mostly share their tables; the next one reads on where this one ends.
        cursors.extend(rows.into_tables().into_iter().map(|cursor| (cursor.table().number(), cursor)));
    }
    let made = output.finish()?;
    Ok(Merged { stacks: piece.stacks.clone(), depths: stacks.iter().map(|stack| stack.slices.len()).collect(), made })
}

/// The tables being written.
struct Output<'merge> {
    merging: &'merge Merging<'merge>,
    piece: &'merge Piece,
    start: Key,
    /// A bottom is finished at this size.
    cut_bytes: u64,
    writer: Option<(Key, TableWriter)>,
    finished: Vec<(Key, Arc<Table>)>,
    finished_bytes: u64,
    /// The rows written to each stack, where borders stay.
    rows: Vec<RowCounts>,
    stack: usize,
}

impl<'merge> Output<'merge> {
    fn new(stacks: &[Stack], piece: &'merge Piece, merging: &'merge Merging<'merge>) -> Self {
        // Bottoms of even size, rather than full ones and a remainder.
        let target = merging.table_bytes_target.max(1);
        let count = (piece.bytes + target / 2) / target;
        Self {
            merging,
            piece,
            start: stacks[0].start.clone(),
            cut_bytes: if piece.to_bottom { (piece.bytes / count.max(1)).max(target / 2) } else { u64::MAX },
            writer: None,
            finished: Vec::new(),
            finished_bytes: 0,
            rows: vec![RowCounts::default(); stacks.len()],
            stack: 0,
        }
    }

    fn begin_stack(&mut self, place: usize) {
        self.stack = place;
    }

    fn add(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), Failure> {
        if value.is_none() && self.piece.to_bottom {
            return Ok(());
        }
        if self.writer.as_ref().is_some_and(|(_, writer)| writer.bytes() >= self.cut_bytes) {
            self.finish_table()?;
        }
        let (_, writer) = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let shared = self.merging.shared;
                let writer = TableWriter::create(&shared.files, shared.store, (self.merging.next_number)())?;
                let first = self.finished.is_empty();
                self.writer.insert((if first { self.start.clone() } else { key.into() }, writer))
            }
        };
        writer.add(key, value)?;
        if self.merging.room.is_some_and(|room| self.finished_bytes + writer.bytes() > room) {
            return Err(Failure::OverRoom);
        }
        self.rows[self.stack].add_row(key, value);
        Ok(())
    }

    fn finish_table(&mut self) -> Result<(), Failure> {
        if let Some((start, writer)) = self.writer.take() {
            let table = Table::new(writer.finish()?, self.merging.shared.clone());
            self.finished_bytes += table.facts.file_bytes;
            self.finished.push((start, table));
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Made, Failure> {
        self.finish_table()?;
        Ok(match self.piece.to_bottom {
            true => Made::Bottoms(self.finished),
            false => Made::Middle {
                windows: self.piece.windows.clone(),
                table: self.finished.pop().map(|(_, table)| table),
                rows: self.rows,
            },
        })
    }
}
