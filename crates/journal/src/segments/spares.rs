//! Room for the next batch: rolling to a spare segment, making spares ahead, and reusing segments that are free.
//!
//! Keeps: a spare has its name durably before a batch goes into it, and is reserved in full. A missing resource (space,
//! a quota, a descriptor) costs a spare and nothing else. Never: retries a failed sync.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::batch::SEGMENT_HEADER_BYTES;
use crate::disk::{Disk, DiskDirectory, DiskFile};
use crate::error::{JournalError, is_lack_of_room};
use crate::segment::{Segment, path_of};

use super::{SegmentFiles, State};

/// How many free segments are kept for reuse. A sync of blocks that were written before takes half as long as one of
/// blocks that are only reserved: the file system has nothing to note down.
pub(super) const SPARES_MAX: usize = 4;

/// The size of the first segment. Each new one is twice as large as the one before, so that the files of a small journal
/// stay small.
const FIRST_SEGMENT_BYTES: u64 = 1 << 20;

/// How often a spare is tried to be made while a segment is filled.
const ATTEMPTS_PER_SEGMENT: u64 = 16;

impl<D: Disk> SegmentFiles<D> {
    /// Makes sure that the last segment has room for a batch, or begins the next one. If there is no space for that,
    /// nothing has changed.
    pub(super) fn make_room(&self, state: &mut State<D>, batch_bytes: u64) -> Result<(), JournalError> {
        // Power loss may have left a segment without its space; one for a single batch would not last.
        let alone = (SEGMENT_HEADER_BYTES as u64 + batch_bytes).max(self.first_length());
        let last = state.segments.back_mut().expect("there is always one to append to");
        if last.end + batch_bytes <= last.length {
            return Ok(());
        }
        if last.is_empty() {
            return lengthen(last, alone).map_err(|error| state.fail_unless_no_space(error));
        }
        let base = last.base + last.end;
        if state.spares.is_empty() {
            let spare = self.new_spare(state, alone)?;
            state.spares.push_back(spare);
        }
        let spare = state.spares.front_mut().expect("made above");
        lengthen(spare, alone).map_err(|error| state.fail_unless_no_space(error))?;
        let begun = state.spares.pop_front().map(|spare| Segment { base, ..spare });
        state.segments.extend(begun);
        (state.rolled, state.spare_retry_at) = (true, 0);
        Ok(())
    }

    /// Makes a spare if there is none. Without space there will be none, and the next attempt is a few appends later.
    pub(super) fn prepare_spare(&self, state: &mut State<D>) -> Result<(), JournalError> {
        let end = state.segments.back().map_or(0, |segment| segment.end);
        if end < state.spare_retry_at {
            return Ok(());
        }
        let length = self.next_length(state);
        let prepared = match state.spares.front_mut() {
            // Power loss may have left a name without the space behind it.
            Some(spare) => lengthen(spare, length),
            None => self.new_spare(state, 0).map(|spare| state.spares.push_back(spare)),
        };
        match prepared {
            Err(JournalError::NoSpace { reason }) => {
                tracing::debug!(%reason, "no spare segment for the journal");
                state.spare_retry_at = end + length / ATTEMPTS_PER_SEGMENT;
                Ok(())
            }
            prepared => prepared.map_err(|error| state.fail(error)),
        }
    }

    /// The length of the segment after the last one.
    fn next_length(&self, state: &State<D>) -> u64 {
        let doubled = state.segments.back().map_or(0, |last| last.length * 2);
        doubled.min(self.segment_bytes_target).max(self.first_length())
    }

    /// Creates a spare of the wanted length, or one as small as the first if there is no space for more.
    fn new_spare(&self, state: &mut State<D>, length_min: u64) -> Result<Segment<D::File>, JournalError> {
        let number = state.next_number();
        let path = path_of(&self.path, number);
        let attempt = |length: u64| {
            self.reserve(number, length.max(length_min)).inspect_err(|_| {
                // What is left of it would take space that somebody needs.
                let _ = self.disk.remove(&path);
            })
        };
        let spare = match attempt(self.next_length(state)) {
            Err(error) if is_lack_of_room(&error) => attempt(self.first_length()),
            attempted => attempted,
        };
        let spare = spare.map_err(|error| state.fail_unless_no_space(cannot_reserve(&error)))?;
        self.sync_names(state)?;
        Ok(spare)
    }

    /// Creates the first segment of a new journal.
    pub(super) fn first_segment(&self) -> io::Result<Segment<D::File>> {
        self.reserve(1, self.first_length())
    }

    fn first_length(&self) -> u64 {
        FIRST_SEGMENT_BYTES.min(self.segment_bytes_target)
    }

    /// Creates a segment, or takes the file that has its name: the remains of an attempt.
    fn reserve(&self, number: u64, length: u64) -> io::Result<Segment<D::File>> {
        let path = path_of(&self.path, number);
        let file = match self.disk.create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.disk.open(&path)?,
            created => created?,
        };
        file.allocate(length)?;
        let length = file.length()?;
        Ok(Segment::empty(number, file, length))
    }

    fn sync_names(&self, state: &mut State<D>) -> Result<(), JournalError> {
        let synced = self.directory.sync();
        synced.map_err(|error| state.fail(JournalError::io("sync the directory of segments", error)))
    }

    /// Removes the spares above their maximum, the last ones first: the numbers of the others still follow each other.
    pub(super) fn remove_spares(&self, state: &mut State<D>) {
        while state.spares.len() > state.spares_max {
            let Some(spare) = state.spares.pop_back() else { break };
            self.remove_unneeded(&path_of(&self.path, spare.number));
        }
    }

    fn remove_unneeded(&self, path: &Path) {
        if let Err(error) = self.disk.remove(path) {
            // It is removed when the journal is next opened.
            tracing::warn!(%error, path = %path.display(), "a segment that nobody needs was not removed");
        }
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
            let is_wanted = state.spares.len() + recycled.len() < state.spares_max;
            let number = state.next_number() + recycled.len() as u64;
            let renamed = is_unread && is_wanted && segment.length == self.segment_bytes_target && {
                self.disk.rename(&path, &path_of(&self.path, number)).is_ok()
            };
            if renamed {
                let end = SEGMENT_HEADER_BYTES as u64;
                recycled.push(Segment { number, end, ..segment });
            } else {
                self.remove_unneeded(&path);
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
        segment.file.allocate(length).map_err(|error| cannot_reserve(&error))?;
        segment.length = length;
    }
    Ok(())
}

fn cannot_reserve(error: &io::Error) -> JournalError {
    JournalError::no_room_or_io("reserve a segment", error)
}
