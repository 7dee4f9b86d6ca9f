//! Appends: the entries of one call become one batch, whichever shards they are of.
//!
//! Keeps: J2; J6, each shard by itself: an entry that is refused does not concern the others; J7: the entries of a batch
//! are durable together, or none of them is acknowledged. Never: puts two parts of one shard into a batch.

use std::collections::BTreeSet;

use crate::batch::{BatchPart, PART_BYTES, PARTS_MAX, SEGMENT_HEADER_BYTES, aligned, batch_header_bytes};
use crate::disk::Disk;
use crate::error::JournalError;
use crate::file_place::FilePlace;
use crate::frame::{EntryKind, Place, ShardId};
use crate::log::{Append, ENTRY_OVERHEAD_BYTES_MAX, Position, check_behind};
use crate::shard_index::ShardIndex;

use super::{SegmentFiles, State};

/// Entries of one shard to append: one for each payload, all like `entry`.
#[derive(Clone, Copy)]
pub(super) struct NewPart<'a> {
    pub(super) entry: &'a Append<'a>,
    pub(super) payloads: &'a [&'a [u8]],
}

/// A part that is in the buffer.
struct Buffered {
    part: BatchPart,
    last_hash: u64,
    history: u64,
}

impl<D: Disk> SegmentFiles<D> {
    /// Appends payloads after the last entry of `shard`, durably, and returns the index of the first. They are commands of
    /// this process; the history of a shard that has none is the journal's id.
    pub fn append(&self, shard: ShardId, term: u64, payloads: &[&[u8]]) -> Result<u64, JournalError> {
        let mut state = self.lock();
        let index = state.shards.get(&shard);
        let after = index.map_or(Position::START, ShardIndex::last);
        let history = index.and_then(|index| index.history).unwrap_or(self.id);
        let kind = EntryKind::COMMANDS;
        let entry = Append { shard, after, kind, term, node: 0, history, payload: &[] };
        let appended = self.append_parts(&mut state, &[NewPart { entry: &entry, payloads }]).pop();
        appended.expect("an outcome for each part").map(|_| after.index + 1)
    }

    /// Appends parts, as many in one batch as go there, and returns where the last entry of each is.
    pub(super) fn append_parts(
        &self,
        state: &mut State<D>,
        parts: &[NewPart<'_>],
    ) -> Vec<Result<Position, JournalError>> {
        let mut outcomes = Vec::with_capacity(parts.len());
        let mut left = parts;
        while !left.is_empty() {
            let (batch, later) = left.split_at(self.parts_of_batch(left));
            outcomes.extend(self.append_batch(state, batch));
            left = later;
        }
        outcomes
    }

    /// How many of the parts are the next batch: it has no shard twice, and fits into a segment unless it is one part.
    fn parts_of_batch(&self, parts: &[NewPart<'_>]) -> usize {
        if parts.len() == 1 {
            return 1;
        }
        let mut shards = BTreeSet::new();
        let mut bytes = SEGMENT_HEADER_BYTES + batch_header_bytes(0);
        let goes_in = |part: &&NewPart<'_>| {
            bytes += PART_BYTES + part.payloads.iter().map(|payload| frame_bytes(payload)).sum::<usize>();
            bytes as u64 <= self.segment_bytes_target && shards.insert(part.entry.shard)
        };
        parts.iter().take(PARTS_MAX).take_while(goes_in).count().max(1)
    }

    /// Appends the parts that are behind the last entries of their shards, in one batch.
    fn append_batch(&self, state: &mut State<D>, parts: &[NewPart<'_>]) -> Vec<Result<Position, JournalError>> {
        let mut outcomes: Vec<_> = parts.iter().map(|part| state.check(part.entry)).collect();
        let is_new = |(part, outcome): &(&NewPart<'_>, &mut Result<_, _>)| !part.payloads.is_empty() && outcome.is_ok();
        let (accepted, outcomes_left): (Vec<NewPart<'_>>, Vec<&mut Result<Position, JournalError>>) =
            parts.iter().zip(&mut outcomes).filter(is_new).map(|(part, outcome)| (*part, outcome)).unzip();
        if !accepted.is_empty() {
            let written = self.write_parts(state, &accepted);
            for (part, outcome) in accepted.iter().zip(outcomes_left) {
                *outcome = match &written {
                    Ok(()) => Ok(state.shards[&part.entry.shard].last()),
                    Err(error) => Err(error.clone()),
                };
            }
        }
        outcomes
    }

    fn write_parts(&self, state: &mut State<D>, parts: &[NewPart<'_>]) -> Result<(), JournalError> {
        state.refuse_if_failed()?;
        self.do_upkeep(state)?;
        let begin = parts.iter().filter(|part| !state.has_entries(part.entry.shard)).count();
        if begin > 0 {
            // Or the watermark would need space later, when it must not.
            let shards = state.shards.len() + begin;
            let reserved = state.watermark.reserve(shards);
            let action = "reserve space for the watermark";
            reserved.map_err(|error| state.fail_unless_no_space(JournalError::no_room_or_io(action, &error)))?;
        }
        state.begin_batch(parts.len());
        let buffered: Vec<Buffered> = parts.iter().map(|part| state.buffer_part(part)).collect();
        let header = state.end_batch(buffered.iter().map(|buffered| buffered.part).collect(), self.id);
        let at = self.write_batch(state, &header)?;
        for buffered in &buffered {
            state.appended(buffered, at);
        }
        self.sizes.publish(state);
        Ok(())
    }
}

impl<D: Disk> State<D> {
    /// Where the shard ends, if the entry is to be appended there.
    fn check(&self, entry: &Append<'_>) -> Result<Position, JournalError> {
        let index = self.shards.get(&entry.shard);
        let found = index.map_or(Position::START, ShardIndex::last);
        check_behind(entry, found, index.and_then(|index| index.history)).map(|()| found)
    }

    fn has_entries(&self, shard: ShardId) -> bool {
        self.shards.get(&shard).is_some_and(ShardIndex::has_entries)
    }

    fn buffer_part(&mut self, new: &NewPart<'_>) -> Buffered {
        let Append { shard, after, kind, term, node, history, payload: _ } = *new.entry;
        let durable = if self.has_entries(shard) { after.index } else { 0 };
        let index = after.index + 1;
        let first = Place { index, shard, kind, term, node, history, durable, previous_hash: after.hash };
        let (part, last_hash) = self.add_part(first, new.payloads);
        // A hole would make the directory impossible to open, so it is ruled out here (J2).
        let follows = self.shards.get(&shard).is_none_or(|index| index.follows(part.first_index, part.entries));
        assert!(follows, "J2: {} then {index}", after.index);
        Buffered { part, last_hash, history }
    }

    /// A part is durable.
    fn appended(&mut self, buffered: &Buffered, batch: FilePlace) {
        let Buffered { part, last_hash, history } = *buffered;
        let index = self.shard(part.shard);
        index.add(part.place(batch), part.last_index());
        (index.last_hash, index.history) = (last_hash, Some(history));
        let oldest = index.oldest().filter(|_| !index.rests());
        self.include(oldest);
    }
}

fn frame_bytes(payload: &[u8]) -> usize {
    aligned(ENTRY_OVERHEAD_BYTES_MAX + payload.len())
}
