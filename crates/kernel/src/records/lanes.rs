//! Ready records by queue, and the lanes that lead to them from the queues above.
//!
//! A queue has rows in the order of claims: its ready records, and the queues below it. The row of a queue below says
//! that nothing in that queue has an earlier place. Where it stands, and where its own rows begin, is in the *lanes* of
//! the queue below: one row for all buckets. Claiming from a queue takes its first row and follows it down; how many
//! queues there are does not matter, nor in how many buckets a queue is.
//!
//! Lanes may say too early a place, never too late a one. A record that goes leaves them as they are, except that a claim
//! from a queue says where the next row of that queue is. Whoever meets a wrong one corrects it.
//!
//! Touches: the `Ready` and `Lanes` rows, which nothing else writes. Keeps: R5 for the rows of records, and R7 (the lanes
//! of a queue have an entry for every bucket in which it has a row, at or before its first row there; each entry stands
//! for one row in the queue above, at or before that, but for the queue that holds all).

use kv::{Bytes, DecodeError, Key, Order, Staging, View, copied};
use session::Halt;

use super::queue::above;
use crate::keys::Keys;
use crate::keys::queues::{QueueId, Ready, ReadyPlace, read_ready_suffix};
use crate::schedule::window::Entry;

const FORMAT: u8 = 1;

/// Bytes of a lane: bucket (2), where it stands (16), whether it has rows (1), where they begin (16).
const LANE_BYTES: usize = 35;

/// The lane of a queue in one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Where the queue stands in the queue above it.
    pub stands: ReadyPlace,
    /// Nothing of the queue is before this; none if it has nothing.
    pub begins: Option<ReadyPlace>,
}

/// The lanes of a queue: one for each bucket in which it stands in the queue above, in the order of buckets. Kept as it is
/// stored, because most of the time one of very many is looked at or changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lanes {
    /// None without lanes.
    pub(super) row: Option<Bytes>,
}

impl Lanes {
    /// Reads a row; an absent one has no lanes.
    pub fn decode(row: Option<Bytes>) -> Result<Self, Halt> {
        let undecodable = |what| Halt::Undecodable { what: "the lanes of a queue", error: DecodeError { what } };
        let Some(row) = row else {
            return Ok(Self::default());
        };
        if row.first() != Some(&FORMAT) {
            return Err(undecodable("an unknown format"));
        }
        if !(row.len() - 1).is_multiple_of(LANE_BYTES) || row.len() == 1 {
            return Err(undecodable("lanes of a wrong length"));
        }
        let lanes = Self { row: Some(row) };
        match lanes.chunks().is_sorted_by(|left, right| bucket_of(left) < bucket_of(right)) {
            true => Ok(lanes),
            false => Err(undecodable("lanes out of order")),
        }
    }

    /// The stored lanes, without the format before them.
    fn stored(&self) -> &[u8] {
        self.row.as_deref().map_or(&[], |row| &row[1..])
    }

