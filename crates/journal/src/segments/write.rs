//! One batch, of one shard or of several: put together in the buffer, written and synced, or withdrawn if there was no room
//! for it.
//!
//! Keeps: J1; J4: any other failure of a write or a sync stops the journal; callers check that none has; J7: a batch that
//! there was no room for is withdrawn, any other that failed may be there. Never: writes a batch before the one that there
//! was no room for is withdrawn.

use crate::batch::{
    BATCH_HEADER_BYTES_MIN, BatchHeader, BatchPart, EntriesHash, SEGMENT_HEADER_BYTES, aligned, batch_header_bytes,
    segment_header,
};
use crate::disk::{Disk, DiskFile};
use crate::error::{JournalError, is_lack_of_room};
use crate::file_place::FilePlace;
use crate::frame::{Place, seal};

use super::{SegmentFiles, State};

/// An entry in the buffer.
pub(super) struct Framed {
    /// Where it begins and ends there.
    start: usize,
    end: usize,
    hash: u64,
}

impl<D: Disk> SegmentFiles<D> {
    /// Writes and syncs the batch in the buffer, and returns where it is.
    pub(super) fn write_batch(&self, state: &mut State<D>, header: &BatchHeader) -> Result<FilePlace, JournalError> {
        let bytes = header.bytes();
        self.withdraw_refused(state)?;
        self.make_room(state, bytes)?;
        let segment = state.segments.back_mut().expect("there is always one to append to");
        let offset = segment.end;
        let (segment_part, batch_part) = state.buffer.split_at_mut(SEGMENT_HEADER_BYTES);
        let at = segment.place(self.id, offset);
        header.encode_to(batch_part, at);
        for Framed { start, end, .. } in &state.framed {
            let start = start - SEGMENT_HEADER_BYTES;
            seal(&mut batch_part[start..end - SEGMENT_HEADER_BYTES], at.plus(start));
        }
        // The segment's header is written together with its first batch: without a batch it means nothing.
        let written = match segment.is_empty() {
            true => {
                segment_part.copy_from_slice(&segment_header(self.id, segment.number));
                segment.file.write_at(&state.buffer, 0)
            }
            false => segment.file.write_at(batch_part, offset),
        };
        if let Err(error) = written {
            if !is_lack_of_room(&error) {
                return Err(state.fail(JournalError::io("write an entry", error)));
            }
            state.refused_at = Some(offset);
            return match self.withdraw_refused(state) {
                Ok(()) | Err(JournalError::NoSpace { .. }) => Err(JournalError::NoSpace { reason: error.to_string() }),
                Err(error) => Err(error),
            };
        }
        if let Err(error) = segment.file.sync_data() {
            return Err(state.fail(JournalError::io("sync an entry", error)));
        }
        segment.end += bytes;
        state.sequence += 1;
        Ok(at)
    }

    /// Makes the header of a batch invalid that there was no room for: a part of it may be there. A batch that follows
    /// in another segment would make it look like a damaged one.
    fn withdraw_refused(&self, state: &mut State<D>) -> Result<(), JournalError> {
        let Some(offset) = state.refused_at else { return Ok(()) };
        let segment = state.segments.back().expect("there is always one to append to");
        let from = if segment.is_empty() { 0 } else { offset };
        let zeros = [0; SEGMENT_HEADER_BYTES + BATCH_HEADER_BYTES_MIN];
        let count = usize::try_from(offset - from).expect("a header") + BATCH_HEADER_BYTES_MIN;
        let written = segment.file.write_at(&zeros[..count], from);
        let action = "withdraw an entry that there was no room for";
        match written.map_err(|error| JournalError::no_room_or_io(action, &error)) {
            Ok(()) => {}
            Err(error @ JournalError::NoSpace { .. }) => return Err(error),
            Err(error) => return Err(state.fail(error)),
        }
        let synced = segment.file.sync_data();
        synced.map_err(|error| state.fail(JournalError::io(action, error)))?;
        state.refused_at = None;
        Ok(())
    }
}

impl<D: Disk> State<D> {
    /// Empties the buffer, with room for the headers of a segment and of a batch of so many shards.
    pub(super) fn begin_batch(&mut self, parts: usize) {
        self.framed.clear();
        self.buffer.clear();
        self.buffer.resize(SEGMENT_HEADER_BYTES + batch_header_bytes(parts), 0);
    }

    /// Adds entries of a shard to the batch in the buffer: `first`, and others like it behind it, one for each payload.
    /// Returns them as a part of the batch, and the hash of the last.
    pub(super) fn add_part(&mut self, first: Place, payloads: &[&[u8]]) -> (BatchPart, u64) {
        let (start, mut place) = (self.buffer.len(), first);
        for payload in payloads {
            place.previous_hash = self.add_frame(&place, payload);
            place.index += 1;
        }
        let entries = u32::try_from(payloads.len()).expect("fewer entries than bytes");
        let bytes = u32::try_from(self.buffer.len() - start).expect("a batch is below 4 GiB");
        (BatchPart { shard: first.shard, first_index: first.index, entries, bytes }, place.previous_hash)
    }

    fn add_frame(&mut self, place: &Place, payload: &[u8]) -> u64 {
        let start = self.buffer.len();
        let hash = place.encode(payload, &mut self.buffer);
        self.framed.push(Framed { start, end: self.buffer.len(), hash });
        let length = aligned(self.buffer.len());
        self.buffer.resize(length, 0);
        hash
    }

    /// The header of the batch in the buffer.
    pub(super) fn end_batch(&self, parts: Vec<BatchPart>, id: u64) -> BatchHeader {
        let mut entries_hash = EntriesHash::new(id);
        self.framed.iter().for_each(|framed| entries_hash.add(framed.hash));
        BatchHeader { sequence: self.sequence, parts, entries_hash: entries_hash.finish() }
    }
}
