//! The only place that builds raw keys; `docs/formats/keys.md` is the specification.
//!
//! A key is `generation, bucket, kind, space, branch, group, name, ...`. Numbers are big-endian and names are escaped, so that bytes sort
//! like the parts. Rows of the shard itself follow all buckets. Generations are local to a node: images and hashes see keys without them.
//!
//! Keeps: K5 (two different things never have the same key, and a prefix of names is a prefix of keys).

pub mod catalogue;
pub mod cells;
mod copies;
pub mod due;
mod held;
pub mod keyed;
pub mod messages;
pub mod names;
mod parts;
pub mod queues;
pub mod readable;
pub mod records;
pub mod runs;
pub mod sessions;
pub mod things;
pub mod usage;

use kv::{Key, KeyRange};

pub use held::HeldKey;
pub(crate) use held::kind_and_space;
pub use parts::sortable;
use parts::{
    NAMED_GROUP, OWN_GROUP, push_escaped, push_group, push_name, skip_name, take_bytes, take_group_and_name, take_name,
};

use crate::place::BucketRange;

/// Bytes of the generation in front of every key.
pub const GENERATION_BYTES: usize = 4;

/// In place of a bucket: rows of the shard itself.
const SHARD_ROWS: u16 = u16::MAX;

/// The kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The newest version of a cell.
    CellHead = 0x03,
    /// An older version of a cell.
    CellOld = 0x04,
    /// A record.
    Record = 0x05,
    /// A large field of a record.
    RecordField = 0x06,
    /// What is ready in a queue, in the order of claims: a record, or a queue below.
    Ready = 0x07,
    /// Work due at a wall time.
    DueWall = 0x08,
    /// Work due at a cluster time.
    DueCluster = 0x09,
    /// A record, by a declared field.
    FieldIndex = 0x0a,
    /// A message that waits to be published.
    Publish = 0x0b,
    /// The counters from which records without rows continue.
    RecordFloor = 0x0c,
    /// What ends with a session: a claim, a record, or what a user's machine knows of it.
    Owned = 0x0d,
    /// The state of a user's machine.
    Hosted = 0x0e,
    /// The head of a run.
    Run = 0x0f,
    /// An event of a run.
    RunEvent = 0x10,
    /// An event of a run, by its idempotency key.
    RunKey = 0x11,
    /// An event of a run, by its id.
    RunEventId = 0x12,
    /// A run, by its status, its type and its last event.
    RunIndex = 0x13,
    /// A step of a run's projection.
    RunStep = 0x14,
    /// The version above which new cells of a branch start.
    CellFloor = 0x15,
    /// The last number that a bucket has given to a message.
    MessageNumbers = 0x16,
    /// The last number of a bucket's messages that a bucket has received from another shard.
    Received = 0x17,
    /// A message that waits for the shard of its group.
    Outgoing = 0x18,
    /// The head of a map of keyed state.
    KeyedMap = 0x19,
    /// A key of a map, with its value or the version of its deletion.
    KeyedEntry = 0x1a,
    /// How far a map has read an input.
    KeyedPosition = 0x1b,
    /// A deleted key of a map, by the version of its deletion.
    KeyedDeleted = 0x1c,
    /// A key of a map whose row went after a checkpoint had begun.
    KeyedGone = 0x1d,
    /// The answer to the last numbered commit of a map.
    KeyedAnswer = 0x1e,
    /// An update of an ordered map that waits for the seal, by its version.
    KeyedWaiting = 0x1f,
    /// A message that a group of the bucket refused.
    DeadLetter = 0x22,
}

impl Kind {
    /// Those that have second copies.
    const COPIED: [Kind; 4] = [Kind::RecordFloor, Kind::CellFloor, Kind::MessageNumbers, Kind::Received];

    /// All of them, in words.
    pub(crate) const WORDS: [(Kind, &str); 30] = [
        (Kind::CellHead, "cell"),
        (Kind::CellOld, "older versions of cell"),
        (Kind::Record, "record"),
        (Kind::RecordField, "fields of record"),
        (Kind::Ready, "the index of ready records"),
        (Kind::DueWall, "the schedule"),
        (Kind::DueCluster, "the schedule of leases"),
        (Kind::FieldIndex, "an index of records"),
        (Kind::Publish, "messages to publish"),
        (Kind::RecordFloor, "the floor of records"),
        (Kind::Owned, "what sessions own"),
        (Kind::Hosted, "the state of a machine"),
        (Kind::Run, "run"),
        (Kind::RunEvent, "events of run"),
        (Kind::RunKey, "keys of run"),
        (Kind::RunEventId, "event ids of run"),
        (Kind::RunIndex, "the index of runs"),
        (Kind::RunStep, "the projection of run"),
        (Kind::CellFloor, "the floor of cells"),
        (Kind::MessageNumbers, "the numbers of messages"),
        (Kind::Received, "the numbers of received messages"),
        (Kind::Outgoing, "messages to other shards"),
        (Kind::KeyedMap, "map"),
        (Kind::KeyedEntry, "keys of map"),
        (Kind::KeyedPosition, "input positions of map"),
        (Kind::KeyedDeleted, "deleted keys of map"),
        (Kind::KeyedGone, "removed keys of map"),
        (Kind::KeyedAnswer, "the last answer of map"),
        (Kind::KeyedWaiting, "waiting updates of map"),
        (Kind::DeadLetter, "dead letters"),
    ];

