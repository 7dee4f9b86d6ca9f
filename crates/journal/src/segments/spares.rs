//! Room for the next batch: rolling to a spare segment, making spares ahead, and reusing segments that are free.
//!
//! Keeps: a spare has its name durably before a batch goes into it, and is reserved in full. A missing resource (space,
//! a quota, a descriptor) costs a spare and nothing else. Never: retries a failed sync.

use std::io;
use std::sync::Arc;

use crate::batch::SEGMENT_HEADER_BYTES;
use crate::disk::{Disk, DiskDirectory, DiskFile};
use crate::error::JournalError;
use crate::segment::{Segment, path_of};

use super::{SegmentFiles, State};

/// How many free segments are kept for reuse. Files that were written before take batches faster than new ones.
const SPARES_MAX: usize = 4;

/// How often a spare is tried to be made while a segment is filled.
const ATTEMPTS_PER_SEGMENT: u64 = 16;

impl<D: Disk> SegmentFiles<D> {
    /// Makes sure that the last segment has room for a batch, or begins the next one. If there is no space for that,
    /// nothing has changed.
    pub(super) fn make_room(&self, state: &mut State<D>, batch_bytes: u64) -> Result<(), JournalError> {
        let alone = SEGMENT_HEADER_BYTES as u64 + batch_bytes;
        let last = state.segments.back_mut().expect("there is always one to append to");
        if last.end + batch_bytes <= last.length {
            return Ok(());
        }
        if last.is_empty() {
            return lengthen(last, alone);
        }
        if state.spares.is_empty() {
            let spare = self.new_spare(state)?;
            state.spares.push_back(spare);
        }
        let spare = state.spares.front_mut().expect("made above");
        lengthen(spare, alone.max(self.segment_bytes))?;
        state.segments.extend(state.spares.pop_front());
        (state.rolled, state.spare_retry_at) = (true, 0);
        Ok(())
    }

    /// Makes a spare if there is none. Without space there will be none, and the next attempt is a few appends later.
    pub(super) fn prepare_spare(&self, state: &mut State<D>) -> Result<(), JournalError> {
        let end = state.segments.back().map_or(0, |segment| segment.end);
        if end < state.spare_retry_at {
            return Ok(());
        }
        let prepared = match state.spares.front_mut() {
            Some(spare) => lengthen(spare, self.segment_bytes),
            None => self.new_spare(state).map(|spare| state.spares.push_back(spare)),
        };
        match prepared {
            Err(JournalError::NoSpace { reason }) => {
                tracing::debug!(%reason, "no spare segment for the journal");
                state.spare_retry_at = end + self.segment_bytes / ATTEMPTS_PER_SEGMENT;
                Ok(())
            }
            prepared => prepared,
        }
    }

    fn new_spare(&self, state: &mut State<D>) -> Result<Segment<D::File>, JournalError> {
        let number = state.next_number();
        let path = path_of(&self.path, number);
        let spare = self.reserve(number).inspect_err(|_| {
            // What is left of it would take space that somebody needs.
            let _ = self.disk.remove(&path);
        });
        let spare = spare.map_err(|error| JournalError::no_space(&error))?;
        self.sync_names(state)?;
        Ok(spare)
    }

    /// Creates a segment, or takes the file that has its name: the remains of an attempt.
    pub(super) fn reserve(&self, number: u64) -> io::Result<Segment<D::File>> {
        let path = path_of(&self.path, number);
        let file = match self.disk.create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.disk.open(&path)?,
            created => created?,
        };
        file.allocate(self.segment_bytes)?;
        let length = file.length()?;
        Ok(Segment::empty(number, file, length))
    }

    fn sync_names(&self, state: &mut State<D>) -> Result<(), JournalError> {
        let synced = self.directory.sync();
        synced.map_err(|error| state.fail(JournalError::io("sync the directory of segments", error)))
    }

    /// Makes spares of the segments that no shard needs, or removes them. The watermark knows already.
    pub(super) fn free_segments(&self, state: &mut State<D>) -> Result<(), JournalError> {
        let first_needed = state.first_needed();
        let mut recycled = Vec::new();
        while state.segments.front().is_some_and(|segment| segment.number < first_needed) {
            let Some(segment) = state.segments.pop_front() else { break };
            let path = path_of(&self.path, segment.number);
            // A reader goes on with its file, so that file must not get another content.
            let is_unread = Arc::strong_count(&segment.file) == 1;
            let is_wanted = state.spares.len() + recycled.len() < SPARES_MAX;
            let number = state.next_number() + recycled.len() as u64;
            let renamed = is_unread && is_wanted && segment.length == self.segment_bytes && {
                self.disk.rename(&path, &path_of(&self.path, number)).is_ok()
            };
            if renamed {
                let end = SEGMENT_HEADER_BYTES as u64;
                recycled.push(Segment { number, end, ..segment });
            } else if let Err(error) = self.disk.remove(&path) {
                // It is removed when the journal is next opened.
                tracing::warn!(%error, path = %path.display(), "a segment that nobody needs was not removed");
            }
        }
        if !recycled.is_empty() {
            self.sync_names(state)?;
            state.spares.extend(recycled);
        }
        Ok(())
    }
}

impl<D: Disk> State<D> {
    /// The number that the next segment gets.
    fn next_number(&self) -> u64 {
        let last = self.spares.back().or(self.segments.back());
        last.map_or(1, |segment| segment.number + 1)
    }
}

/// Reserves space for a segment, unless it is long enough.
fn lengthen<F: DiskFile>(segment: &mut Segment<F>, length: u64) -> Result<(), JournalError> {
    if segment.length < length {
        segment.file.allocate(length).map_err(|error| JournalError::no_space(&error))?;
        segment.length = length;
    }
    Ok(())
}
