//! Keys of queues: what is ready in a queue, and where a queue stands in the queue above it.
//!
//! These start with the bucket too, except for the lanes of a queue: they answer for all buckets in one lookup.

use kv::{Key, KeyRange};

use super::things::{OwnedId, push_group_and_name};
use super::{GENERATION_BYTES, Keys, Kind, ShardKind, ThingId, push_name, sortable, take_group_and_name, take_name};

/// A place in the order of claims: the smallest order first, then what has been ready longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadyPlace {
    /// The integer in the field that orders claims, or 0.
    pub order: i64,
    /// Since when, wall time in µs.
    pub ready_us: u64,
}

impl ReadyPlace {
    /// Before everything.
    pub const FIRST: Self = Self { order: i64::MIN, ready_us: 0 };
}

/// What a row of a queue stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// What can be claimed.
    Thing(OwnedId),
    /// A queue below, by what its name adds to this one's. Nothing in it has an earlier place than this row.
    Queue(String),
}

const RECORD: u8 = 0;
const QUEUE: u8 = 1;

/// The queue of a branch: a name up to a separator, or the empty name that all queues are below of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueId<'name> {
    /// The space.
    pub space: u32,
    /// The branch.
    pub branch: u32,
    /// Its name.
    pub name: &'name str,
}

impl Keys {
    /// The rows of a queue in a bucket.
    pub fn ready_prefix(&self, bucket: u16, queue: QueueId<'_>) -> Key {
        let mut key = self.branch_prefix(Kind::Ready, bucket, queue.space, queue.branch);
        push_name(&mut key, queue.name.as_bytes());
        key
    }

    /// The key after [`ready_prefix`](Self::ready_prefix) of a record.
    pub fn ready_record_suffix(place: ReadyPlace, record: &ThingId<'_>) -> Key {
        let mut key = place_bytes(place);
        key.push(RECORD);
        push_group_and_name(&mut key, record);
        key
    }

    /// The key after [`ready_prefix`](Self::ready_prefix) of a queue below, whose name adds `rest`.
    pub fn ready_queue_suffix(place: ReadyPlace, rest: &str) -> Key {
        let mut key = place_bytes(place);
        key.push(QUEUE);
        push_name(&mut key, rest.as_bytes());
        key
    }

    /// The rows of a queue in a bucket from a place on; and the length of their common prefix.
    pub fn ready_from(&self, bucket: u16, queue: QueueId<'_>, place: ReadyPlace) -> (KeyRange, usize) {
        let prefix = self.ready_prefix(bucket, queue);
        let end = KeyRange::prefix(&prefix).end;
        let prefix_bytes = prefix.len();
        let mut start = prefix.to_vec();
        start.extend_from_slice(&place_bytes(place));
        (KeyRange { start, end }, prefix_bytes)
    }

    /// The suffix that precedes everything of a queue at or after a place.
    pub fn ready_place_suffix(place: ReadyPlace) -> Key {
        place_bytes(place)
    }

    /// The lanes of a queue.
    pub fn lanes(&self, queue: QueueId<'_>) -> Key {
        let mut key = self.shard_row(ShardKind::Lanes);
        key.extend_from_slice(&queue.space.to_be_bytes());
        key.extend_from_slice(&queue.branch.to_be_bytes());
        push_name(&mut key, queue.name.as_bytes());
        key
    }

    /// The lanes of all queues of a branch.
    pub fn lanes_of_branch(&self, space: u32, branch: u32) -> KeyRange {
        let mut key = self.shard_row(ShardKind::Lanes);
        key.extend_from_slice(&space.to_be_bytes());
        key.extend_from_slice(&branch.to_be_bytes());
        KeyRange::prefix(&key)
    }

    /// The same of all branches.
    pub fn all_lanes(&self) -> KeyRange {
        KeyRange::prefix(&self.shard_row(ShardKind::Lanes))
    }
}

