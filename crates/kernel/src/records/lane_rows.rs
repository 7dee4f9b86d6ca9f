//! The rows of what is ready, and the lanes that lead to them, as commands change them.
//!
//! Touches: the `Ready` and `Lanes` rows, which nothing else writes. Keeps: R5 and R7 for them.

use kv::Key;
use session::Halt;

use super::lanes::{Lane, Lanes, first_entry, first_suffix, queue_above, read_row, staged_lanes};
use super::queue::queue_of;
use crate::context::Applying;
use crate::keys::queues::{QueueId, ReadyPlace};
use crate::keys::{Keys, ThingId};
use crate::schedule::window::Entry;

impl Applying<'_> {
    /// The first row of a queue. With damage, by the lanes alone: a window meets it earlier or later, depending on what it
    /// has read before, and a replay must meet it where it was met first.
    pub(crate) fn first_ready(&mut self, queue: QueueId<'_>) -> Result<Option<Entry>, Halt> {
        if self.expects_damage || !self.windows.is_busy(queue) {
            return first_entry(self.state, &self.keys, queue);
        }
        if !self.windows.has_queue(queue) {
            // Where there is no lane, or one to nothing, there is nothing of the queue.
            let lanes = staged_lanes(self.state, &self.keys, queue)?;
            let begins = lanes.iter().filter_map(|(bucket, lane)| Some((bucket, lane.begins?)));
            self.windows.begin_queue(queue, begins);
        }
        self.windows.first_ready(self.state, &self.keys, queue)
    }

    /// A record can be claimed from now on: it gets a row in its queue, with lanes that lead there.
    pub(crate) fn put_ready(&mut self, record: &ThingId<'_>, place: ReadyPlace) -> Result<(), Halt> {
        let queue = QueueId { space: record.space, branch: record.branch, name: queue_of(record.name) };
        self.change_ready(record.bucket, queue, Keys::ready_record_suffix(place, record), true);
        self.windows.note_readied(queue);
        self.lead_to(record.bucket, queue, place)
    }

    /// A record cannot be claimed any more.
    pub(crate) fn delete_ready(&mut self, record: &ThingId<'_>, place: ReadyPlace) {
        let queue = QueueId { space: record.space, branch: record.branch, name: queue_of(record.name) };
        self.change_ready(record.bucket, queue, Keys::ready_record_suffix(place, record), false);
    }

    /// Makes sure that the lane of a queue in a bucket, and those above it, are at or before `place`.
    fn lead_to(&mut self, bucket: u16, queue: QueueId<'_>, place: ReadyPlace) -> Result<(), Halt> {
        let mut queue = queue;
        loop {
            let lanes = self.lanes(queue)?;
            let before = lanes.get(bucket);
            let begins = before.and_then(|lane| lane.begins).map_or(place, |begins| begins.min(place));
            let higher = queue_above(queue);
            // The queue that holds all stands in no other, so its lanes never move.
            let stands = before.map_or(place, |lane| lane.stands.min(place));
            let stands = if higher.is_none() { ReadyPlace::FIRST } else { stands };
            let after = Lane { stands, begins: Some(begins) };
            if before == Some(after) {
                return Ok(());
            }
            self.put_lanes(queue, lanes.with(bucket, Some(after)));
            // The lanes above are at or before where this one stands.
            let (Some(higher), true) = (higher, before.is_none_or(|lane| lane.stands != stands)) else {
                return Ok(());
            };
            if let Some(lane) = before {
                self.change_row_of(bucket, higher, lane.stands, queue, false);
            }
            self.change_row_of(bucket, higher, stands, queue, true);
            queue = higher;
        }
    }

    /// The first row of a queue in a bucket is at `first`, and so is its lane from now on; without one, the lane goes.
    pub(crate) fn correct_lane(
        &mut self,
        bucket: u16,
        queue: QueueId<'_>,
        first: Option<ReadyPlace>,
    ) -> Result<(), Halt> {
        let (lanes, before) = self.lanes_in(bucket, queue)?;
        let higher = queue_above(queue);
        let moved = |first| if higher.is_none() { ReadyPlace::FIRST } else { first };
        let after = first.map(|first| Lane { stands: moved(first), begins: Some(first) });
        self.put_lanes(queue, lanes.with(bucket, after));
        if let Some(higher) = higher.filter(|_| after.is_none_or(|lane| lane.stands != before.stands)) {
            self.change_row_of(bucket, higher, before.stands, queue, false);
            if let Some(lane) = after {
                self.change_row_of(bucket, higher, lane.stands, queue, true);
            }
        }
        Ok(())
    }

    /// Says where the rows of a queue begin in a bucket, and leaves it where it stands in the queue above.
    pub(crate) fn note_beginning(&mut self, bucket: u16, queue: QueueId<'_>) -> Result<(), Halt> {
        let (lanes, lane) = self.lanes_in(bucket, queue)?;
        let first = match lane.begins {
            None => None,
            Some(_) if self.windows.has_queue(queue) => {
                self.windows.first_ready_in(self.state, &self.keys, queue, bucket)?
            }
            Some(begins) => first_suffix(self.state, &self.keys, bucket, queue, begins)?,
        };
        let begins = first.map(|suffix| read_row(&suffix, queue)).transpose()?.map(|(place, _)| place);
        if lane.begins != begins {
            self.put_lanes(queue, lanes.with(bucket, Some(Lane { begins, ..lane })));
        }
        Ok(())
    }

    pub(crate) fn lanes(&self, queue: QueueId<'_>) -> Result<Lanes, Halt> {
        staged_lanes(self.state, &self.keys, queue)
    }

    /// The lanes of a queue with the one in a bucket where it has a row.
    pub(crate) fn lanes_in(&self, bucket: u16, queue: QueueId<'_>) -> Result<(Lanes, Lane), Halt> {
        let lanes = self.lanes(queue)?;
        match lanes.get(bucket) {
            Some(lane) => Ok((lanes, lane)),
            None => Err(Halt::Inconsistent(format!("R7: {queue:?} has no lane in bucket {bucket}"))),
        }
    }

    fn put_lanes(&mut self, queue: QueueId<'_>, lanes: Lanes) {
        let key = self.keys.lanes(queue);
        match lanes.row {
            None => self.state.delete(key),
            Some(row) => self.state.put(key, row),
        }
    }

    /// Adds or removes the row by which `queue` stands in the queue above it.
    fn change_row_of(
        &mut self,
        bucket: u16,
        above: QueueId<'_>,
        place: ReadyPlace,
        queue: QueueId<'_>,
        is_added: bool,
    ) {
        let added = &queue.name[above.name.len()..];
        self.change_ready(bucket, above, Keys::ready_queue_suffix(place, added), is_added);
    }

    fn change_ready(&mut self, bucket: u16, queue: QueueId<'_>, suffix: Key, is_added: bool) {
        let mut key = self.keys.ready_prefix(bucket, queue);
        key.extend_from_slice(&suffix);
        self.change_row(key, b"", is_added);
        self.windows.note_ready(queue, Entry { suffix, bucket }, is_added);
    }
}
