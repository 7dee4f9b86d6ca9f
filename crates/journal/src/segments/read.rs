//! Reading entries back, each checked against its own hash and its place in the chain.
//!
//! Keeps: J2. No lock is held while a file is read; a segment that is read is not reused meanwhile.

use std::collections::BTreeMap;

use crate::batch::{SEGMENT_HEADER_BYTES, aligned};
use crate::disk::Disk;
use crate::error::JournalError;
use crate::frame::{Entry, Frame, Place, ShardId};
use crate::log::{Position, Verified};
use crate::segment::{Segment, Window, cannot_read, path_of};
use crate::shard_index::BatchPlace;
use crate::watermark::Mark;

use super::{SegmentFiles, State};

/// Where to look for an entry.
struct Found<F> {
    segment: Segment<F>,
    place: BatchPlace,
    last_index: u64,
}

impl<D: Disk> SegmentFiles<D> {
    /// Entries from `first` on: at least one if it exists, then as many as fit into `bytes_max`.
    pub(super) fn read_entries(
        &self,
        shard: ShardId,
        first: u64,
        bytes_max: usize,
    ) -> Result<Vec<(Entry, Position)>, JournalError> {
        let mut reading = Reading { entries: Vec::new(), bytes_left: bytes_max, previous_hash: None, next: first };
        while let Some(found) = self.find(shard, reading.next)? {
            let before = reading.next;
            let is_full = self.read_from(&found, shard, &mut reading)?;
            if is_full {
                break;
            }
            if reading.next == before {
                return Err(JournalError::damaged(format!("shard {shard}, entry {before}"), "the entry is missing"));
            }
        }
        Ok(reading.entries)
    }

    fn find(&self, shard: ShardId, index: u64) -> Result<Option<Found<D::File>>, JournalError> {
        let state = self.lock();
        let known = state.shards.get(&shard).filter(|shard| shard.has_entries());
        let Some(known) = known.filter(|known| index <= known.last_index) else { return Ok(None) };
        if index < known.first_index {
            let what = format!("the entry was given up; entries are kept from {} on", known.first_index);
            return Err(JournalError::damaged(format!("shard {shard}, entry {index}"), what));
        }
        let place = known.find(index).expect("a kept entry has a place");
        let segment = state.segment(place.segment).expect("a place is in a kept segment").clone();
        Ok(Some(Found { segment, place, last_index: known.last_index }))
    }

    /// Finds the batch with the first kept entry of a shard after a cut; the index only knows a place before it. Damage
    /// on the way is left to whoever reads the entries, and the place stays.
    pub(super) fn find_first_kept(&self, state: &mut State<D>, shard: ShardId) {
        let index = state.shard(shard);
        let first_index = index.first_index;
        let Some(place) = index.oldest().filter(|place| place.first_index < first_index) else { return };
        let Some(segment) = state.segment(place.segment) else { return };
        let mut window = Window::default();
        let mut offset = place.offset;
        let mut found = place;
        while let Ok(Some(header)) = segment.header_at(&mut window, offset, self.id) {
            let part = header.part(shard).map(|(part, _)| part);
            if part.is_some_and(|part| part.first_index > first_index) {
                break;
            }
            if let Some(part) = part {
                found = part.place(segment.place(self.id, offset));
            }
            offset += header.bytes();
            if part.is_some_and(|part| part.last_index() >= first_index) || offset >= segment.end {
                break;
            }
        }
        state.shard(shard).set_oldest(found);
    }

    /// Reads the wanted entries in one segment; true if no more are wanted.
    fn read_from(&self, found: &Found<D::File>, shard: ShardId, reading: &mut Reading) -> Result<bool, JournalError> {
        let mut window = Window::default();
        let mut body = Vec::new();
        let mut offset = found.place.offset;
        while offset < found.segment.end && reading.next <= found.last_index {
            let header = found.segment.header_at(&mut window, offset, self.id).map_err(cannot_read)?;
            let header = header.ok_or_else(|| self.damaged_batch(&found.segment, offset))?;
            if let Some((part, start)) = header.part(shard).filter(|(part, _)| part.last_index() >= reading.next) {
                if part.first_index > reading.next {
                    break;
                }
                let start = offset + start;
                found.segment.read(start, u64::from(part.bytes), &mut body).map_err(cannot_read)?;
                let mut position = 0;
                for index in part.first_index..=part.last_index() {
                    let at = start + position as u64;
                    let damaged = |what| JournalError::damaged(self.place_in(&found.segment, at, shard, index), what);
                    let frame = body.get(position..).unwrap_or_default();
                    let frame_at = found.segment.place(self.id, at);
                    let frame = Frame::decode_at(frame, frame_at).map_err(|error| damaged(error.what))?;
                    if (frame.place.shard, frame.place.index) != (shard, index) {
                        return Err(damaged("another entry is in its place"));
                    }
                    position += aligned(frame.bytes);
                    if index < reading.next {
                        continue;
                    }
                    if reading.previous_hash.is_some_and(|previous| previous != frame.place.previous_hash) {
                        return Err(damaged("it does not follow the previous entry"));
                    }
                    if !reading.take(&frame) {
                        return Ok(true);
                    }
                }
            }
            offset += header.bytes();
        }
        Ok(false)
    }