fn place_bytes(place: ReadyPlace) -> Key {
    let mut key = Key::from(sortable(place.order).to_be_bytes());
    key.extend_from_slice(&place.ready_us.to_be_bytes());
    key
}

/// Reads the key after [`Keys::ready_prefix`].
pub fn read_ready_suffix(suffix: &[u8], space: u32, branch: u32) -> Option<(ReadyPlace, Ready)> {
    let (order, rest) = suffix.split_first_chunk::<8>()?;
    let (ready_us, rest) = rest.split_first_chunk::<8>()?;
    // The inverse of `sortable`.
    let order = (u64::from_be_bytes(*order) ^ (1 << 63)).cast_signed();
    let place = ReadyPlace { order, ready_us: u64::from_be_bytes(*ready_us) };
    let (what, rest) = rest.split_first()?;
    let (ready, rest) = match *what {
        RECORD => {
            let (group, name, rest) = take_group_and_name(rest)?;
            (Ready::Thing(OwnedId { space, branch, group, name }), rest)
        }
        QUEUE => {
            let (name, rest) = take_name(rest)?;
            (Ready::Queue(name), rest)
        }
        _ => return None,
    };
    rest.is_empty().then_some((place, ready))
}

/// Reads the key of a row of [`Keys::lanes`]: space, branch, and the queue.
pub fn read_lanes_key(key: &[u8]) -> Option<(u32, u32, String)> {
    // Generation, the mark of shard rows, first bucket, kind.
    let rest = key.get(GENERATION_BYTES + 2 + 2 + 1..)?;
    let (space, rest) = rest.split_first_chunk::<4>()?;
    let (branch, rest) = rest.split_first_chunk::<4>()?;
    let (queue, rest) = take_name(rest)?;
    rest.is_empty().then_some((u32::from_be_bytes(*space), u32::from_be_bytes(*branch), queue))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_read_as_written_and_sort_by_place() {
        let place = ReadyPlace { order: -7, ready_us: 9 };
        for group in [None, Some("g\0")] {
            let record = ThingId { bucket: 5, space: 1, branch: 2, group, name: "jobs.a\0b" };
            let read = read_ready_suffix(&Keys::ready_record_suffix(place, &record), 1, 2);
            assert_eq!(read, Some((place, Ready::Thing(OwnedId::from(&record)))));
        }
        let read = read_ready_suffix(&Keys::ready_queue_suffix(place, "mail."), 1, 2);
        assert_eq!(read, Some((place, Ready::Queue("mail.".to_owned()))));
        let places = [(i64::MIN, 0), (-7, 9), (-7, 10), (0, 0), (1, u64::MAX), (i64::MAX, 0)];
        let suffixes = places.map(|(order, ready_us)| Keys::ready_queue_suffix(ReadyPlace { order, ready_us }, "z"));
        assert!(suffixes.is_sorted());
    }

    /// Part of the stored format; `docs/formats/keys.md`.
    #[test]
    fn golden_keys_of_queues() {
        let hex = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let keys = Keys::new(1, crate::BucketRange::ALL);
        let queue = QueueId { space: 1, branch: 2, name: "q." };
        let place = ReadyPlace { order: 0, ready_us: 258 };
        let record = ThingId { bucket: 5, space: 1, branch: 2, group: None, name: "hi" };
        let prefix = "000000010005070000000100000002".to_owned() + "712e0000";
        let row = [&*keys.ready_prefix(5, queue), &*Keys::ready_record_suffix(place, &record)].concat();
        assert_eq!(hex(&row), format!("{prefix}80000000000000000000000000000102000068690000"));
        let row = [&*keys.ready_prefix(5, queue), &*Keys::ready_queue_suffix(place, "r.")].concat();
        assert_eq!(hex(&row), format!("{prefix}8000000000000000000000000000010201722e0000"));
        assert_eq!(hex(&keys.lanes(queue)), "00000001ffff00000d0000000100000002".to_owned() + "712e0000");
        assert_eq!(read_lanes_key(&keys.lanes(queue)), Some((1, 2, "q.".to_owned())));
    }
}
