//! Keys of records and of their indexes.
//!
//! Index keys start with the bucket too, so that a range of buckets is a range of keys.

use kv::Key;

use super::{
    GENERATION_BYTES, Keys, Kind, ThingId, push_escaped, push_group, push_name, take_bytes, take_group_and_name,
    take_name,
};

/// Which of the two clocks decides when something is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueClock {
    /// Wall time: expiries, pauses, timers.
    Wall,
    /// Cluster time: leases.
    Cluster,
}

impl DueClock {
    fn kind(self) -> Kind {
        match self {
            DueClock::Wall => Kind::DueWall,
            DueClock::Cluster => Kind::DueCluster,
        }
    }
}

/// Due work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// The end of a record's time, or of a deleted record's row.
    Expiry(OwnedId),
    /// The end of a pause: the record can be claimed.
    Ready(OwnedId),
    /// The end of a lease.
    Lease(OwnedId),
    /// A message is to go out.
    Send {
        /// The command that sent it.
        commit: u64,
        /// Its place among that command's messages.
        ordinal: u32,
    },
    /// The rows of a deleted run are to go.
    Run(OwnedId),
    /// An ended session's claims and records must be released.
    Session(u64),
}

/// The name and place of a thing, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedId {
    /// Its space.
    pub space: u32,
    /// Its branch.
    pub branch: u32,
    /// Its group, or none if it has none.
    pub group: Option<String>,
    /// Its name.
    pub name: String,
}

impl OwnedId {
    /// The same, borrowed, in a bucket.
    pub fn in_bucket(&self, bucket: u16) -> ThingId<'_> {
        ThingId { bucket, space: self.space, branch: self.branch, group: self.group.as_deref(), name: &self.name }
    }
}

impl From<&ThingId<'_>> for OwnedId {
    fn from(id: &ThingId<'_>) -> Self {
        Self { space: id.space, branch: id.branch, group: id.group.map(str::to_owned), name: id.name.to_owned() }
    }
}

const EXPIRY: u8 = 1;
const READY: u8 = 2;
const LEASE: u8 = 3;
const SEND: u8 = 4;
pub(super) const SESSION: u8 = 5;
const RUN: u8 = 6;

impl Keys {
    /// A record.
    pub fn record(&self, record: &ThingId<'_>) -> Key {
        self.thing(Kind::Record, record)
    }

    /// A large field of a record.
    pub fn record_field(&self, record: &ThingId<'_>, field: &str) -> Key {
        let mut key = self.group_prefix(Kind::RecordField, record);
        push_name(&mut key, record.name.as_bytes());
        push_name(&mut key, field.as_bytes());
        key
    }

    /// The counters from which the records of a bucket without rows continue.
    pub fn record_floor(&self, bucket: u16) -> Key {
        self.bucket_prefix(Kind::RecordFloor, bucket)
    }

    /// All entries of one due index in a bucket.
    pub fn due_prefix(&self, clock: DueClock, bucket: u16) -> Key {
        self.bucket_prefix(clock.kind(), bucket)
    }

    /// The key after [`due_prefix`](Self::due_prefix) for work on a record.
    pub fn due_suffix(at_us: u64, due: DueOf, record: &ThingId<'_>) -> Key {
        let mut key = Key::from(at_us.to_be_bytes());
        key.push(match due {
            DueOf::Expiry => EXPIRY,
            DueOf::Ready => READY,
            DueOf::Lease => LEASE,
            DueOf::Run => RUN,
        });
        key.extend_from_slice(&record.space.to_be_bytes());
        key.extend_from_slice(&record.branch.to_be_bytes());
        push_group_and_name(&mut key, record);
        key
    }

    /// The key after [`due_prefix`](Self::due_prefix) for a message.
    pub fn due_send_suffix(at_us: u64, commit: u64, ordinal: u32) -> Key {
        let mut key = Key::from(at_us.to_be_bytes());
        key.push(SEND);
        key.extend_from_slice(&commit.to_be_bytes());
        key.extend_from_slice(&ordinal.to_be_bytes());
        key
    }