    /// Those whose keys have neither a space nor a branch.
    const WITHOUT_SPACE: [Kind; 8] = [
        Kind::DueWall,
        Kind::DueCluster,
        Kind::Publish,
        Kind::RecordFloor,
        Kind::Owned,
        Kind::MessageNumbers,
        Kind::Received,
        Kind::Outgoing,
    ];

    /// Those of a space whose keys do not begin with the group and the name of a thing.
    const WITHOUT_NAME: [Kind; 6] =
        [Kind::Ready, Kind::FieldIndex, Kind::Hosted, Kind::RunIndex, Kind::CellFloor, Kind::DeadLetter];
}

/// The kind of a row of the shard itself.
#[derive(Clone, Copy)]
#[repr(u8)]
enum ShardKind {
    Applied = 0x01,
    CatalogueMeta = 0x02,
    CatalogueSpace = 0x03,
    CatalogueBranch = 0x04,
    Changes = 0x05,
    Counts = 0x06,
    CatalogueType = 0x07,
    MessageCounts = 0x08,
    Sessions = 0x09,
    CatalogueMachine = 0x0a,
    RunCounts = 0x0b,
    Lanes = 0x0d,
    IndexFill = 0x0e,
    Usage = 0x0f,
    CatalogueGuard = 0x10,
    CataloguePrincipal = 0x11,
    AuditHead = 0x12,
}

impl ShardKind {
    /// Those that have second copies.
    const COPIED: [ShardKind; 11] = [
        ShardKind::Applied,
        ShardKind::CatalogueMeta,
        ShardKind::CatalogueSpace,
        ShardKind::CatalogueBranch,
        ShardKind::CatalogueType,
        ShardKind::CatalogueMachine,
        ShardKind::CatalogueGuard,
        ShardKind::CataloguePrincipal,
        ShardKind::AuditHead,
        ShardKind::IndexFill,
        ShardKind::Usage,
    ];

    /// All of them, in words.
    const WORDS: [(ShardKind, &str); 16] = [
        (ShardKind::Applied, "the progress of the store"),
        (ShardKind::CatalogueMeta, CATALOGUE_WORDS),
        (ShardKind::CatalogueSpace, CATALOGUE_WORDS),
        (ShardKind::CatalogueBranch, CATALOGUE_WORDS),
        (ShardKind::CatalogueType, CATALOGUE_WORDS),
        (ShardKind::CatalogueMachine, CATALOGUE_WORDS),
        (ShardKind::CatalogueGuard, CATALOGUE_WORDS),
        (ShardKind::CataloguePrincipal, CATALOGUE_WORDS),
        (ShardKind::AuditHead, "the head of the audit"),
        (ShardKind::Changes, "the change feed"),
        (ShardKind::Counts, "the counts of records"),
        (ShardKind::RunCounts, "the counts of runs"),
        (ShardKind::MessageCounts, "the counts of messages"),
        (ShardKind::Sessions, "sessions"),
        (ShardKind::Lanes, "the index of queues"),
        (ShardKind::Usage, "the usage of spaces"),
    ];
}

const CATALOGUE_WORDS: &str = "the catalogue";

/// Which thing: a cell or a record, or, with an empty name, any of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThingId<'name> {
    /// The bucket of its group.
    pub bucket: u16,
    /// Its space.
    pub space: u32,
    /// Its branch.
    pub branch: u32,
    /// Its group, or none if it has none.
    pub group: Option<&'name str>,
    /// Its name.
    pub name: &'name str,
}

/// Builds keys of one shard in one generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    generation: u32,
    buckets: BucketRange,
}

impl Keys {
    /// Keys of the shard that owns these buckets, in a generation.
    pub const fn new(generation: u32, buckets: BucketRange) -> Self {
        Self { generation, buckets }
    }

    /// The buckets of the shard.
    pub fn buckets(&self) -> BucketRange {
        self.buckets
    }

    /// Whether the shard may write the row: it is in one of its buckets, or a row of the shard itself.
    pub(crate) fn owns(&self, key: &[u8]) -> bool {
        let Some((generation, rest)) = key.split_first_chunk::<GENERATION_BYTES>() else { return false };
        let Some((bucket, rest)) = rest.split_first_chunk::<2>() else { return false };
        let in_shard = match u16::from_be_bytes(*bucket) {
            SHARD_ROWS => rest.starts_with(&self.buckets.first().to_be_bytes()),
            bucket => self.buckets.contains(bucket),
        };
        in_shard && *generation == self.generation.to_be_bytes()
    }

    /// Everything of this generation.
    pub fn all(&self) -> KeyRange {
        KeyRange::prefix(&self.generation.to_be_bytes())
    }

