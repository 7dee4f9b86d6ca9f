//! Sorted rows in the content of a block: `docs/formats/tables.md`.
//!
//! A key is stored without the bytes that it shares with the key before it, except at every sixteenth row, a *restart
//! point*. Keeps: nothing here panics or allocates much on bytes that no builder has written.

use std::ops::Range;

use crate::block::Block;

/// Rows from one restart point to the next.
const RESTART_ROWS: usize = 16;

/// Appends rows in the order of their keys.
#[derive(Default)]
pub(crate) struct RowsBuilder {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    rows_since_restart: usize,
    last_key: Vec<u8>,
}

impl RowsBuilder {
    pub(crate) fn add(&mut self, key: &[u8], value: Option<&[u8]>) {
        let restart = self.restarts.is_empty() || self.rows_since_restart == RESTART_ROWS;
        let shared = if restart { 0 } else { common_prefix(&self.last_key, key) };
        if restart {
            self.restarts.push(u32::try_from(self.bytes.len()).expect("a block is shorter than 4 GiB"));
            self.rows_since_restart = 0;
        }
        self.rows_since_restart += 1;
        push_varint(&mut self.bytes, shared as u64);
        push_varint(&mut self.bytes, (key.len() - shared) as u64);
        push_varint(&mut self.bytes, value.map_or(0, |value| value.len() as u64 + 1));
        self.bytes.extend_from_slice(&key[shared..]);
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.restarts.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() + 4 * self.restarts.len()
    }

    pub(crate) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// The content of the block; [`clear`](Self::clear) must follow.
    pub(crate) fn finish(&mut self) -> &[u8] {
        for restart in &self.restarts {
            self.bytes.extend_from_slice(&restart.to_le_bytes());
        }
        let count = u32::try_from(self.restarts.len()).expect("fewer restart points than bytes");
        self.bytes.extend_from_slice(&count.to_le_bytes());
        &self.bytes
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.restarts.clear();
        self.last_key.clear();
        self.rows_since_restart = 0;
    }
}

fn common_prefix(left: &[u8], right: &[u8]) -> usize {
    let (left_words, right_words) = (left.chunks_exact(8), right.chunks_exact(8));
    let words = left_words.zip(right_words).take_while(|(left, right)| left == right).count() * 8;
    words + left[words..].iter().zip(&right[words..]).take_while(|(left, right)| left == right).count()
}

pub(crate) fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push((value & 0x7f) as u8);
}

/// Content that no builder has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// A position among the rows of a block: at a row, or after the last one.
pub(crate) struct RowCursor {
    block: Block,
    /// The length of the rows, up to the restart points.
    rows_end: usize,
    restarts: usize,
    /// Where the current row starts; `rows_end` after the last one.
    at: usize,
    next: usize,
    key: Vec<u8>,
    /// Where the current row's value is; none for a tombstone.
    value: Option<Range<usize>>,
}

impl RowCursor {
    /// A cursor after the last row.
    pub(crate) fn new(block: Block) -> Result<Self, Malformed> {
        let content = block.content();
        let (rest, count) = content.split_last_chunk::<4>().ok_or(Malformed)?;
        let restarts = u32::from_le_bytes(*count) as usize;
        let rows_end = restarts.checked_mul(4).and_then(|bytes| rest.len().checked_sub(bytes)).ok_or(Malformed)?;
        if restarts == 0 || rows_end == 0 {
            return Err(Malformed);
        }
        Ok(Self { block, rows_end, restarts, at: rows_end, next: rows_end, key: Vec::new(), value: None })
    }

    pub(crate) fn is_at_row(&self) -> bool {
        self.at < self.rows_end
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(crate) fn value(&self) -> Option<&[u8]> {
        self.value.clone().map(|value| &self.block.content()[value])
    }

    pub(crate) fn first(&mut self) -> Result<(), Malformed> {
        self.read(0)
    }

    pub(crate) fn next(&mut self) -> Result<(), Malformed> {
        self.read(self.next)
    }

    /// Goes one row back. Returns false, and stays, at the first row.
    pub(crate) fn previous(&mut self) -> Result<bool, Malformed> {
        let target = self.at;
        if target == 0 {
            return Ok(false);
        }
        // The row before is only known from the restart point before it on.
        let restarts = first_false(self.restarts, |place| Ok(self.restart(place)? < target))?;
        self.read(self.restart(restarts.checked_sub(1).ok_or(Malformed)?)?)?;
        while self.next < target {
            self.read(self.next)?;
        }
        if self.next == target { Ok(true) } else { Err(Malformed) }
    }

    /// Goes to the first row at or after `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<(), Malformed> {
        let restarts = first_false(self.restarts, |place| Ok(self.restart_key(place)? < key))?;
        self.read(self.restart(restarts.saturating_sub(1))?)?;
        while self.is_at_row() && self.key.as_slice() < key {
            self.next()?;
        }
        Ok(())
    }

    fn restart(&self, place: usize) -> Result<usize, Malformed> {
        let bytes = self.block.content().get(self.rows_end + 4 * place..).and_then(|rest| rest.first_chunk::<4>());
        let restart = u32::from_le_bytes(*bytes.ok_or(Malformed)?) as usize;
        if restart < self.rows_end { Ok(restart) } else { Err(Malformed) }
    }

