//! How many bytes of a table were replaced by the tables above it. Counts of rows do not say it: where sizes differ, a few
//! small rows may replace most of the bytes of a table with many rows. So keys of the upper tables are looked up below.
//!
//! Keeps: a look costs much less than the merge that it may lead to. Never: reads a large value; the index tells its size.

use std::collections::BTreeMap;
use std::ops::Range;

use kv::Key;

use crate::bloom::KeyHash;
use crate::failure::Failure;
use crate::policy::{self, StackSizes};
use crate::table::Table;
use crate::table_cursor::TableCursor;
use crate::table_facts::RowCounts;
use crate::table_top::decode_place;
use crate::table_writer::BLOCK_BYTES_TARGET;
use crate::version::Version;

/// The keys of a table are looked up if it has at most this part of the bytes below it.
const SMALLER_PART: u64 = 4;
/// About so many of them, evenly spread.
const LOOKS_MAX: u64 = 2_000;
/// A block of this size holds one large row, and before it at most as much as a usual block.
const LARGE_BLOCK_BYTES: usize = 2 * BLOCK_BYTES_TARGET;

/// What was found about stacks, by their first keys.
#[derive(Default)]
pub(crate) struct Weights {
    stacks: BTreeMap<Key, Weight>,
}

/// What was found about a stack. Places are counted from the bottom: what a slice replaces does not depend on those above.
#[derive(Default)]
struct Weight {
    end: Option<Key>,
    looks: Vec<Look>,
    /// A merge has found that less is replaced than it seemed, when the stack had so many slices.
    distrusted_at: Option<usize>,
}

/// What the rows of one slice replace.
struct Look {
    table: u64,
    /// Bytes of each slice below; none if there were too many to look at.
    replaced: Option<Vec<u64>>,
}

impl Weights {
    /// Notes in `sizes` what is replaced.
    pub(crate) fn weigh(
        &mut self,
        version: &Version,
        sizes: &mut [StackSizes],
        stopped: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        self.stacks.retain(|start, _| version.stacks.binary_search_by_key(&start, |stack| &stack.start).is_ok());
        for (place, sizes) in sizes.iter_mut().enumerate() {
            if !policy::is_readable(sizes) {
                continue;
            }
            let start = &version.stacks[place].start;
            let weight = self.stacks.entry(start.clone()).or_default();
            weight.renew(version, place, stopped)?;
            if weight.distrusted_at == Some(sizes.len()) {
                // Whatever it frees, it is not worth another attempt before something is added.
                sizes.iter_mut().for_each(|size| size.looked_up = true);
                continue;
            }
            for (upper, look) in weight.looks.iter().enumerate() {
                let Some(replaced) = &look.replaced else { continue };
                for (size, bytes) in sizes.iter_mut().rev().zip(replaced) {
                    size.replaced_bytes = size.rows.bytes().min(size.replaced_bytes + bytes);
                }
                let upper = sizes.len() - 1 - upper;
                sizes[upper].looked_up = true;
            }
        }
        Ok(())
    }

    /// Says that a merge of these stacks would take more space than it seemed. False if that was known.
    pub(crate) fn distrust(&mut self, version: &Version, stacks: &Range<usize>) -> bool {
        let mut is_new = false;
        for stack in &version.stacks[stacks.clone()] {
            let weight = self.stacks.entry(stack.start.clone()).or_default();
            is_new |= weight.distrusted_at.replace(stack.slices.len()) != Some(stack.slices.len());
        }
        is_new
    }
}

impl Weight {
    /// Looks at the slices above those that are known already.
    fn renew(&mut self, version: &Version, place: usize, stopped: &dyn Fn() -> bool) -> Result<(), Failure> {
        let (slices, end) = (&version.stacks[place].slices, version.end_of(place));
        let tables = slices.iter().rev().map(|slice| slice.table.number());
        let known = self.looks.iter().zip(tables).take_while(|(look, table)| look.table == *table).count();
        let known = if self.end.as_deref() == end { known } else { 0 };
        if known < self.looks.len() {
            self.looks.truncate(known);
            self.distrusted_at = None;
        }
        self.end = end.map(Key::from);
        while let Some(upper) = slices.len().checked_sub(self.looks.len() + 1) {
            let replaced = replaced_by(version, place, upper, stopped)?;
            self.looks.push(Look { table: slices[upper].table.number(), replaced });
        }
        Ok(())
    }
}

/// About how many bytes of each slice below the rows of one slice replace, the bottom first.
fn replaced_by(
    version: &Version,
    place: usize,
    upper: usize,
    stopped: &dyn Fn() -> bool,
) -> Result<Option<Vec<u64>>, Failure> {
    let (start, end) = (&version.stacks[place].start, version.end_of(place));
    let (slice, below) = (&version.stacks[place].slices[upper], &version.stacks[place].slices[upper + 1..]);
    let mut replaced = vec![0; below.len()];
    let bytes_below: u64 = below.iter().map(|slice| slice.rows.bytes()).sum();
    if slice.rows.bytes() * SMALLER_PART > bytes_below {
        return Ok((below.is_empty()).then_some(replaced));
    }
    let one_of = (slice.rows.rows / LOOKS_MAX).max(1);
    let mut cursor = TableCursor::reading_ahead(slice.table.clone());
    cursor.seek(start)?;
    while !cursor.is_at_end() && end.is_none_or(|end| cursor.key() < end) {
        if let Some(part) = cursor.barrier() {
            return Err(Failure::Damaged(part.damage.clone()));
        }
        let hash = KeyHash::of(cursor.key());
        if hash.is_one_of(one_of) {
            if stopped() {
                return Err(Failure::Stopped);
            }
            // What lies below the first row that is found was replaced by that one.
            for (slice, replaced) in below.iter().zip(replaced.iter_mut().rev()) {
                if let Some(bytes) = row_bytes(&slice.table, cursor.key(), hash)? {
                    *replaced += bytes * one_of;
                    break;
                }
            }
        }
        cursor.next()?;
    }
    Ok(Some(replaced))
}

/// The size of the row of a key, as counts have it.
fn row_bytes(table: &Table, key: &[u8], hash: KeyHash) -> Result<Option<u64>, Failure> {
    let Some((partition, mut index)) = table.block_of(key, hash)? else { return Ok(None) };
    if let Some(place) = index.value().and_then(decode_place)
        && place.bytes as usize >= LARGE_BLOCK_BYTES
    {
        // What lies before the large row in its block is not worth reading all of it.
        return Ok((index.key() == key).then(|| u64::from(place.bytes)));
    }
    let rows = table.data(partition, &mut index, |kind, place| table.shared.read_block(table.number(), kind, place))?;
    let row = table.row_at(partition, rows, key)?;
    Ok(row.map(|row| {
        let mut counts = RowCounts::default();
        counts.add_row(key, row.value());
        counts.bytes()
    }))
}
