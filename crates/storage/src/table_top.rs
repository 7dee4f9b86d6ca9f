//! The top index of a table: read from its file, and checked.
//!
//! Never: trusts a place that it has not compared with the length of the file.

use kv::{Key, Reader};
use xxhash_rust::xxh3::xxh3_64;

use crate::block::{Block, FRAME_BYTES, Kind, Place};
use crate::failure::Failure;
use crate::rows::RowCursor;
use crate::table::Table;
use crate::table_facts::{RowCounts, TableFacts};
use crate::table_files::damage;
use crate::table_writer::{TAIL_BYTES, TAIL_MAGIC};

/// One entry of the top index.
pub(crate) struct Partition {
    pub(crate) last_key: Key,
    /// Where its data starts; the data of a partition is contiguous and ends before its filter.
    pub(crate) data_offset: u64,
    pub(crate) index: Place,
    pub(crate) filter: Place,
    pub(crate) rows: RowCounts,
}

impl Table {
    /// Reads tail, facts and top index, and checks all that later reads rely on.
    pub(crate) fn read_top(&self) -> Result<Vec<Partition>, Failure> {
        let number = self.number();
        let file_bytes = self.facts.file_bytes;
        let wrong = |offset, reason| Failure::from(damage(number, offset, reason));
        let tail_offset = file_bytes.checked_sub(TAIL_BYTES as u64).ok_or_else(|| wrong(0, "a file without a tail"))?;
        let mut tail = [0; TAIL_BYTES];
        self.shared.read(number, &mut tail, tail_offset)?;
        let (store, found_number, facts_place) =
            decode_tail(&tail).ok_or_else(|| wrong(tail_offset, "the tail of the table does not verify"))?;
        if (store, found_number) != (self.shared.store, number) {
            return Err(wrong(tail_offset, "the file is a table of another store or number"));
        }
        if !is_inside(facts_place, tail_offset) {
            return Err(wrong(tail_offset, "the tail of the table leads nowhere"));
        }
        let block = self.shared.read_block(number, Kind::Facts, facts_place)?;
        let (top_place, facts) = decode_facts(block.content(), number, file_bytes)
            .ok_or_else(|| wrong(facts_place.offset, "facts that cannot be decoded"))?;
        if facts != self.facts {
            return Err(wrong(facts_place.offset, "the manifest says something else about this table"));
        }
        if !is_inside(top_place, facts_place.offset) {
            return Err(wrong(facts_place.offset, "the facts of the table lead nowhere"));
        }
        let block = self.shared.read_block(number, Kind::Top, top_place)?;
        let top = decode_top(block).ok_or_else(|| wrong(top_place.offset, "a top index that cannot be decoded"))?;
        match self.are_in_order(&top, top_place.offset) {
            true => Ok(top),
            false => Err(wrong(top_place.offset, "a top index that is not in order")),
        }
    }

    /// Whether partitions follow each other without gaps up to `end`, and have the table's keys.
    pub(crate) fn are_in_order(&self, top: &[Partition], end: u64) -> bool {
        let mut offset = 0;
        let follows = |partition: &Partition| {
            let follows = partition.data_offset == offset
                && partition.filter.offset > partition.data_offset
                && is_inside(partition.filter, partition.index.offset)
                && is_inside(partition.index, end);
            offset = partition.index.end().unwrap_or(u64::MAX);
            follows
        };
        let sorted = top.is_sorted_by(|left, right| left.last_key < right.last_key);
        top.iter().all(follows) && sorted && top.last().is_some_and(|last| last.last_key == self.facts.largest)
    }
}

/// Whether a block may lie there, before `end`.
fn is_inside(place: Place, end: u64) -> bool {
    place.bytes as usize >= FRAME_BYTES && place.end().is_some_and(|found| found <= end)
}

fn decode_tail(tail: &[u8; TAIL_BYTES]) -> Option<(u64, u64, Place)> {
    let (checked, checksum) = tail.split_last_chunk::<8>()?;
    if xxh3_64(checked) != u64::from_le_bytes(*checksum) {
        return None;
    }
    let mut reader = Reader::new(checked.strip_prefix(&TAIL_MAGIC)?);
    let (store, number) = (reader.u64().ok()?, reader.u64().ok()?);
    let place = Place { offset: reader.u64().ok()?, bytes: reader.u32().ok()? };
    if reader.u32().ok()? != 0 {
        return None;
    }
    reader.end().ok()?;
    Some((store, number, place))
}

fn decode_facts(content: &[u8], number: u64, file_bytes: u64) -> Option<(Place, TableFacts)> {
    let mut reader = Reader::new(content);
    let top = Place { offset: reader.u64().ok()?, bytes: reader.u32().ok()? };
    let rows = RowCounts::read(&mut reader).ok()?;
    let (smallest, largest) = (reader.bytes().ok()?.into(), reader.bytes().ok()?.into());
    reader.end().ok()?;
    Some((top, TableFacts { number, file_bytes, rows, smallest, largest }))
}

pub(crate) fn decode_place(bytes: &[u8]) -> Option<Place> {
    let mut reader = Reader::new(bytes);
    let place = read_place(&mut reader)?;
    reader.end().ok()?;
    Some(place)
}

fn read_place(reader: &mut Reader<'_>) -> Option<Place> {
    Some(Place { offset: reader.varint().ok()?, bytes: u32::try_from(reader.varint().ok()?).ok()? })
}

fn decode_top(block: Block) -> Option<Vec<Partition>> {
    let mut partitions = Vec::new();
    let mut cursor = RowCursor::new(block).ok()?;
    cursor.first().ok()?;
    while cursor.is_at_row() {
        let mut reader = Reader::new(cursor.value()?);
        partitions.push(Partition {
            last_key: cursor.key().into(),
            data_offset: reader.varint().ok()?,
            index: read_place(&mut reader)?,
            filter: read_place(&mut reader)?,
            rows: RowCounts::read(&mut reader).ok()?,
        });
        reader.end().ok()?;
        cursor.next().ok()?;
    }
    Some(partitions)
}