    fn restart_key(&self, place: usize) -> Result<&[u8], Malformed> {
        let rows = &self.block.content()[..self.rows_end];
        let mut at = self.restart(place)?;
        let shared = take_varint(rows, &mut at)?;
        let length = take_varint(rows, &mut at)?;
        take_varint(rows, &mut at)?;
        if shared != 0 {
            return Err(Malformed);
        }
        rows.get(at..at.checked_add(length).ok_or(Malformed)?).ok_or(Malformed)
    }

    fn read(&mut self, at: usize) -> Result<(), Malformed> {
        self.at = at;
        if at >= self.rows_end {
            self.at = self.rows_end;
            self.next = self.rows_end;
            return Ok(());
        }
        let rows = &self.block.content()[..self.rows_end];
        let mut end = at;
        let shared = take_varint(rows, &mut end)?;
        let length = take_varint(rows, &mut end)?;
        let value = take_varint(rows, &mut end)?;
        let key_end = end.checked_add(length).ok_or(Malformed)?;
        let key = rows.get(end..key_end).ok_or(Malformed)?;
        if shared > self.key.len() {
            return Err(Malformed);
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(key);
        self.next = key_end.checked_add(value.saturating_sub(1)).filter(|next| *next <= rows.len()).ok_or(Malformed)?;
        self.value = (value > 0).then_some(key_end..self.next);
        Ok(())
    }
}

/// The first of `count` places for which `holds` is false; it holds for all before it.
fn first_false(count: usize, holds: impl Fn(usize) -> Result<bool, Malformed>) -> Result<usize, Malformed> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        if holds(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

fn take_varint(bytes: &[u8], at: &mut usize) -> Result<usize, Malformed> {
    let mut value = 0_usize;
    // Five groups of seven bits: no length in a block needs more.
    for shift in [0, 7, 14, 21, 28] {
        let byte = *bytes.get(*at).ok_or(Malformed)?;
        *at += 1;
        value |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{self, Kind};
    use testkit::random::Random;

    fn block_of(content: &[u8]) -> Block {
        let mut bytes = Vec::new();
        block::append(&mut bytes, Kind::Data, content, 0);
        Block::verify(bytes.into(), Kind::Data, 0).expect("a block")
    }

    fn rows(random: &mut Random, count: usize) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let mut rows = std::collections::BTreeMap::new();
        for _ in 0..count {
            let (length, bytes) = (random.index(12), random.index(20));
            let key: Vec<u8> = random.bytes(length).into_iter().map(|byte| byte % 3).collect();
            rows.insert(key, (!random.one_in(4)).then(|| random.bytes(bytes)));
        }
        rows.into_iter().collect()
    }

    #[test]
    fn every_row_is_found_from_every_direction() {
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let count = 1 + random.index(100);
            let rows = rows(&mut random, count);
            let mut builder = RowsBuilder::default();
            rows.iter().for_each(|(key, value)| builder.add(key, value.as_deref()));
            let mut cursor = RowCursor::new(block_of(builder.finish())).expect("rows");
            let row = |cursor: &RowCursor| (cursor.key().to_vec(), cursor.value().map(<[u8]>::to_vec));
            let mut back = Vec::new();
            while cursor.previous().expect("rows") {
                back.push(row(&cursor));
            }
            back.reverse();
            assert_eq!(back, rows, "seed {seed}");
            cursor.first().expect("rows");
            for expected in &rows {
                assert_eq!(row(&cursor), *expected, "seed {seed}");
                cursor.next().expect("rows");
            }
            assert!(!cursor.is_at_row());
            for _ in 0..50 {
                let length = random.index(12);
                let target: Vec<u8> = random.bytes(length).into_iter().map(|byte| byte % 3).collect();
                cursor.seek(&target).expect("rows");
                let place = rows.partition_point(|(key, _)| *key < target);
                assert_eq!(cursor.is_at_row().then(|| row(&cursor)), rows.get(place).cloned(), "seed {seed}");
                let before = cursor.previous().expect("rows").then(|| row(&cursor));
                assert_eq!(before, place.checked_sub(1).map(|place| rows[place].clone()), "seed {seed}");
            }
        }
    }

    /// Blocks are verified before they are read, so only a faulty writer could bring such bytes.
    #[test]
    fn no_content_makes_a_cursor_panic_or_loop() {
        let mut random = Random::new(3);
        let valid = {
            let mut builder = RowsBuilder::default();
            rows(&mut random, 60).iter().for_each(|(key, value)| builder.add(key, value.as_deref()));
            builder.finish().to_vec()
        };
        for _ in 0..20_000 {
            let mut content = valid.clone();
            for _ in 0..1 + random.index(4) {
                let place = random.index(content.len());
                content[place] = random.bytes(1)[0];
            }
            content.truncate(content.len() - if random.one_in(3) { random.index(content.len()) } else { 0 });
            let Ok(mut cursor) = RowCursor::new(block_of(&content)) else { continue };
            let _ = cursor.seek(&[1, 1]);
            let _ = cursor.previous();
            if cursor.first().is_ok() {
                while cursor.is_at_row() && cursor.next().is_ok() {}
            }
        }
    }
}
