//! A table that can be read: an immutable, sorted file of rows; `docs/formats/tables.md`.
//!
//! Its top index stays in memory from the first use on; everything else comes through the cache. The file goes with the
//! last user, once no manifest names the table.
//!
//! Only data blocks hold what is nowhere else: a damaged filter is left out, a damaged index is made again (`rebuild`).
//!
//! Keeps: S2 (a table never changes). Never: trusts a place that it has not compared with the length of the file.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use kv::KeyRange;

use crate::block::{Block, FRAME_BYTES, Kind, Place};
use crate::bloom::{self, KeyHash};
use crate::failure::{Damage, Effect, Failure};
use crate::parts::Parts;
use crate::rows::RowCursor;
use crate::table_facts::TableFacts;
use crate::table_files::{TableFiles, damage};
use crate::table_top::{Partition, decode_place};

pub(crate) struct Table {
    pub(crate) facts: TableFacts,
    pub(crate) shared: Arc<TableFiles>,
    top: OnceLock<Vec<Partition>>,
    /// What cannot be read of it.
    pub(crate) parts: Parts,
    /// Whether the manifest names the table, or may name it.
    named: AtomicBool,
    /// Whether its file is taken from those who still read it.
    ended: AtomicBool,
}

impl Table {
    /// The table with these facts, which come from its writer or from the manifest. Its file is read when needed.
    /// Until the table is [`named`](Self::set_named), its file goes with it.
    pub(crate) fn new(facts: TableFacts, shared: Arc<TableFiles>) -> Arc<Self> {
        shared.count_new(facts.file_bytes);
        let (named, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Self { facts, shared, top: OnceLock::new(), parts: Parts::default(), named, ended })
    }

    pub(crate) fn number(&self) -> u64 {
        self.facts.number
    }

    /// Says whether the manifest names the table. If not, its file goes with its last user.
    pub(crate) fn set_named(&self, named: bool) {
        self.named.store(named, Ordering::Release);
    }

    /// Removes the file of a table that no manifest names, although somebody may still read it.
    pub(crate) fn end(&self) {
        if !self.named.load(Ordering::Acquire) && !self.ended.swap(true, Ordering::AcqRel) {
            self.shared.add_unneeded(self.number(), self.facts.file_bytes);
        }
    }

    fn refuse_if_ended(&self) -> Result<(), Failure> {
        match self.ended.load(Ordering::Acquire) {
            true => Err(Failure::Retry(kv::KvError::ViewEnded { bytes: self.facts.file_bytes })),
            false => Ok(()),
        }
    }

    /// Whether a key from `start` to before `end` can be in the table.
    pub(crate) fn overlaps(&self, start: &[u8], end: Option<&[u8]>) -> bool {
        *self.facts.largest >= *start && end.is_none_or(|end| *self.facts.smallest < *end)
    }

    /// The newest version of a key in this table: a value, a tombstone (none), or no row.
    pub(crate) fn get(&self, key: &[u8], hash: KeyHash) -> Result<Option<Option<kv::Bytes>>, Failure> {
        let Some((partition, mut index)) = self.block_of(key, hash)? else { return Ok(None) };
        let rows = self.data(partition, &mut index, |kind, block| self.cached_block(kind, block))?;
        let rows = self.row_at(partition, rows, key)?;
        Ok(rows.map(|rows| rows.value().map(kv::copied)))
    }

    /// The partition and the index at the data block that may hold a key.
    pub(crate) fn block_of(&self, key: &[u8], hash: KeyHash) -> Result<Option<(usize, RowCursor)>, Failure> {
        if key < &*self.facts.smallest || key > &*self.facts.largest {
            return Ok(None);
        }
        self.refuse_if_ended()?;
        if let Some(part) = self.parts.set_apart_at(key) {
            // Before the filter, which might say that the key is not here.
            return Err(part.into());
        }
        let top = self.top()?;
        let place = top.partition_point(|partition| *partition.last_key < *key);
        let Some(partition) = top.get(place) else { return Ok(None) };
        match self.cached_block(Kind::Filter, partition.filter) {
            Ok(filter) if !bloom::may_contain(filter.content(), hash) => return Ok(None),
            Ok(_) => {}
            Err(Failure::Damaged(damage)) => self.notice_healed(*damage, place),
            Err(other) => return Err(other),
        }
        let mut index = self.index(place, |kind, block| self.cached_block(kind, block))?;
        self.rows_result(partition.index.offset, index.seek(key))?;
        Ok(index.is_at_row().then_some((place, index)))
    }

