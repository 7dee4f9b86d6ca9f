//! Ready records by queue, and the lanes that lead to them from the queues above.
//!
//! A queue has rows in the order of claims: its ready records, and the queues below it. The row of a queue below says
//! that nothing in that queue has an earlier place. Its *lane* says where this row is, so that a record that comes in
//! finds it. Claiming from a queue takes its first row and follows it down; how many queues there are does not matter.
//!
//! A record that goes leaves the lanes above as they are. They stand too early then, or lead to nothing, until a claim
//! from above meets and corrects them, or the walk over empty queues does.
//!
//! Touches: the `Ready`, `Lane` and `Lanes` rows, which nothing else writes. Keeps: R5 for the rows of records, and R7
//! (a queue that has a row in a bucket has a lane there, which is at or before its first row and, but for the queue
//! that holds all, stands in the queue above; `Lanes` names exactly the buckets with lanes).

use kv::{DecodeError, Order, Reader, Staging, View, Writer};
use session::Halt;

use super::queue::{above, queue_of};
use super::window::Entry;
use crate::keys::queues::{QueueId, Ready, ReadyPlace, read_ready_suffix};
use crate::keys::{Keys, ThingId};
use crate::machine::Applying;

const FORMAT: u8 = 1;

/// The buckets in which a queue has lanes: a bit for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lanes {
    bits: Vec<u8>,
}

impl Lanes {
    /// Reads a row; an absent one names no bucket.
    pub fn decode(row: Option<&[u8]>) -> Result<Self, Halt> {
        let Some(row) = row else {
            return Ok(Self::default());
        };
        let read = || {
            let mut reader = Reader::new(row);
            reader.format(FORMAT)?;
            match reader.rest() {
                [] | [.., 0] => Err(DecodeError { what: "lanes that end in buckets without one" }),
                bits => Ok(Self { bits: bits.to_vec() }),
            }
        };
        read().map_err(|error| Halt::Undecodable { what: "the lanes of a queue", error })
    }

    fn encode(&self, writer: &mut Writer) {
        writer.u8(FORMAT).raw(&self.bits);
    }

    /// The buckets, in order.
    pub fn buckets(&self) -> impl Iterator<Item = u16> {
        let bytes = (0_u16..).zip(&self.bits);
        bytes.flat_map(|(at, byte)| (0..8).filter(move |bit| byte & (1 << bit) != 0).map(move |bit| at * 8 + bit))
    }

    fn set(&mut self, bucket: u16, has_lane: bool) {
        let (at, bit) = (usize::from(bucket / 8), 1_u8 << (bucket % 8));
        if has_lane {
            self.bits.resize(self.bits.len().max(at + 1), 0);
            self.bits[at] |= bit;
        } else if let Some(byte) = self.bits.get_mut(at) {
            *byte &= !bit;
            while self.bits.last() == Some(&0) {
                self.bits.pop();
            }
        }
    }
}

/// The buckets in which a queue has lanes, in a view.
pub fn lanes_of(view: &dyn View, keys: &Keys, queue: QueueId<'_>) -> Result<Lanes, Halt> {
    Lanes::decode(view.get(&keys.lanes(queue))?.as_deref())
}

/// Reads the place of a lane.
pub fn decode_lane(row: &[u8]) -> Result<ReadyPlace, Halt> {
    let read = || {
        let mut reader = Reader::new(row);
        reader.format(FORMAT)?;
        let place = ReadyPlace { order: reader.u64()?.cast_signed(), ready_us: reader.u64()? };
        reader.end().map(|()| place)
    };
    read().map_err(|error| Halt::Undecodable { what: "the lane of a queue", error })
}

/// The first row of a queue in a bucket at or after a place.
pub(crate) fn first_row(
    state: &Staging,
    keys: &Keys,
    bucket: u16,
    queue: QueueId<'_>,
    from: ReadyPlace,
) -> Result<Option<(ReadyPlace, Ready)>, Halt> {
    let (range, prefix_bytes) = keys.ready_from(bucket, queue, from);
    let row = state.scan(&range, Order::Ascending).next().transpose()?;
    row.map(|(key, _)| read_row(&key[prefix_bytes..], queue)).transpose()
}

/// Reads a row of a queue from its key after the queue's prefix.
pub(crate) fn read_row(suffix: &[u8], queue: QueueId<'_>) -> Result<(ReadyPlace, Ready), Halt> {
    read_ready_suffix(suffix, queue.space, queue.branch)
        .ok_or_else(|| Halt::Inconsistent(format!("R5: {} is no row of {queue:?}", suffix.escape_ascii())))
}

