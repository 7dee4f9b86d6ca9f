//! Walking the batches of all segments when a journal is opened, and giving up a torn one.
//!
//! Keeps: J3: each batch is in its place, has the next sequence and continues its shards; only the last one can be torn,
//! and then nothing of it counts. Never: changes a file.

use std::collections::BTreeMap;

use crate::batch::{BatchHeader, SEGMENT_HEADER_BYTES, segment_header};
use crate::disk::Disk;
use crate::error::JournalError;
use crate::file_place::FilePlace;
use crate::frame::{Place, ShardId};
use crate::segment::{Segment, Window, cannot_read, path_of};
use crate::shard_index::ShardIndex;
use crate::watermark::Known;

use super::SegmentFiles;

/// A batch, and where it is.
#[derive(Clone)]
pub(super) struct FoundBatch {
    /// The position of its segment among those that were found.
    pub(super) segment: usize,
    pub(super) offset: u64,
    pub(super) header: BatchHeader,
}

/// What walking all segments has found.
#[derive(Default)]
pub(super) struct Walked {
    pub(super) shards: BTreeMap<ShardId, ShardIndex>,
    /// Where the last batch of each shard is: the position of its segment among those that were found, and its offset.
    pub(super) last_batches: BTreeMap<ShardId, (usize, u64)>,
    /// The last batch of all.
    pub(super) last: Option<FoundBatch>,
    /// A torn batch behind it.
    pub(super) torn: Option<FoundBatch>,
}

impl<D: Disk> SegmentFiles<D> {
    /// Follows the batches from segment to segment; each must be the one after the one before.
    pub(super) fn walk(&self, segments: &mut [Segment<D::File>], known: &Known) -> Result<Walked, JournalError> {
        let mut walked = Walked::default();
        for (position, segment) in segments.iter_mut().enumerate() {
            let follows = segment.number == known.first_segment + position as u64;
            let mut window = Window::default();
            let header = window.get(segment, 0, SEGMENT_HEADER_BYTES).map_err(cannot_read)?;
            if header != segment_header(self.id, segment.number) {
                // Never used, or damaged: then the batches in it are evidence.
                continue;
            }
            loop {
                let offset = segment.end;
                let header = segment.header_at(&mut window, offset, self.id).map_err(cannot_read)?;
                let Some(header) = header else { break };
                let before = walked.last.as_ref().map(|last| last.header.sequence);
                let is_next = before.is_none_or(|before| before + 1 == header.sequence);
                // A segment is begun when the one before it is full.
                let is_beside =
                    position == walked.last.as_ref().map_or(0, |last| last.segment + 1) || !segment.is_empty();
                if !is_next || !is_beside || !follows {
                    let what = match follows {
                        true => format!("batches are missing before batch {}", header.sequence),
                        false => "a file is missing before this one".to_owned(),
                    };
                    return Err(JournalError::damaged(self.path_at(segment, offset), what));
                }
                let end = offset + header.bytes();
                self.add(segment, FoundBatch { segment: position, offset, header }, &mut walked)?;
                segment.end = end;
            }
        }
        Ok(walked)
    }

    fn add(&self, segment: &Segment<D::File>, found: FoundBatch, walked: &mut Walked) -> Result<(), JournalError> {
        // The last batch may be torn, so it is looked at when the next one is found.
        let position = found.segment;
        if let Some(before) = walked.last.replace(found) {
            let number = segment.number - (position - before.segment) as u64;
            self.index(number, &before, walked)?;
        }
        Ok(())
    }

    fn index(&self, segment: u64, found: &FoundBatch, walked: &mut Walked) -> Result<(), JournalError> {
        let FoundBatch { offset, ref header, .. } = *found;
        for part in &header.parts {
            let shard = walked.shards.entry(part.shard).or_default();
            if !shard.follows(part.first_index, part.entries) {
                let place = format!("{} at byte {offset}", path_of(&self.path, segment).display());
                let (first, last) = (part.first_index, shard.last_index);
                let what = format!("entry {first} of shard {} follows entry {last}", part.shard);
                return Err(JournalError::damaged(place, what));
            }
            shard.add(part.place(FilePlace { id: self.id, segment, offset }), part.last_index());
            walked.last_batches.insert(part.shard, (found.segment, offset));
        }
        Ok(())
    }

    /// Only the last batch can be torn. If it is, nothing of it counts, whichever shards it is of.
    pub(super) fn find_torn_batch(
        &self,
        segments: &mut [Segment<D::File>],
        walked: &mut Walked,
    ) -> Result<(), JournalError> {
        let Some(last) = walked.last.clone() else { return Ok(()) };
        let segment = &segments[last.segment];
        let mut body = Vec::new();
        segment.read_body(last.offset, &last.header, &mut body).map_err(cannot_read)?;
        if last.header.frames(&body, segment.place(self.id, last.offset)).is_ok() {
            return self.index(segment.number, &last, walked);
        }
        segments[last.segment].end = last.offset;
        walked.last = self.batch_before(segments, &last)?;
        walked.torn = Some(last);
        Ok(())
    }

    /// Walks once more to the batch before this one.
    fn batch_before(
        &self,
        segments: &[Segment<D::File>],
        last: &FoundBatch,
    ) -> Result<Option<FoundBatch>, JournalError> {
        let first = SEGMENT_HEADER_BYTES as u64;
        let (position, end) = match last.offset > first {
            true => (last.segment, last.offset),
            false if last.segment == 0 => return Ok(None),
            false => (last.segment - 1, segments[last.segment - 1].end),
        };
        let mut window = Window::default();
        let (mut offset, mut before) = (first, None);
        while offset < end {
            let header = segments[position].header_at(&mut window, offset, self.id).map_err(cannot_read)?;
            let Some(header) = header else { break };
            let end = offset + header.bytes();
            before = Some(FoundBatch { segment: position, offset, header });
            offset = end;
        }
        Ok(before)
    }

    /// The next entry of each shard refers to the last one. Many shards may have theirs in one batch.
    pub(super) fn read_last_entries(
        &self,
        segments: &[Segment<D::File>],
        walked: &mut Walked,
    ) -> Result<(), JournalError> {
        let batches: BTreeMap<(usize, u64), ShardId> =
            walked.last_batches.iter().map(|(shard, batch)| (*batch, *shard)).collect();
        let mut body = Vec::new();
        for ((position, offset), shard) in batches {
            let segment = &segments[position];
            let header = segment.header_at(&mut Window::default(), offset, self.id).map_err(cannot_read)?;
            let header = header.ok_or_else(|| self.damaged_batch(segment, offset))?;
            segment.read_body(offset, &header, &mut body).map_err(cannot_read)?;
            let frames = header.frames(&body, segment.place(self.id, offset)).map_err(|what| {
                let index = walked.shards.get(&shard).map_or(0, |index| index.last_index);
                JournalError::damaged(self.place_in(segment, offset, shard, index), what)
            })?;
            for frame in frames {
                let Place { shard, history, .. } = frame.place;
                let is_last = walked.last_batches.get(&shard) == Some(&(position, offset));
                if let Some(index) = walked.shards.get_mut(&shard).filter(|_| is_last) {
                    (index.last_hash, index.history) = (frame.hash, Some(history));
                }
            }
        }
        Ok(())
    }
}
