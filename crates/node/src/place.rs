//! Which shard it is, and where its rows are.

use journal::ShardId;
use kernel::{BucketRange, Keys};

/// Which shard it is, and where its rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardPlace {
    /// Its number in the journal.
    pub id: ShardId,
    /// The keys of its rows, with the buckets that it owns.
    pub keys: Keys,
}

impl ShardPlace {
    /// The one shard of a directory: it owns every bucket.
    pub const ALONE: ShardPlace = ShardPlace { id: 1, keys: Keys::new(1, BucketRange::ALL) };
}