    /// The bytes as encoded inside a key: a prefix of them is a prefix of the key.
    pub fn escaped(bytes: &[u8]) -> Key {
        let mut key = Key::default();
        push_escaped(&mut key, bytes);
        key
    }

    /// A message that waits to be published.
    pub fn publish(&self, bucket: u16, commit: u64, ordinal: u32) -> Key {
        let mut key = self.bucket_prefix(Kind::Publish, bucket);
        key.extend_from_slice(&commit.to_be_bytes());
        key.extend_from_slice(&ordinal.to_be_bytes());
        key
    }

    /// All messages of a bucket that wait to be published.
    pub fn publish_prefix(&self, bucket: u16) -> Key {
        self.bucket_prefix(Kind::Publish, bucket)
    }

    /// The entries of a declared index of a type in a bucket.
    pub fn index_prefix(&self, bucket: u16, space: u32, branch: u32, record_type: u32, index: u8) -> Key {
        let mut key = self.branch_prefix(Kind::FieldIndex, bucket, space, branch);
        key.extend_from_slice(&record_type.to_be_bytes());
        key.push(index);
        key
    }

    /// An entry of a declared index: a sortable value, then the record.
    pub fn index_entry(&self, record: &ThingId<'_>, record_type: u32, index: u8, value: &[u8]) -> Key {
        let mut key = self.index_prefix(record.bucket, record.space, record.branch, record_type, index);
        push_name(&mut key, value);
        push_group_and_name(&mut key, record);
        key
    }
}

/// The due work on a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueOf {
    /// The end of its time.
    Expiry,
    /// The end of its pause.
    Ready,
    /// The end of its lease.
    Lease,
    /// The removal of its rows, of a deleted run.
    Run,
}

/// The integer as a number whose bytes sort as the integer does.
pub fn sortable(integer: i64) -> u64 {
    integer.cast_unsigned() ^ (1 << 63)
}

pub(super) fn push_group_and_name(key: &mut Key, record: &ThingId<'_>) {
    push_group(key, record.group);
    push_name(key, record.name.as_bytes());
}

/// Reads the key after [`Keys::due_prefix`]: the time and the work.
pub fn read_due_suffix(suffix: &[u8]) -> Option<(u64, Due)> {
    let (at_us, rest) = suffix.split_first_chunk::<8>()?;
    let at_us = u64::from_be_bytes(*at_us);
    let (what, rest) = rest.split_first()?;
    if *what == SEND {
        let (commit, rest) = rest.split_first_chunk::<8>()?;
        let (ordinal, rest) = rest.split_first_chunk::<4>()?;
        let send = Due::Send { commit: u64::from_be_bytes(*commit), ordinal: u32::from_be_bytes(*ordinal) };
        return rest.is_empty().then_some((at_us, send));
    }
    if *what == SESSION {
        let session = u64::from_be_bytes(*rest.first_chunk::<8>()?);
        return (rest.len() == 8).then_some((at_us, Due::Session(session)));
    }
    let (space, rest) = rest.split_first_chunk::<4>()?;
    let (branch, rest) = rest.split_first_chunk::<4>()?;
    let (group, name, rest) = take_group_and_name(rest)?;
    let id = OwnedId { space: u32::from_be_bytes(*space), branch: u32::from_be_bytes(*branch), group, name };
    let due = match *what {
        EXPIRY => Due::Expiry(id),
        READY => Due::Ready(id),
        LEASE => Due::Lease(id),
        RUN => Due::Run(id),
        _ => return None,
    };
    rest.is_empty().then_some((at_us, due))
}

/// Reads the end of [`Keys::index_entry`], after the index's prefix: the sortable value and the record.
pub fn read_index_suffix(suffix: &[u8], space: u32, branch: u32) -> Option<(Vec<u8>, OwnedId)> {
    let (value, rest) = take_bytes(suffix)?;
    let (group, name, rest) = take_group_and_name(rest)?;
    rest.is_empty().then_some((value, OwnedId { space, branch, group, name }))
}

