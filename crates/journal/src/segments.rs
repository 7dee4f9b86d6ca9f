//! Entries in segments: one set of files for all shards of a node, one write and one sync for each batch. The entries of
//! several shards that are appended together are one batch.
//!
//! Segments are reserved in full before they are used, and reused when no shard needs their entries any more. Space is
//! needed only for a new segment, and that is made ahead; without it, an append is refused before anything is written.
//! A file system that lacks space for what it had reserved may refuse a write; that batch is withdrawn.
//!
//! Touches: `segments/` and the watermark files in the journal's directory. Keeps: J1 to J4, J6 (the last entry is
//! compared and the next one written under one lock) and J7. Never: writes a batch before the one before it is durable, or
//! anything at all after a sync, or a write for which there was room, failed.

mod append;
mod log;
mod open;
mod read;
mod sizes;
mod spares;
mod walk;
mod write;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, RealDisk};
use crate::error::JournalError;
use crate::frame::ShardId;
use crate::segment::Segment;
use crate::shard_index::{SEGMENTS_BEHIND_MAX, ShardIndex};
use crate::watermark::{Known, Watermark};

use sizes::PublishedSizes;
use write::Framed;

/// Sizes of the files.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SegmentOptions {
    /// The size that segments grow to, each twice as large as the one before, from 1 MiB on. A segment is reserved in
    /// full before it is used, and freed whole. A batch that does not fit gets a larger one.
    pub file_bytes_target: u64,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        Self { file_bytes_target: 16 << 20 }
    }
}

impl SegmentOptions {
    /// Sets [`file_bytes_target`](Self::file_bytes_target).
    pub fn file_bytes_target(mut self, bytes: u64) -> Self {
        self.file_bytes_target = bytes;
        self
    }
}

/// An [`EntryLog`](crate::EntryLog) in segments.
pub struct SegmentFiles<D: Disk = RealDisk> {
    disk: Arc<D>,
    /// `segments/`, and the handle that locks and syncs it.
    path: PathBuf,
    directory: D::Directory,
    id: u64,
    segment_bytes_target: u64,
    sizes: PublishedSizes,
    state: Mutex<State<D>>,
}

struct State<D: Disk> {
    shards: BTreeMap<ShardId, ShardIndex>,
    watermark: Watermark<D>,
    /// The segments with kept entries, oldest first. The last one is appended to; only it can be empty.
    segments: VecDeque<Segment<D::File>>,
    /// Reserved segments for the next rolls, with the numbers that follow.
    spares: VecDeque<Segment<D::File>>,
    spares_max: usize,
    /// The number of the next batch.
    sequence: u64,
    /// Where the oldest batch is that a cut can give up, counted from the first segment on; none if there is nothing to
    /// give up.
    kept_from: Option<u64>,
    /// Where in the last segment a batch is that there was no room for; nothing is appended before it is withdrawn.
    refused_at: Option<u64>,
    /// A segment was begun, and the watermark does not say so yet.
    rolled: bool,
    /// Where in the last segment the next attempt at a spare is due, after one that failed.
    spare_retry_at: u64,
    failure: Option<String>,
    /// Where a batch is put together: room for a segment's header, then the batch.
    buffer: Vec<u8>,
    /// The entries in the buffer.
    framed: Vec<Framed>,
}

impl SegmentFiles<RealDisk> {
    /// Creates an empty journal in `directory`, which must exist. `id` becomes part of every hash.
    pub fn create(directory: &Path, id: u64, options: &SegmentOptions) -> Result<Self, JournalError> {
        Self::create_on(Arc::new(RealDisk), directory, id, options)
    }

    /// Opens the journal in `directory`.
    pub fn open(directory: &Path, id: u64, options: &SegmentOptions) -> Result<Self, JournalError> {
        Self::open_on(Arc::new(RealDisk), directory, id, options)
    }
}

impl<D: Disk> SegmentFiles<D> {
    fn lock(&self) -> MutexGuard<'_, State<D>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes durable what is known, and frees the segments that nothing needs any more. Without room for that, the
    /// segments stay until the next attempt.
    fn write_watermark(&self, state: &mut State<D>) -> Result<(), JournalError> {
        state.refuse_if_failed()?;
        let known = state.known();
        let frees = state.segments.front().is_some_and(|segment| segment.number < known.first_segment);
        let written = match frees {
            // Segments are free once both files say so: until then, none may be missed.
            true => state.watermark.write_to_both(&known),
            false => state.watermark.write(known),
        };
        written.map_err(|error| state.fail_unless_no_space(error))?;
        state.rolled = false;
        if frees {
            self.free_segments(state)?;
            self.sizes.publish(state);
        }
        Ok(())
    }

