//! Writes a table: rows in key order, in one pass.
//!
//! Keeps: an unfinished table leaves no file. Never: has more than a few megabytes unsynced, so that nobody else's sync
//! waits for this file.

use std::sync::Arc;

use kv::{Key, Writer};
use xxhash_rust::xxh3::xxh3_64;

use crate::block::{self, Kind, Place};
use crate::bloom::{self, KeyHash};
use crate::failure::Failure;
use crate::files::{Files, NewFile};
use crate::rows::{RowsBuilder, push_varint};
use crate::table_facts::{RowCounts, TableFacts};

/// A data block is finished when it has this many bytes. The unit tests use small ones, so that small tables have many.
pub(crate) const BLOCK_BYTES_TARGET: usize = if cfg!(test) { 512 } else { 4 << 10 };
/// A partition is finished when its data has this many bytes.
const PARTITION_BYTES_TARGET: u64 = if cfg!(test) { 4 << 10 } else { 2 << 20 };
/// Keys that start like this are of second copies. No block has both such rows and others: damage of one block never costs
/// a row and its copy.
const COPIES_PREFIX: [u8; 4] = [0; 4];
/// The largest row, key and value together. It fits into a block with everything around it.
pub(crate) const ROW_BYTES_MAX: usize = 1 << 30;
/// Encoded blocks are handed to the file in pieces of this size.
const WRITE_BYTES: usize = 256 << 10;
/// The file is synced whenever this much was written since.
const UNSYNCED_BYTES_MAX: u64 = 8 << 20;

/// The first bytes of a table's tail. The last of them is the format.
pub(crate) const TAIL_MAGIC: [u8; 8] = *b"SHTABLE\x01";
pub(crate) const TAIL_BYTES: usize = 48;

/// The name of a table's file.
pub(crate) fn file_name(number: u64) -> String {
    format!("{number:016x}.table")
}

pub(crate) struct TableWriter {
    file: NewFile,
    store: u64,
    number: u64,
    /// Encoded and not yet handed to the file.
    buffer: Vec<u8>,
    /// The file's length, `buffer` included.
    offset: u64,
    data: RowsBuilder,
    index: RowsBuilder,
    top: RowsBuilder,
    partition: Partition,
    hashes: Vec<KeyHash>,
    rows: RowCounts,
    smallest: Option<Key>,
}

/// The partition being written.
#[derive(Default)]
struct Partition {
    offset: u64,
    rows: RowCounts,
}

impl TableWriter {
    pub(crate) fn create(files: &Arc<Files>, store: u64, number: u64) -> Result<Self, Failure> {
        Ok(Self {
            file: files.create(&file_name(number))?,
            store,
            number,
            buffer: Vec::with_capacity(2 * WRITE_BYTES),
            offset: 0,
            data: RowsBuilder::default(),
            index: RowsBuilder::default(),
            top: RowsBuilder::default(),
            partition: Partition::default(),
            hashes: Vec::new(),
            rows: RowCounts::default(),
            smallest: None,
        })
    }

    /// About how long the file is so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.offset + self.data.bytes() as u64
    }

    /// Adds a row; its key is greater than that of the row before.
    pub(crate) fn add(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), Failure> {
        debug_assert!(self.smallest.is_none() || self.data.is_empty() || self.data.last_key() < key, "rows are sorted");
        if self.smallest.is_none() {
            self.smallest = Some(key.into());
        }
        let is_copy = |key: &[u8]| key.starts_with(&COPIES_PREFIX);
        if !self.data.is_empty() && is_copy(self.data.last_key()) != is_copy(key) {
            self.finish_block()?;
        }
        self.data.add(key, value);
        self.hashes.push(KeyHash::of(key));
        self.partition.rows.add_row(key, value);
        if self.data.bytes() >= BLOCK_BYTES_TARGET {
            self.finish_block()?;
            if self.offset - self.partition.offset >= PARTITION_BYTES_TARGET {
                self.finish_partition()?;
            }
        }
        Ok(())
    }

    fn finish_block(&mut self) -> Result<(), Failure> {
        let seed = block::seed(self.store, self.number, self.offset);
        let bytes = block::append(&mut self.buffer, Kind::Data, self.data.finish(), seed);
        let place = Place { offset: self.offset, bytes };
        self.offset += u64::from(bytes);
        self.index.add(self.data.last_key(), Some(&encode_place(place)));
        self.data.clear();
        self.write_full_buffer()
    }

    fn finish_partition(&mut self) -> Result<(), Failure> {
        let last_key: Key = self.index.last_key().into();
        let filter = self.append(Kind::Filter, &bloom::build(&self.hashes));
        self.hashes.clear();
        let mut index = std::mem::take(&mut self.index);
        let index_place = self.append(Kind::Index, index.finish());
        index.clear();
        self.index = index;
        let partition = std::mem::take(&mut self.partition);
        let mut value = Vec::new();
        push_varint(&mut value, partition.offset);
        for place in [index_place, filter] {
            value.extend_from_slice(&encode_place(place));
        }
        let mut counts = Writer::new();
        partition.rows.write(&mut counts);
        value.extend_from_slice(counts.as_slice());
        self.top.add(&last_key, Some(&value));
        self.rows.add(&partition.rows);
        self.partition.offset = self.offset;
        self.write_full_buffer()
    }

    fn append(&mut self, kind: Kind, content: &[u8]) -> Place {
        let seed = block::seed(self.store, self.number, self.offset);
        let bytes = block::append(&mut self.buffer, kind, content, seed);
        let place = Place { offset: self.offset, bytes };
        self.offset += u64::from(bytes);
        place
    }

    fn write_full_buffer(&mut self) -> Result<(), Failure> {
        if self.buffer.len() >= WRITE_BYTES {
            self.file.append(&self.buffer)?;
            self.buffer.clear();
            if self.file.bytes_unsynced() >= UNSYNCED_BYTES_MAX {
                self.file.sync()?;
            }
        }
        Ok(())
    }

    /// Finishes the file and syncs it. The caller makes its name durable.
    ///
    /// # Panics
    /// If no row was added.
    pub(crate) fn finish(mut self) -> Result<TableFacts, Failure> {
        if !self.data.is_empty() {
            self.finish_block()?;
        }
        if !self.index.is_empty() {
            self.finish_partition()?;
        }
        let largest: Key = self.top.last_key().into();
        let smallest = self.smallest.take().expect("a table has a row");
        let mut top = std::mem::take(&mut self.top);
        let top = self.append(Kind::Top, top.finish());
        let mut facts = Writer::new();
        facts.u64(top.offset).u32(top.bytes);
        self.rows.write(&mut facts);
        facts.bytes(&smallest).bytes(&largest);
        let facts = self.append(Kind::Facts, facts.as_slice());

        let mut tail = Writer::new();
        tail.raw(&TAIL_MAGIC).u64(self.store).u64(self.number).u64(facts.offset).u32(facts.bytes).u32(0);
        tail.u64(xxh3_64(tail.as_slice()));
        assert_eq!(tail.len(), TAIL_BYTES, "the tail has a fixed length");
        self.buffer.extend_from_slice(tail.as_slice());
        self.offset += TAIL_BYTES as u64;

        self.file.append(&self.buffer)?;
        self.file.sync()?;
        self.file.keep();
        Ok(TableFacts { number: self.number, file_bytes: self.offset, rows: self.rows, smallest, largest })
    }
}

pub(crate) fn encode_place(place: Place) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(10);
    push_varint(&mut bytes, place.offset);
    push_varint(&mut bytes, u64::from(place.bytes));
    bytes
}