/// Reads the key of a record, or of a run or a cell's newest version; none for a name of the index.
pub fn read_record_key(key: &[u8], space: u32, branch: u32) -> Option<OwnedId> {
    // Generation, bucket, kind, space, branch.
    let rest = key.get(GENERATION_BYTES + 2 + 1 + 4 + 4..)?;
    let (group, name, rest) = take_group_and_name(rest)?;
    rest.is_empty().then_some(OwnedId { space, branch, group, name })
}

/// Reads the key of a row of counts: the queue, and the type.
pub fn read_counts_key(key: &[u8]) -> Option<(String, u32)> {
    // Generation, the mark of shard rows, first bucket, kind, space, branch.
    let rest = key.get(GENERATION_BYTES + 2 + 2 + 1 + 4 + 4..)?;
    let (queue, rest) = take_name(rest)?;
    let (record_type, rest) = rest.split_first_chunk::<4>()?;
    rest.is_empty().then_some((queue, u32::from_be_bytes(*record_type)))
}

/// The number of a message from its key among those that wait to be published.
pub fn read_publish_key(key: &[u8]) -> Option<(u16, u64, u32)> {
    let rest = key.get(GENERATION_BYTES..)?;
    let (bucket, rest) = rest.split_first_chunk::<2>()?;
    let (kind, rest) = rest.split_first()?;
    let (commit, rest) = rest.split_first_chunk::<8>()?;
    let (ordinal, rest) = rest.split_first_chunk::<4>()?;
    (*kind == Kind::Publish as u8 && rest.is_empty()).then_some((
        u16::from_be_bytes(*bucket),
        u64::from_be_bytes(*commit),
        u32::from_be_bytes(*ordinal),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id<'name>(group: Option<&'name str>, name: &'name str) -> ThingId<'name> {
        ThingId { bucket: 5, space: 1, branch: 2, group, name }
    }

    #[test]
    fn suffixes_are_read_as_written() {
        for group in [None, Some("g\0")] {
            let record = id(group, "jobs.a\0b");
            for (of, due) in [
                (DueOf::Expiry, Due::Expiry(OwnedId::from(&record))),
                (DueOf::Ready, Due::Ready(OwnedId::from(&record))),
                (DueOf::Lease, Due::Lease(OwnedId::from(&record))),
                (DueOf::Run, Due::Run(OwnedId::from(&record))),
            ] {
                assert_eq!(read_due_suffix(&Keys::due_suffix(3, of, &record)), Some((3, due)));
            }
        }
        let send = Due::Send { commit: 4, ordinal: 1 };
        assert_eq!(read_due_suffix(&Keys::due_send_suffix(3, 4, 1)), Some((3, send)));
        assert_eq!(read_due_suffix(&Keys::due_session_suffix(3, 4)), Some((3, Due::Session(4))));
    }

    #[test]
    fn integers_sort_as_they_should() {
        let sorted = [i64::MIN, -1, 0, 1, i64::MAX].map(sortable);
        assert!(sorted.is_sorted());
    }

    /// Part of the stored format; `docs/formats/keys.md`.
    #[test]
    fn golden_record_keys() {
        let hex = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let keys = Keys::new(1, 0);
        let record = id(None, "hi");
        assert_eq!(hex(&keys.record(&record)), "00000001000505000000010000000200".to_owned() + "68690000");
        assert_eq!(
            hex(&keys.record_field(&record, "f")),
            "00000001000506000000010000000200".to_owned() + "68690000660000"
        );
        assert_eq!(
            hex(&[&*keys.due_prefix(DueClock::Cluster, 5), &*Keys::due_suffix(258, DueOf::Lease, &record)].concat()),
            "00000001000509".to_owned() + "0000000000000102" + "03" + "0000000100000002" + "0068690000"
        );
    }
}
