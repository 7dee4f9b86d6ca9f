//! How many bytes of a table were replaced by the tables above it. Counts of rows do not say it: where sizes differ, a few
//! small rows may replace most of the bytes of a table with many rows. So keys of the upper tables are looked up below.
//!
//! Keeps: a look costs much less than the merge that it may lead to. Never: reads a large value; the index tells its size.

use std::collections::BTreeMap;

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

/// What was found about stacks that have not changed since, by their first keys.
#[derive(Default)]
pub(crate) struct Weights {
    stacks: BTreeMap<Key, Weight>,
}

struct Weight {
    end: Option<Key>,
    tables: Vec<u64>,
    /// Bytes of each slice that are replaced.
    replaced: Vec<u64>,
}

impl Weights {
    /// Notes in `sizes` what is replaced.
    pub(crate) fn weigh(
        &mut self,
        version: &Version,
        sizes: &mut [StackSizes],
        stopped: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        let mut known = std::mem::take(&mut self.stacks);
        for (place, sizes) in sizes.iter_mut().enumerate() {
            if !policy::is_readable(sizes) {
                continue;
            }
            let stack = &version.stacks[place];
            let end = version.end_of(place);
            let tables: Vec<u64> = stack.slices.iter().map(|slice| slice.table.number()).collect();
            let weight = match known.remove(&stack.start) {
                Some(weight) if weight.end.as_deref() == end && weight.tables == tables => weight,
                _ => Weight { end: end.map(Key::from), tables, replaced: replaced(version, place, stopped)? },
            };
            for (size, replaced) in sizes.iter_mut().zip(&weight.replaced) {
                size.replaced_bytes = *replaced;
            }
            self.stacks.insert(stack.start.clone(), weight);
        }
        Ok(())
    }
}

/// About how many bytes of each slice of a stack are replaced by rows of those above it.
fn replaced(version: &Version, place: usize, stopped: &dyn Fn() -> bool) -> Result<Vec<u64>, Failure> {
    let slices = &version.stacks[place].slices;
    let (start, end) = (&version.stacks[place].start, version.end_of(place));
    let mut replaced = vec![0; slices.len()];
    for (upper, slice) in slices.iter().enumerate() {
        let below: u64 = slices[upper + 1..].iter().map(|slice| slice.rows.bytes()).sum();
        if slice.rows.bytes() * SMALLER_PART > below {
            continue;
        }
        let one_of = (slice.rows.rows / LOOKS_MAX).max(1);
        let mut cursor = TableCursor::reading_ahead(slice.table.clone());
        cursor.seek(start)?;
        while !cursor.is_at_end() && end.is_none_or(|end| cursor.key() < end) {
            let hash = KeyHash::of(cursor.key());
            if hash.is_one_of(one_of) {
                if stopped() {
                    return Err(Failure::Stopped);
                }
                // A row further down is replaced by the one that is found here.
                for (lower, slice) in slices.iter().enumerate().skip(upper + 1) {
                    if let Some(bytes) = row_bytes(&slice.table, cursor.key(), hash)? {
                        replaced[lower] += bytes * one_of;
                        break;
                    }
                }
            }
            cursor.next()?;
        }
    }
    for (replaced, slice) in replaced.iter_mut().zip(slices) {
        *replaced = slice.rows.bytes().min(*replaced);
    }
    Ok(replaced)
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