    /// Writes the last entry of a shard again if it alone keeps old segments from being freed. One shard at a time: what
    /// is written here can make laggards of others, and cuts come again and again.
    fn move_laggard(&self, state: &mut State<D>) -> Result<(), JournalError> {
        let Some(shard) = state.laggard() else { return Ok(()) };
        let index = &state.shards[&shard];
        let place = index.oldest().expect("a laggard has an entry");
        let last_index = index.last_index;
        let segment = state.segment(place.segment).expect("a kept segment").clone();
        let entry = self.last_entry_in(&segment, place.offset, shard, last_index)?;
        drop(segment);
        state.begin_batch(1);
        let (part, _) = state.add_part(entry.place(), &[&entry.payload]);
        let header = state.end_batch(vec![part], self.id);
        match self.write_batch(state, &header) {
            Ok(at) => state.shard(shard).add(part.place(at), last_index),
            // Without space, the old segments stay.
            Err(JournalError::NoSpace { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl<D: Disk> State<D> {
    fn refuse_if_failed(&self) -> Result<(), JournalError> {
        match &self.failure {
            Some(first) => Err(JournalError::Poisoned { first: first.clone() }),
            None => Ok(()),
        }
    }

    /// Remembers that nothing may be written any more.
    fn fail(&mut self, error: JournalError) -> JournalError {
        self.failure.get_or_insert_with(|| error.to_string());
        error
    }

    /// A lack of room leaves everything as it was; any other error stops the journal.
    fn fail_unless_no_space(&mut self, error: JournalError) -> JournalError {
        match error {
            JournalError::NoSpace { .. } => error,
            error => self.fail(error),
        }
    }

    fn shard(&mut self, shard: ShardId) -> &mut ShardIndex {
        self.shards.entry(shard).or_default()
    }

    fn segment(&self, number: u64) -> Option<&Segment<D::File>> {
        let position = number.checked_sub(self.segments.front()?.number)?;
        self.segments.get(usize::try_from(position).ok()?)
    }

    /// The oldest segment that some shard needs.
    fn first_needed(&self) -> u64 {
        let needed = self.shards.values().filter_map(ShardIndex::oldest).map(|place| place.segment).min();
        needed.unwrap_or_else(|| self.segments.back().map_or(0, |segment| segment.number))
    }

    fn known(&self) -> Known {
        let marks = self.shards.iter().filter_map(|(shard, index)| Some((*shard, index.mark()?)));
        Known { first_segment: self.first_needed(), marks: marks.collect() }
    }

    /// A shard that keeps segments alive by its last entry only, while the others are well ahead.
    fn laggard(&self) -> Option<ShardId> {
        let busy = self.shards.values().filter(|index| !index.rests());
        let needed = busy.filter_map(ShardIndex::oldest).map(|place| place.segment).min();
        let newest = needed.or_else(|| self.segments.back().map(|segment| segment.number))?;
        let lags = |index: &ShardIndex| {
            index.rests() && index.oldest().is_some_and(|place| place.segment + SEGMENTS_BEHIND_MAX <= newest)
        };
        self.shards.iter().find(|(_, index)| lags(index)).map(|(shard, _)| *shard)
    }
}

impl<D: Disk> SegmentFiles<D> {
    /// The first kept entry of a shard.
    pub fn first_index(&self, shard: ShardId) -> Option<u64> {
        self.lock().shards.get(&shard)?.mark().map(|mark| mark.first_kept)
    }

    /// The last entry of a shard.
    pub fn last_index(&self, shard: ShardId) -> Option<u64> {
        self.lock().shards.get(&shard)?.mark().map(|mark| mark.last)
    }
}

impl<D: Disk> SegmentFiles<D> {
    /// The first append to a new segment is followed by a watermark, before the next one: a segment that is missing
    /// later is missed.
    fn do_upkeep(&self, state: &mut State<D>) -> Result<(), JournalError> {
        if state.rolled { self.write_watermark(state) } else { Ok(()) }
    }
}
