//! How large the journal is: the bytes of its files, and those of the entries that a cut can give up.
//!
//! Both are published, so that reading them waits for nobody: the state is locked during a sync. Never: reads a file.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::disk::Disk;
use crate::frame::ShardId;
use crate::shard_index::{BatchPlace, ShardIndex};

use super::State;

/// The sizes that everybody can read.
#[derive(Default)]
pub(super) struct PublishedSizes {
    files_bytes: AtomicU64,
    kept_bytes: AtomicU64,
}

impl PublishedSizes {
    pub(super) fn files_bytes(&self) -> u64 {
        self.files_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        self.kept_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn publish<D: Disk>(&self, state: &State<D>) {
        let segments = state.segments.iter().chain(&state.spares).map(|segment| segment.length).sum::<u64>();
        self.files_bytes.store(segments + state.watermark.files_bytes(), Ordering::Relaxed);
        let end = state.segments.back().map_or(0, |last| last.base + last.end);
        self.kept_bytes.store(state.kept_from.map_or(0, |from| end - from), Ordering::Relaxed);
    }
}

impl<D: Disk> State<D> {
    /// Finds the oldest batch that a cut can give up.
    pub(super) fn find_kept_from(&mut self) {
        let busy = self.shards.values().filter(|index| !index.rests()).filter_map(ShardIndex::oldest);
        self.kept_from = busy.filter_map(|place| self.position_of(place)).min();
    }

    /// A shard has more entries than before.
    pub(super) fn include(&mut self, index_oldest: Option<BatchPlace>) {
        let position = index_oldest.and_then(|place| self.position_of(place));
        self.kept_from = match (self.kept_from, position) {
            (Some(kept_from), Some(position)) => Some(kept_from.min(position)),
            (kept_from, position) => kept_from.or(position),
        };
    }

    /// The bytes from an entry of a shard to the end, up to the place that it is walked to from.
    pub(super) fn bytes_from(&self, shard: ShardId, first: u64) -> Option<u64> {
        let index = self.shards.get(&shard)?;
        if first > index.last_index {
            return Some(0);
        }
        let begin = index.find(first).and_then(|place| self.position_of(place))?;
        self.segments.back().map(|last| (last.base + last.end).saturating_sub(begin))
    }

    fn position_of(&self, place: BatchPlace) -> Option<u64> {
        self.segment(place.segment).map(|segment| segment.base + place.offset)
    }
}
