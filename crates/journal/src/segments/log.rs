//! Segments as a log.
//!
//! Keeps: the duties of a log, as `segments/append.rs`, `segments/read.rs` and the others do.

use crate::disk::Disk;
use crate::error::JournalError;
use crate::frame::{Entry, ShardId};
use crate::log::{Append, Ends, EntryLog, Position, Verified};
use crate::shard_index::ShardIndex;

use super::SegmentFiles;
use super::append::NewPart;
use super::spares::SPARES_MAX;

impl<D: Disk> EntryLog for SegmentFiles<D> {
    /// One batch and one sync, unless there is more than goes into a batch.
    fn append_behind(&self, entries: &[Append<'_>]) -> Vec<Result<Position, JournalError>> {
        let parts = entries.iter().map(|entry| NewPart { entry, payloads: std::slice::from_ref(&entry.payload) });
        let parts: Vec<NewPart<'_>> = parts.collect();
        self.append_parts(&mut self.lock(), &parts)
    }

    fn read(&self, shard: ShardId, first: u64, bytes_max: usize) -> Result<Vec<(Entry, Position)>, JournalError> {
        self.read_entries(shard, first, bytes_max)
    }

    fn ends(&self, shard: ShardId) -> Result<Ends, JournalError> {
        let state = self.lock();
        let Some(index) = state.shards.get(&shard) else { return Ok(Ends::default()) };
        Ok(Ends { first_kept: index.mark().map(|mark| mark.first_kept), last: index.last(), history: index.history })
    }

    fn start_after(&self, shard: ShardId, at: Position, history: u64) -> Result<(), JournalError> {
        let mut state = self.lock();
        if state.shards.get(&shard).is_some_and(ShardIndex::has_entries) {
            let what = "cannot set the start of a shard that already has entries";
            return Err(JournalError::damaged(format!("shard {shard}"), what));
        }
        state.shards.insert(shard, ShardIndex::starting_after(at, history));
        Ok(())
    }

    fn cut(&self, shard: ShardId, first_kept: u64) -> Result<(), JournalError> {
        let mut state = self.lock();
        let state = &mut *state;
        // The last entry stays: it holds the shard's place, and the hash that the next entry refers to.
        match state.shards.get(&shard).and_then(ShardIndex::mark) {
            Some(mark) if first_kept.min(mark.last) > mark.first_kept => {}
            _ => return Ok(()),
        }
        state.refuse_if_failed()?;
        state.shard(shard).cut(first_kept);
        self.find_first_kept(state, shard);
        self.move_laggard(state)?;
        let written = self.write_watermark(state);
        state.find_kept_from();
        self.sizes.publish(state);
        written
    }

    fn upkeep(&self) -> Result<(), JournalError> {
        let mut state = self.lock();
        state.refuse_if_failed()?;
        self.do_upkeep(&mut state)?;
        self.prepare_spare(&mut state)?;
        self.sizes.publish(&state);
        Ok(())
    }

    fn keep_spares(&self, keep: bool) -> Result<(), JournalError> {
        let mut state = self.lock();
        state.refuse_if_failed()?;
        state.spares_max = if keep { SPARES_MAX } else { 1 };
        self.remove_spares(&mut state);
        self.sizes.publish(&state);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.sizes.files_bytes()
    }

    fn kept_bytes(&self) -> u64 {
        self.sizes.kept_bytes()
    }

    fn bytes_from(&self, shard: ShardId, first: u64) -> Option<u64> {
        self.lock().bytes_from(shard, first)
    }

    fn settle(&self) -> Result<(), JournalError> {
        self.write_watermark(&mut self.lock())
    }

    fn verify(&self) -> Result<Verified, JournalError> {
        self.verify_all()
    }
}
