//! How a version becomes the next one: by a flush, by a cut, by a merge. Files are not touched.
//!
//! Keeps: S2 (every edit makes a new version). A border between two stacks moves only where all their tables were merged
//! to the bottom together: any other table may hold rows beyond its stack that were merged away there, and a moved
//! border would bring them back.

use std::ops::Range;
use std::sync::Arc;

use kv::Key;

use crate::table::Table;
use crate::table_facts::RowCounts;
use crate::version::{Slice, Stack, Version};

/// What a merge has made of some neighbouring stacks.
pub(crate) struct Merged {
    /// The stacks it has read.
    pub(crate) stacks: Range<usize>,
    /// How many slices each of them had.
    pub(crate) depths: Vec<usize>,
    pub(crate) made: Made,
}

pub(crate) enum Made {
    /// The stacks were merged whole. The tables follow each other; each is the bottom of a new stack that starts at
    /// this key.
    Bottoms(Vec<(Key, Arc<Table>)>),
    /// In each stack a window of slices was replaced by its part of one table, if it has rows there.
    Middle { windows: Vec<Range<usize>>, table: Option<Arc<Table>>, rows: Vec<RowCounts> },
}

impl Version {
    /// Adds a flushed table on top, with its rows in each stack.
    pub(crate) fn with_flush(&self, table: &Arc<Table>, rows: &[RowCounts]) -> Self {
        assert_eq!(rows.len(), self.stacks.len(), "rows are counted for every stack");
        let add = |(stack, rows): (&Stack, &RowCounts)| {
            let mut slices = Vec::with_capacity(stack.slices.len() + 1);
            if rows.rows > 0 {
                slices.push(Slice { table: table.clone(), rows: *rows });
            }
            slices.extend_from_slice(&stack.slices);
            Stack { start: stack.start.clone(), slices }
        };
        Self { stacks: self.stacks.iter().zip(rows).map(add).collect() }
    }

    /// Cuts a stack in two at `key`, which lies inside of it.
    pub(crate) fn with_cut(&self, stack: usize, key: &Key) -> Self {
        let old = &self.stacks[stack];
        let end = self.end_of(stack);
        assert!(old.start < *key && end.is_none_or(|end| **key < *end), "a cut lies inside its stack");
        let mut parts =
            [Stack { start: old.start.clone(), slices: Vec::new() }, Stack { start: key.clone(), slices: Vec::new() }];
        for slice in &old.slices {
            let bytes = [bytes_between(slice, &old.start, Some(key)), bytes_between(slice, key, end)];
            for (part, share) in parts.iter_mut().zip(bytes) {
                if share > 0 {
                    let rows = slice.rows.share(share, bytes[0] + bytes[1]);
                    part.slices.push(Slice { table: slice.table.clone(), rows });
                }
            }
        }
        let mut stacks = self.stacks.clone();
        stacks.splice(stack..=stack, parts);
        Self { stacks }
    }

    /// Puts a merge in place. Flushes may have come on top of its stacks since it began.
    pub(crate) fn with_merge(&self, merged: &Merged) -> Self {
        let old = &self.stacks[merged.stacks.clone()];
        let added = |place: usize| old[place].slices.len() - merged.depths[place];
        let new = match &merged.made {
            Made::Middle { windows, table, rows } => {
                let replace = |(place, stack): (usize, &Stack)| {
                    let window = windows[place].start + added(place)..windows[place].end + added(place);
                    let part = table.iter().filter(|_| rows[place].rows > 0);
                    let part = part.map(|table| Slice { table: table.clone(), rows: rows[place] });
                    let mut slices = stack.slices.clone();
                    slices.splice(window, part);
                    Stack { start: stack.start.clone(), slices }
                };
                old.iter().enumerate().map(replace).collect()
            }
            Made::Bottoms(tables) => {
                // All of these are flushes that no stack here has merged yet. Their numbers rise.
                let mut flushes: Vec<Slice> = Vec::new();
                for (place, stack) in old.iter().enumerate() {
                    for slice in &stack.slices[..added(place)] {
                        match flushes.iter_mut().find(|known| known.table.number() == slice.table.number()) {
                            Some(known) => known.rows.add(&slice.rows),
                            None => flushes.push(slice.clone()),
                        }
                    }
                }
                flushes.sort_by_key(|slice| std::cmp::Reverse(slice.table.number()));
                let end = merged.stacks.end - 1;
                bottom_stacks(&old[0].start, self.end_of(end), tables, &flushes)
            }
        };
        let mut stacks = self.stacks.clone();
        stacks.splice(merged.stacks.clone(), new);
        let mut version = Self { stacks };
        version.drop_empty_stacks();
        version
    }

    /// Drops each empty stack whose range the stack before can take over: none of its tables reaches there.
    fn drop_empty_stacks(&mut self) {
        for place in (1..self.stacks.len()).rev() {
            let (stack, end) = (&self.stacks[place], self.end_of(place));
            let reaches = |slice: &Slice| slice.table.overlaps(&stack.start, end);
            if stack.slices.is_empty() && !self.stacks[place - 1].slices.iter().any(reaches) {
                self.stacks.remove(place);
            }
        }
    }
}

/// New stacks from `start` to `end` over these bottoms, each with its part of the flushes on top.
fn bottom_stacks(start: &Key, end: Option<&[u8]>, bottoms: &[(Key, Arc<Table>)], flushes: &[Slice]) -> Vec<Stack> {
    let mut stacks = Vec::new();
    for place in 0..bottoms.len().max(1) {
        // The first reaches down to the old border, whatever its first key is.
        let stack_start = if place == 0 { start } else { &bottoms[place].0 };
        let stack_end = bottoms.get(place + 1).map_or(end, |(next, _)| Some(&**next));
        let mut slices = Vec::new();
        for flush in flushes {
            let part = bytes_between(flush, stack_start, stack_end);
            if part > 0 {
                let whole = bytes_between(flush, start, end);
                let rows = if bottoms.len() <= 1 { flush.rows } else { flush.rows.share(part, whole) };
                slices.push(Slice { table: flush.table.clone(), rows });
            }
        }
        if let Some((_, table)) = bottoms.get(place) {
            slices.push(Slice { table: table.clone(), rows: table.facts.rows });
        }
        stacks.push(Stack { start: stack_start.clone(), slices });
    }
    stacks
}

/// About how many bytes of a slice's table lie from `start` to before `end`; 0 only if there are none. A table that
/// cannot be read is divided evenly: its place in the stacks must not depend on that.
fn bytes_between(slice: &Slice, start: &[u8], end: Option<&[u8]>) -> u64 {
    let unknown = |_| u64::from(slice.table.overlaps(start, end)) * slice.table.facts.rows.bytes().max(1);
    slice.table.bytes_between(start, end).unwrap_or_else(unknown)
}