    /// The rows of a data block, at the row of a key if it is there.
    pub(crate) fn row_at(
        &self,
        partition: usize,
        mut rows: RowCursor,
        key: &[u8],
    ) -> Result<Option<RowCursor>, Failure> {
        let sought = rows.seek(key);
        self.rows_result(self.top()?[partition].data_offset, sought)?;
        Ok((rows.is_at_row() && rows.key() == key).then_some(rows))
    }

    fn cached_block(&self, kind: Kind, place: Place) -> Result<Block, Failure> {
        self.shared.cached_block(self.number(), kind, place)
    }

    /// The index of a partition, with the block from `read`.
    pub(crate) fn index(
        &self,
        partition: usize,
        read: impl FnOnce(Kind, Place) -> Result<Block, Failure>,
    ) -> Result<RowCursor, Failure> {
        self.refuse_if_ended()?;
        let top = self.top()?;
        let place = top[partition].index;
        if let Some(part) = self.parts.set_apart_covering(|| self.partition_range(partition, top)) {
            return Err(part.into());
        }
        let index = read(Kind::Index, place).and_then(|block| self.rows_result(place.offset, RowCursor::new(block)));
        match index {
            Err(Failure::Damaged(damage)) => match self.rebuild_index(partition) {
                Some(index) => {
                    self.notice_healed(*damage, partition);
                    Ok(index)
                }
                None => Err(self.noticed(*damage, self.partition_keys(partition)?)),
            },
            other => other,
        }
    }

    /// The data block at the index's row, with the block from `read`. After a failure the index is of no use.
    pub(crate) fn data(
        &self,
        partition: usize,
        index: &mut RowCursor,
        read: impl FnOnce(Kind, Place) -> Result<Block, Failure>,
    ) -> Result<RowCursor, Failure> {
        self.refuse_if_ended()?;
        if let Some(part) = self.parts.set_apart_at(index.key()) {
            return Err(part.into());
        }
        let top = self.top()?;
        let bounds = &top[partition];
        let place = index.value().and_then(decode_place).filter(|place| {
            place.bytes as usize >= FRAME_BYTES
                && place.offset >= bounds.data_offset
                && place.end().is_some_and(|end| end <= bounds.filter.offset)
        });
        let place =
            place.ok_or_else(|| damage(self.number(), bounds.index.offset, "an index entry that leads nowhere"));
        let rows = place.map_err(Failure::from).and_then(|place| {
            let block = read(Kind::Data, place)?;
            self.rows_result(place.offset, RowCursor::new(block))
        });
        rows.map_err(|failure| match failure {
            Failure::Damaged(found) => {
                let end = after(index.key());
                let start = match index.previous() {
                    Ok(true) => after(index.key()),
                    _ => self.partition_start(partition, top),
                };
                self.noticed(*found, KeyRange { start, end: Some(end) })
            }
            other => other,
        })
    }

    /// The keys that the table may hold.
    pub(crate) fn keys(&self) -> KeyRange {
        KeyRange { start: self.facts.smallest.to_vec(), end: Some(after(&self.facts.largest)) }
    }

    fn partition_start(&self, partition: usize, top: &[Partition]) -> Vec<u8> {
        match partition.checked_sub(1) {
            Some(before) => after(&top[before].last_key),
            None => self.facts.smallest.to_vec(),
        }
    }

    /// The keys that a partition may hold.
    pub(crate) fn partition_keys(&self, partition: usize) -> Result<KeyRange, Failure> {
        Ok(self.partition_range(partition, self.top()?))
    }

    fn partition_range(&self, partition: usize, top: &[Partition]) -> KeyRange {
        KeyRange { start: self.partition_start(partition, top), end: Some(after(&top[partition].last_key)) }
    }