    /// The last entry of a shard, from the segment that it is in.
    pub(super) fn last_entry_in(
        &self,
        segment: &Segment<D::File>,
        offset: u64,
        shard: ShardId,
        index: u64,
    ) -> Result<Entry, JournalError> {
        let place = BatchPlace { segment: segment.number, offset, first_index: index };
        let found = Found { segment: segment.clone(), place, last_index: index };
        let mut reading = Reading { entries: Vec::new(), bytes_left: 0, previous_hash: None, next: index };
        self.read_from(&found, shard, &mut reading)?;
        let entry = reading.entries.pop().map(|(entry, _)| entry);
        entry.ok_or_else(|| JournalError::damaged(format!("shard {shard}, entry {index}"), "the entry is missing"))
    }

    /// Reads and checks every kept batch, segment by segment.
    pub(super) fn verify_all(&self) -> Result<Verified, JournalError> {
        let (segments, marks) = {
            let state = self.lock();
            let marks = state.shards.iter().filter_map(|(shard, index)| Some((*shard, index.mark()?)));
            (state.segments.iter().cloned().collect::<Vec<_>>(), marks.collect::<BTreeMap<ShardId, Mark>>())
        };
        let mut verified = Verified::default();
        let mut tails = BTreeMap::<ShardId, (u64, u64)>::new();
        for segment in &segments {
            self.verify_segment(segment, &marks, &mut tails, &mut verified)?;
        }
        for (shard, mark) in marks {
            let last = tails.get(&shard).map_or(0, |(index, _)| *index);
            if last != mark.last {
                let what = format!("the entries end at {last}");
                return Err(JournalError::damaged(format!("shard {shard}, entry {}", mark.last), what));
            }
        }
        Ok(verified)
    }

    /// `tails` has the last entry of each shard so far, with its hash.
    fn verify_segment(
        &self,
        segment: &Segment<D::File>,
        marks: &BTreeMap<ShardId, Mark>,
        tails: &mut BTreeMap<ShardId, (u64, u64)>,
        verified: &mut Verified,
    ) -> Result<(), JournalError> {
        let mut window = Window::default();
        let mut body = Vec::new();
        let mut offset = SEGMENT_HEADER_BYTES as u64;
        while offset < segment.end {
            let header = segment.header_at(&mut window, offset, self.id).map_err(cannot_read)?;
            let header = header.ok_or_else(|| self.damaged_batch(segment, offset))?;
            segment.read_body(offset, &header, &mut body).map_err(cannot_read)?;
            let damaged = |what: String| JournalError::damaged(self.path_at(segment, offset), what);
            let frames = header.frames(&body, segment.place(self.id, offset)).map_err(damaged)?;
            for frame in frames {
                let Place { index, shard, .. } = frame.place;
                let first_kept = marks.get(&shard).map_or(0, |mark| mark.first_kept);
                match tails.get(&shard) {
                    // The last entry of a shard may have been written twice.
                    Some((last, hash)) if *last == index && *hash == frame.hash => continue,
                    Some((last, hash)) if last + 1 != index || *hash != frame.place.previous_hash => {
                        let place = self.place_in(segment, offset, shard, index);
                        return Err(JournalError::damaged(place, "it does not follow the previous entry"));
                    }
                    _ => {}
                }
                tails.insert(shard, (index, frame.hash));
                if first_kept <= index {
                    verified.entries += 1;
                    verified.payload_bytes += frame.payload.len() as u64;
                }
            }
            offset += header.bytes();
        }
        Ok(())
    }

    pub(super) fn damaged_batch(&self, segment: &Segment<D::File>, offset: u64) -> JournalError {
        JournalError::damaged(self.path_at(segment, offset), "the header of a batch is damaged")
    }

    pub(super) fn path_at<F>(&self, segment: &Segment<F>, offset: u64) -> String {
        format!("{} at byte {offset}", path_of(&self.path, segment.number).display())
    }

    pub(super) fn place_in<F>(&self, segment: &Segment<F>, offset: u64, shard: ShardId, index: u64) -> String {
        format!("{}: shard {shard}, entry {index}", self.path_at(segment, offset))
    }
}

/// What was read so far.
struct Reading {
    entries: Vec<(Entry, Position)>,
    bytes_left: usize,
    previous_hash: Option<u64>,
    next: u64,
}

impl Reading {
    /// Adds an entry, unless there is one and this does not fit any more.
    fn take(&mut self, frame: &Frame<'_>) -> bool {
        if !self.entries.is_empty() && frame.bytes > self.bytes_left {
            return false;
        }
        self.bytes_left = self.bytes_left.saturating_sub(frame.bytes);
        self.previous_hash = Some(frame.hash);
        self.next = frame.place.index + 1;
        self.entries.push((frame.entry(), Position { index: frame.place.index, hash: frame.hash }));
        true
    }
}