    fn chunks(&self) -> std::slice::ChunksExact<'_, u8> {
        self.stored().chunks_exact(LANE_BYTES)
    }

    fn position(&self, bucket: u16) -> Result<usize, usize> {
        let stored = self.stored();
        let (mut low, mut high) = (0, stored.len() / LANE_BYTES);
        while low < high {
            let middle = low.midpoint(high);
            match bucket_of(&stored[middle * LANE_BYTES..]).cmp(&bucket) {
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// The lane in a bucket.
    pub fn get(&self, bucket: u16) -> Option<Lane> {
        let at = self.position(bucket).ok()? * LANE_BYTES;
        Some(read_lane(&self.stored()[at..at + LANE_BYTES]))
    }

    /// All of them, with their buckets.
    pub fn iter(&self) -> impl Iterator<Item = (u16, Lane)> {
        self.chunks().map(|chunk| (bucket_of(chunk), read_lane(chunk)))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.row.is_none()
    }

    /// These lanes with another one in a bucket, or none there.
    pub(super) fn with(&self, bucket: u16, lane: Option<Lane>) -> Self {
        if let (Some(row), Ok(place), Some(lane)) = (&self.row, self.position(bucket), lane) {
            // By far the most frequent change, which leaves everything where it is.
            let mut row = copied(row);
            let bytes = Bytes::get_mut(&mut row).expect("nobody else has it yet");
            bytes[1 + place * LANE_BYTES..][..LANE_BYTES].copy_from_slice(&write_lane(bucket, lane));
            return Self { row: Some(row) };
        }
        let (place, replaced) = match self.position(bucket) {
            Ok(place) => (place, 1),
            Err(place) => (place, 0),
        };
        let (before, rest) = self.stored().split_at(place * LANE_BYTES);
        let after = &rest[replaced * LANE_BYTES..];
        let lane = lane.map(|lane| write_lane(bucket, lane));
        let lane = lane.as_ref().map_or(&[][..], |lane| lane);
        let is_empty = before.len() + lane.len() + after.len() == 0;
        Self { row: (!is_empty).then(|| [&[FORMAT], before, lane, after].concat().into()) }
    }
}

fn bucket_of(lane: &[u8]) -> u16 {
    u16::from_le_bytes([lane[0], lane[1]])
}

fn read_place(bytes: &[u8]) -> ReadyPlace {
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    ReadyPlace { order: number(0).cast_signed(), ready_us: number(8) }
}

fn read_lane(bytes: &[u8]) -> Lane {
    Lane { stands: read_place(&bytes[2..]), begins: (bytes[18] == 1).then(|| read_place(&bytes[19..])) }
}

fn write_lane(bucket: u16, lane: Lane) -> [u8; LANE_BYTES] {
    let mut bytes = [0; LANE_BYTES];
    let mut place = |at: usize, place: ReadyPlace| {
        bytes[at..at + 8].copy_from_slice(&place.order.to_le_bytes());
        bytes[at + 8..at + 16].copy_from_slice(&place.ready_us.to_le_bytes());
    };
    place(2, lane.stands);
    if let Some(begins) = lane.begins {
        place(19, begins);
        bytes[18] = 1;
    }
    bytes[..2].copy_from_slice(&bucket.to_le_bytes());
    bytes
}

/// The lanes of a queue, in a view.
pub fn lanes_of(view: &dyn View, keys: &Keys, queue: QueueId<'_>) -> Result<Lanes, Halt> {
    Lanes::decode(view.get(&keys.lanes(queue))?)
}

/// The lanes of a queue, with the writes of the entry at hand.
pub(crate) fn staged_lanes(state: &Staging, keys: &Keys, queue: QueueId<'_>) -> Result<Lanes, Halt> {
    Lanes::decode(state.get(&keys.lanes(queue))?)
}

/// Whether anything of a queue or the queues below it may be ready to be claimed. Only a claim knows for certain.
pub fn may_be_ready(view: &dyn View, keys: &Keys, queue: QueueId<'_>) -> Result<bool, Halt> {
    Ok(lanes_of(view, keys, queue)?.iter().any(|(_, lane)| lane.begins.is_some()))
}

/// The queue right above a queue; none above the one that holds all.
pub(super) fn queue_above(queue: QueueId<'_>) -> Option<QueueId<'_>> {
    above(queue.name).map(|name| QueueId { name, ..queue })
}

/// The first row of a queue in a bucket at or after a place.
pub(crate) fn first_row(
    state: &Staging,
    keys: &Keys,
    bucket: u16,
    queue: QueueId<'_>,
    from: ReadyPlace,
) -> Result<Option<(ReadyPlace, Ready)>, Halt> {
    first_suffix(state, keys, bucket, queue, from)?.map(|suffix| read_row(&suffix, queue)).transpose()
}

/// The same as its key after the queue's prefix.
pub(crate) fn first_suffix(
    state: &Staging,
    keys: &Keys,
    bucket: u16,
    queue: QueueId<'_>,
    from: ReadyPlace,
) -> Result<Option<Key>, Halt> {
    let (range, prefix_bytes) = keys.ready_from(bucket, queue, from);
    let row = state.scan(&range, Order::Ascending).next().transpose()?;
    Ok(row.map(|(key, _)| Key::from(&key[prefix_bytes..])))
}

/// The first row of a queue in all buckets, by its lanes: without a window, for a queue that is seldom claimed from.
pub(crate) fn first_entry(state: &Staging, keys: &Keys, queue: QueueId<'_>) -> Result<Option<Entry>, Halt> {
    let lanes = staged_lanes(state, keys, queue)?;
    let mut begins: Vec<_> = lanes.iter().filter_map(|(bucket, lane)| Some((lane.begins?, bucket))).collect();
    begins.sort_unstable();
    let mut first: Option<Entry> = None;
    for (place, bucket) in begins {
        if first.as_ref().is_some_and(|first| *first.suffix < *Keys::ready_place_suffix(place)) {
            break;
        }
        let found = first_suffix(state, keys, bucket, queue, place)?.map(|suffix| Entry { suffix, bucket });
        first = match (first, found) {
            (Some(first), Some(found)) => Some(first.min(found)),
            (first, found) => first.or(found),
        };
    }
    Ok(first)
}

/// Reads a row of a queue from its key after the queue's prefix.
pub(crate) fn read_row(suffix: &[u8], queue: QueueId<'_>) -> Result<(ReadyPlace, Ready), Halt> {
    read_ready_suffix(suffix, queue.space, queue.branch)
        .ok_or_else(|| Halt::Inconsistent(format!("R5: {} is no row of {queue:?}", suffix.escape_ascii())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_read_as_written() {
        let place = |ready_us| ReadyPlace { order: -1, ready_us };
        let lane = |us| Lane { stands: place(us), begins: (us % 2 == 0).then(|| place(us + 1)) };
        let decode = |row: &[u8]| Lanes::decode(Some(row.into()));
        let mut lanes = Lanes::default();
        for bucket in [63, 0, 4_095, 7, 8] {
            lanes = lanes.with(bucket, Some(lane(u64::from(bucket))));
        }
        lanes = lanes.with(8, None);
        lanes = lanes.with(9, None);
        lanes = lanes.with(63, Some(lane(2)));
        let read = Lanes::decode(lanes.row.clone()).expect("as written");
        assert_eq!(read.iter().collect::<Vec<_>>(), [(0, lane(0)), (7, lane(7)), (63, lane(2)), (4_095, lane(4_095))]);
        assert_eq!((read.get(7), read.get(8)), (Some(lane(7)), None));
        for bucket in [0, 7, 63, 4_095] {
            lanes = lanes.with(bucket, None);
        }
        assert!(lanes.is_empty() && Lanes::decode(None).expect("none").is_empty());
        assert!(decode(&[FORMAT]).is_err(), "no lanes have no row");
        assert!(decode(&[FORMAT, 0]).is_err() && decode(&[9]).is_err());
        let twice = [&[FORMAT][..], &write_lane(1, lane(0)), &write_lane(1, lane(0))].concat();
        assert!(decode(&twice).is_err(), "out of order");
    }

    /// Part of the stored format; `docs/formats/records.md`.
    #[test]
    fn golden_lanes() {
        let (stands, begins) = (ReadyPlace { order: -1, ready_us: 2 }, ReadyPlace { order: 0, ready_us: 3 });
        let lanes = Lanes::default().with(5, Some(Lane { stands, begins: Some(begins) }));
        let hex: String = lanes.row.expect("a lane").iter().map(|byte| format!("{byte:02x}")).collect();
        let places = "ffffffffffffffff0200000000000000".to_owned() + "01" + "00000000000000000300000000000000";
        assert_eq!(hex, format!("010500{places}"));
    }
}
