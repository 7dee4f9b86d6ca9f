//! Makes the indexes of a table again from its data blocks, when their own bytes are damaged.
//!
//! Blocks follow each other without gaps, and each says its kind and its length, so a walk finds them all. Everything
//! found is verified or compared with what the manifest says about the table. Never: changes the file; a merge replaces
//! it sooner or later.

use kv::Key;

use crate::block::{self, Block, FRAME_BYTES, HEADER_BYTES, Kind, Place};
use crate::rows::{RowCursor, RowsBuilder};
use crate::table::Table;
use crate::table_top::Partition;
use crate::table_writer::encode_place;

impl Table {
    /// The index of a partition, made from its data blocks and kept in the cache. None if one of them is damaged too.
    pub(crate) fn rebuild_index(&self, partition: usize) -> Option<RowCursor> {
        let bounds = &self.top().ok()?[partition];
        let mut index = RowsBuilder::default();
        let mut offset = bounds.data_offset;
        while offset < bounds.filter.offset {
            let (kind, place) = self.block_at(offset)?;
            if kind != Kind::Data as u8 || place.end()? > bounds.filter.offset {
                return None;
            }
            index.add(&self.last_key_of(Kind::Data, place)?, Some(&encode_place(place)));
            offset = place.end()?;
        }
        if index.is_empty() || *index.last_key() != *bounds.last_key {
            return None;
        }
        let seed = block::seed(self.shared.store, self.number(), bounds.index.offset);
        let mut bytes = Vec::new();
        block::append(&mut bytes, Kind::Index, index.finish(), seed);
        let block = Block::verify(bytes.into(), Kind::Index, seed).ok()?;
        self.shared.cache_block(self.number(), bounds.index.offset, &block);
        RowCursor::new(block).ok()
    }

    /// The top index, made from the indexes of the partitions. None if something else is damaged too.
    pub(crate) fn rebuild_top(&self) -> Option<Vec<Partition>> {
        let mut top = Vec::new();
        let (mut offset, mut data_offset, mut filter) = (0, 0, None);
        // What follows the partitions may not be a header any more. Whether all were found is checked below.
        while let Some((kind, place)) = self.block_at(offset) {
            offset = place.end()?;
            match kind {
                kind if kind == Kind::Data as u8 && filter.is_none() => {}
                kind if kind == Kind::Filter as u8 && filter.is_none() => filter = Some(place),
                kind if kind == Kind::Index as u8 => {
                    let bytes = offset - data_offset;
                    top.push(Partition {
                        last_key: self.last_key_of(Kind::Index, place)?,
                        data_offset,
                        index: place,
                        filter: filter.take()?,
                        // Merges plan with these; they need not be exact.
                        rows: self.facts.rows.share(bytes, self.facts.file_bytes),
                    });
                    data_offset = offset;
                }
                // The top index, or what is left of it.
                _ => break,
            }
        }
        (filter.is_none() && self.are_in_order(&top, data_offset)).then_some(top)
    }

    /// The kind and the place of the block at an offset, by its header alone.
    fn block_at(&self, offset: u64) -> Option<(u8, Place)> {
        let mut header = [0; HEADER_BYTES];
        let end = offset.checked_add(HEADER_BYTES as u64)?;
        if end > self.facts.file_bytes {
            return None;
        }
        self.shared.read(self.number(), &mut header, offset).ok()?;
        let content = u32::from_le_bytes(*header.last_chunk::<4>()?);
        let place = Place { offset, bytes: content.checked_add(u32::try_from(FRAME_BYTES).ok()?)? };
        (place.end()? <= self.facts.file_bytes).then_some((header[0], place))
    }

    /// The last key of a block, which is verified.
    fn last_key_of(&self, kind: Kind, place: Place) -> Option<Key> {
        let block = self.shared.read_block(self.number(), kind, place).ok()?;
        let mut rows = RowCursor::new(block).ok()?;
        rows.previous().ok()?.then(|| rows.key().into())
    }
}
