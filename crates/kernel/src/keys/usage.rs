//! Keys of what a space takes.

use kv::{Key, KeyRange};

use super::{Keys, Kind, ShardKind};

impl Keys {
    /// What the things of a space take.
    pub fn usage(&self, space: u32) -> Key {
        let mut key = self.shard_row(ShardKind::Usage);
        key.extend_from_slice(&space.to_be_bytes());
        key
    }

    /// All rows of one kind of a space in a bucket, of all branches.
    pub fn rows_of_space(&self, kind: Kind, bucket: u16, space: u32) -> KeyRange {
        let mut key = self.bucket_prefix(kind, bucket);
        key.extend_from_slice(&space.to_be_bytes());
        KeyRange::prefix(&key)
    }
}