    /// Notes that these keys cannot be read.
    fn noticed(&self, damage: Damage, keys: KeyRange) -> Failure {
        if let Some(part) = self.parts.set_apart_covering(|| keys.clone()) {
            return part.into();
        }
        let damage = Damage { keys, effect: Effect::Lost, ..damage };
        self.parts.add(damage.clone());
        self.shared.notice(&damage);
        damage.into()
    }

    /// Notes damage in a partition that costs nothing.
    pub(crate) fn notice_healed(&self, damage: Damage, partition: usize) {
        let keys = self.partition_keys(partition).unwrap_or_else(|_| self.keys());
        self.shared.notice(&Damage { keys, effect: Effect::Healed, ..damage });
    }

    /// Rows that no writer has written, in the block at `offset`. No block that verifies has them, so nothing is known
    /// about the table.
    pub(crate) fn rows_result<T>(&self, offset: u64, result: Result<T, crate::rows::Malformed>) -> Result<T, Failure> {
        result.map_err(|_| {
            let damage = damage(self.number(), offset, "rows that cannot be decoded");
            Damage { keys: self.keys(), ..damage }.into()
        })
    }

    /// About how many bytes of data lie from `start` to before `end`.
    pub(crate) fn bytes_between(&self, start: &[u8], end: Option<&[u8]>) -> Result<u64, Failure> {
        if !self.overlaps(start, end) {
            return Ok(0);
        }
        let top = self.top()?;
        let first = top.partition_point(|partition| *partition.last_key < *start);
        let mut bytes = 0;
        for (place, partition) in top.iter().enumerate().skip(first) {
            let begins_inside = match place.checked_sub(1) {
                None => *self.facts.smallest >= *start,
                Some(before) => *top[before].last_key >= *start,
            };
            let ends_inside = end.is_none_or(|end| *partition.last_key < *end);
            bytes += match begins_inside && ends_inside {
                true => partition.rows.bytes(),
                false => self.bytes_of_blocks(place, start, end)?,
            };
            if !ends_inside {
                break;
            }
        }
        Ok(bytes.max(1))
    }

    /// The same in one partition, by its blocks. A block that is cut by a bound counts as a whole or not at all.
    fn bytes_of_blocks(&self, partition: usize, start: &[u8], end: Option<&[u8]>) -> Result<u64, Failure> {
        let mut index = self.index(partition, |kind, block| self.cached_block(kind, block))?;
        let (mut inside, mut all) = (0, 0);
        let mut moved = index.first();
        while moved.is_ok() && index.is_at_row() {
            all += 1;
            inside += u64::from(index.key() >= start && end.is_none_or(|end| index.key() < end));
            moved = index.next();
        }
        let entry = &self.top()?[partition];
        self.rows_result(entry.index.offset, moved)?;
        Ok(entry.rows.bytes() / all.max(1) * inside)
    }

    /// The top index.
    pub(crate) fn top(&self) -> Result<&[Partition], Failure> {
        if let Some(part) = self.parts.set_apart_covering(|| self.keys()) {
            return Err(part.into());
        }
        if let Some(top) = self.top.get() {
            return Ok(top);
        }
        let top = match self.read_top() {
            Err(Failure::Damaged(damage)) => match self.rebuild_top() {
                Some(top) => {
                    self.shared.notice(&Damage { keys: self.keys(), effect: Effect::Healed, ..*damage });
                    top
                }
                None => return Err(self.noticed(*damage, self.keys())),
            },
            other => other?,
        };
        Ok(self.top.get_or_init(|| top))
    }
}

/// The smallest key after this one.
pub(crate) fn after(key: &[u8]) -> Vec<u8> {
    let mut after = Vec::with_capacity(key.len() + 1);
    after.extend_from_slice(key);
    after.push(0);
    after
}

impl Drop for Table {
    fn drop(&mut self) {
        if !self.named.load(Ordering::Acquire) && !self.ended.load(Ordering::Acquire) {
            self.shared.add_unneeded(self.number(), self.facts.file_bytes);
        }
    }
}