/// What a queue below adds to the name of the queue above it.
fn added<'name>(above: &str, queue: &'name str) -> &'name str {
    &queue[above.len()..]
}

impl Applying<'_> {
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

    /// Makes sure that the lane of a queue, and those above it, are at or before `place`.
    fn lead_to(&mut self, bucket: u16, queue: QueueId<'_>, place: ReadyPlace) -> Result<(), Halt> {
        let mut queue = queue;
        loop {
            let key = self.keys.lane(bucket, queue);
            let lane = self.state.get(&key)?.map(|row| decode_lane(&row)).transpose()?;
            let higher = above(queue.name).map(|name| QueueId { name, ..queue });
            match (lane, higher) {
                // It stands early enough, and so do the lanes above it.
                (Some(lane), _) if lane <= place => return Ok(()),
                (Some(lane), Some(higher)) => self.change_row_of(bucket, higher, lane, queue, false),
                (Some(lane), None) => return Err(Halt::Inconsistent(format!("R7: all queues stand at {lane:?}"))),
                (None, _) => self.set_lane_bit(bucket, queue, true)?,
            }
            let Some(higher) = higher else {
                // The queue that holds all stands in no other, so its lane never moves.
                self.state.put_encoded(key, |writer| encode_lane(writer, ReadyPlace::FIRST));
                return Ok(());
            };
            self.state.put_encoded(key, |writer| encode_lane(writer, place));
            self.change_row_of(bucket, higher, place, queue, true);
            queue = higher;
        }
    }

    /// Moves a lane that stands too early to where the first row of its queue is; without one, removes it.
    pub(crate) fn correct_lane(
        &mut self,
        bucket: u16,
        queue: QueueId<'_>,
        lane: ReadyPlace,
        first: Option<ReadyPlace>,
    ) -> Result<(), Halt> {
        let higher = above(queue.name).map(|name| QueueId { name, ..queue });
        if let Some(higher) = higher {
            self.change_row_of(bucket, higher, lane, queue, false);
        }
        let key = self.keys.lane(bucket, queue);
        let Some(first) = first else {
            self.state.delete(key);
            return self.set_lane_bit(bucket, queue, false);
        };
        self.state.put_encoded(key, |writer| encode_lane(writer, first));
        if let Some(higher) = higher {
            self.change_row_of(bucket, higher, first, queue, true);
        }
        Ok(())
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
        let suffix = Keys::ready_queue_suffix(place, added(above.name, queue.name));
        self.change_ready(bucket, above, suffix, is_added);
    }

    fn change_ready(&mut self, bucket: u16, queue: QueueId<'_>, suffix: kv::Key, is_added: bool) {
        let mut key = self.keys.ready_prefix(bucket, queue);
        key.extend_from_slice(&suffix);
        self.change_row(key, b"", is_added);
        self.windows.note_ready(queue, Entry { suffix, bucket }, is_added);
    }

    fn set_lane_bit(&mut self, bucket: u16, queue: QueueId<'_>, has_lane: bool) -> Result<(), Halt> {
        let key = self.keys.lanes(queue);
        let mut lanes = Lanes::decode(self.state.get(&key)?.as_deref())?;
        lanes.set(bucket, has_lane);
        match lanes.bits.is_empty() {
            true => self.state.delete(key),
            false => self.state.put_encoded(key, |writer| lanes.encode(writer)),
        }
        Ok(())
    }
}

fn encode_lane(writer: &mut Writer, place: ReadyPlace) {
    writer.u8(FORMAT).u64(place.order.cast_unsigned()).u64(place.ready_us);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_read_as_written() {
        let mut lanes = Lanes::default();
        for bucket in [0, 7, 8, 63, 4_095] {
            lanes.set(bucket, true);
        }
        lanes.set(8, false);
        lanes.set(9, false);
        let mut writer = Writer::new();
        lanes.encode(&mut writer);
        let read = Lanes::decode(Some(writer.as_slice())).expect("as written");
        assert_eq!(read.buckets().collect::<Vec<_>>(), [0, 7, 63, 4_095]);
        lanes.set(4_095, false);
        assert_eq!(lanes.bits.len(), 8, "buckets without a lane take no room at the end");
        assert!(Lanes::decode(Some(&[FORMAT, 1, 0])).is_err(), "one spelling for the same lanes");
        assert!(Lanes::decode(None).expect("none").buckets().next().is_none());
        // Part of the stored format; `docs/formats/records.md`.
        let mut lanes = Lanes::default();
        lanes.set(5, true);
        lanes.set(8, true);
        let mut writer = Writer::new();
        lanes.encode(&mut writer);
        assert_eq!(writer.as_slice(), [1, 0b0010_0000, 1]);
    }
}