    /// A key of this generation from the bytes after the generation.
    pub fn in_generation(&self, rest: &[u8]) -> Key {
        let mut key = Key::from(self.generation.to_be_bytes());
        key.extend_from_slice(rest);
        key
    }

    /// The applied row.
    pub fn applied(&self) -> Key {
        self.shard_row(ShardKind::Applied)
    }

    /// The changes of the entry whose last command has this number.
    pub fn changes(&self, commit: u64) -> Key {
        let mut key = self.shard_row(ShardKind::Changes);
        key.extend_from_slice(&commit.to_be_bytes());
        key
    }

    /// The rows of changes with this number or a higher one.
    pub fn changes_from(&self, commit: u64) -> KeyRange {
        let all = KeyRange::prefix(&self.shard_row(ShardKind::Changes));
        KeyRange { start: self.changes(commit).to_vec(), end: all.end }
    }

    /// The number in the key of a row of changes; none if it is another key.
    pub fn commit_of_changes(&self, key: &[u8]) -> Option<u64> {
        let number = key.strip_prefix(self.shard_row(ShardKind::Changes).as_slice())?;
        Some(u64::from_be_bytes(number.try_into().ok()?))
    }

    /// The floor of the change feed, which precedes its rows.
    pub fn changes_floor(&self) -> Key {
        self.shard_row(ShardKind::Changes)
    }

    /// The counts of a queue's records of one type.
    pub fn counts(&self, space: u32, branch: u32, queue: &str, record_type: u32) -> Key {
        let mut key = self.counts_prefix(space, branch);
        push_name(&mut key, queue.as_bytes());
        key.extend_from_slice(&record_type.to_be_bytes());
        key
    }

    /// The counts of a queue's records, of all types.
    pub fn counts_of_queue(&self, space: u32, branch: u32, queue: &str) -> KeyRange {
        let mut key = self.counts_prefix(space, branch);
        push_name(&mut key, queue.as_bytes());
        KeyRange::prefix(&key)
    }

    /// The counts of a queue and of all queues below it.
    pub fn counts_from_queue(&self, space: u32, branch: u32, queue: &str) -> KeyRange {
        let mut key = self.counts_prefix(space, branch);
        push_escaped(&mut key, queue.as_bytes());
        KeyRange::prefix(&key)
    }

    fn counts_prefix(&self, space: u32, branch: u32) -> Key {
        let mut key = self.shard_row(ShardKind::Counts);
        key.extend_from_slice(&space.to_be_bytes());
        key.extend_from_slice(&branch.to_be_bytes());
        key
    }

    /// The row with the number of waiting messages.
    pub fn message_counts(&self) -> Key {
        self.shard_row(ShardKind::MessageCounts)
    }

    /// The row with the number of dead letters of a space.
    pub fn dead_letters_of_space(&self, space: u32) -> Key {
        let mut key = self.message_counts();
        key.extend_from_slice(&space.to_be_bytes());
        key
    }

    /// The rows with the numbers of dead letters, of all spaces.
    pub fn dead_letters_of_spaces(&self) -> KeyRange {
        KeyRange::prefix(&self.message_counts()).after(&self.message_counts())
    }

    fn shard_row(&self, kind: ShardKind) -> Key {
        let mut key = Key::default();
        key.extend_from_slice(&self.generation.to_be_bytes());
        key.extend_from_slice(&SHARD_ROWS.to_be_bytes());
        key.extend_from_slice(&self.buckets.first().to_be_bytes());
        key.push(kind as u8);
        key
    }

    /// The things of a group whose names start with `prefix`; without a group, all names of the bucket.
    pub fn things_with_prefix(&self, kind: Kind, group: &ThingId<'_>, prefix: &str) -> KeyRange {
        let mut key = self.group_prefix(kind, group);
        push_escaped(&mut key, prefix.as_bytes());
        KeyRange::prefix(&key)
    }

    /// All rows of one kind of a branch in a bucket.
    pub fn rows_of_branch(&self, kind: Kind, bucket: u16, space: u32, branch: u32) -> KeyRange {
        KeyRange::prefix(&self.branch_prefix(kind, bucket, space, branch))
    }

    fn bucket_prefix(&self, kind: Kind, bucket: u16) -> Key {
        let mut key = Key::default();
        key.extend_from_slice(&self.generation.to_be_bytes());
        key.extend_from_slice(&bucket.to_be_bytes());
        key.push(kind as u8);
        key
    }

    fn branch_prefix(&self, kind: Kind, bucket: u16, space: u32, branch: u32) -> Key {
        let mut key = self.bucket_prefix(kind, bucket);
        key.extend_from_slice(&space.to_be_bytes());
        key.extend_from_slice(&branch.to_be_bytes());
        key
    }

    fn group_prefix(&self, kind: Kind, thing: &ThingId<'_>) -> Key {
        let mut key = self.branch_prefix(kind, thing.bucket, thing.space, thing.branch);
        push_group(&mut key, thing.group);
        key
    }
}

#[cfg(test)]
mod tests;
