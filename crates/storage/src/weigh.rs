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
/// So many in all stacks, before the next merge is chosen.
const LOOKS_AT_ONCE_MAX: u64 = 200_000;
/// A merge that took too much space is tried again with this part more of it.
const MORE_ROOM_PART: u64 = 4;
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
    /// A merge took more space than it seemed to need, with so many slices, and so many bytes available.
    over_room: Option<(usize, u64)>,
}

/// What the rows of one slice replace.
struct Look {
    table: u64,
    /// Bytes of each slice below; none if it is too large to look at, or cannot be read.
    replaced: Option<Vec<u64>>,
}

impl Weights {
    /// Notes in `sizes` what is replaced, and what is to be left alone while no more than `available` bytes are. False if there
    /// is more to look at: the next call goes on there.
    pub(crate) fn weigh(
        &mut self,
        version: &Version,
        sizes: &mut [StackSizes],
        available: u64,
        stopped: &dyn Fn() -> bool,
    ) -> Result<bool, Failure> {
        let mut left = LOOKS_AT_ONCE_MAX;
        self.stacks.retain(|start, _| version.stacks.binary_search_by_key(&start, |stack| &stack.start).is_ok());
        for (place, sizes) in sizes.iter_mut().enumerate() {
            if !policy::is_readable(sizes) {
                continue;
            }
            let start = &version.stacks[place].start;
            let weight = self.stacks.entry(start.clone()).or_default();
            weight.renew(version, place, &mut left, stopped)?;
            if weight.is_over_room(sizes.len(), available) {
                sizes.iter_mut().for_each(|size| size.left_alone = true);
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
        Ok(left > 0)
    }

    /// Says that a merge of a stack would take more space than it seemed to need. False if that was known.
    pub(crate) fn distrust(&mut self, version: &Version, stack: usize, available: u64) -> bool {
        let stack = &version.stacks[stack];
        let weight = self.stacks.entry(stack.start.clone()).or_default();
        let was_known = weight.is_over_room(stack.slices.len(), available);
        weight.over_room = Some((stack.slices.len(), available));
        !was_known
    }
}

impl Weight {
    /// Whether a merge has failed for lack of space, and neither the stack nor the space is much different now.
    fn is_over_room(&self, slices: usize, available: u64) -> bool {
        self.over_room.is_some_and(|(then, room)| then == slices && available <= room + room / MORE_ROOM_PART)
    }

    /// Looks at the slices above those that are known already, as far as there are looks left.
    fn renew(
        &mut self,
        version: &Version,
        place: usize,
        left: &mut u64,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        let (slices, end) = (&version.stacks[place].slices, version.end_of(place));
        let tables = slices.iter().rev().map(|slice| slice.table.number());
        let known = self.looks.iter().zip(tables).take_while(|(look, table)| look.table == *table).count();
        let known = if self.end.as_deref() == end { known } else { 0 };
        if known < self.looks.len() {
            self.looks.truncate(known);
            self.over_room = None;
        }
        self.end = end.map(Key::from);
        while let Some(upper) = slices.len().checked_sub(self.looks.len() + 1).filter(|_| *left > 0) {
            let replaced = match replaced_by(version, place, upper, &self.looks, stopped) {
                // A merge that meets it says so; the other stacks do not need it.
                Err(Failure::Retry(_)) => None,
                replaced => replaced?,
            };
            *left = left.saturating_sub(slices[upper].rows.rows.min(LOOKS_MAX));
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
    looks: &[Look],
    stopped: &dyn Fn() -> bool,
) -> Result<Option<Vec<u64>>, Failure> {
    let (start, end) = (&version.stacks[place].start, version.end_of(place));
    let (slice, below) = (&version.stacks[place].slices[upper], &version.stacks[place].slices[upper + 1..]);
    let mut replaced = vec![0; below.len()];
    let bytes_below: u64 = below.iter().map(|slice| slice.rows.bytes()).sum();
    if slice.rows.bytes() * SMALLER_PART > bytes_below {
        return Ok(below.is_empty().then_some(replaced));
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
            // What lies below the first row that is found was replaced by that one, and was counted if somebody has looked.
            for ((slice, replaced), look) in below.iter().zip(replaced.iter_mut().rev()).zip(looks.iter().rev()) {
                if let Some(bytes) = row_bytes(&slice.table, cursor.key(), hash)? {
                    *replaced += bytes * one_of;
                    if look.replaced.is_some() {
                        break;
                    }
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
