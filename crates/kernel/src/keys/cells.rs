//! Keys of cells.

use kv::{Key, KeyRange};

use super::things::ThingKey;
use super::{HeldKey, Keys, Kind, ThingId, push_escaped, push_name};

impl Keys {
    /// The newest version of a cell.
    pub fn cell_head(&self, cell: &ThingId<'_>) -> HeldKey {
        HeldKey::new(self.thing(Kind::CellHead, cell))
    }

    /// An older version of a cell.
    pub fn cell_old(&self, cell: &ThingId<'_>, version: u64) -> HeldKey {
        let mut key = self.group_prefix(Kind::CellOld, cell);
        push_name(&mut key, cell.name.as_bytes());
        key.extend_from_slice(&version.to_be_bytes());
        HeldKey::new(key)
    }

    /// The version above which new cells of a branch start, in the bucket of a cell.
    pub fn cell_floor(&self, bucket: u16, space: u32, branch: u32) -> Key {
        self.branch_prefix(Kind::CellFloor, bucket, space, branch)
    }

    /// The newest versions of the cells of a group from the name `from` to before `to`, if given.
    pub fn cell_heads_between(&self, cell: &ThingId<'_>, from: &str, to: Option<&str>) -> KeyRange {
        let group = self.group_prefix(Kind::CellHead, cell);
        let mut start = group.clone();
        push_escaped(&mut start, from.as_bytes());
        let end = match to {
            None => KeyRange::prefix(&group).end,
            Some(to) => {
                let mut end = group;
                push_escaped(&mut end, to.as_bytes());
                Some(end.to_vec())
            }
        };
        KeyRange { start: start.to_vec(), end }
    }

    /// The newest versions of all cells of a bucket.
    pub fn cell_heads_of_bucket(&self, bucket: u16) -> KeyRange {
        KeyRange::prefix(&self.bucket_prefix(Kind::CellHead, bucket))
    }
}

/// Reads the key of a cell's newest version; none if it is another key.
pub fn read_cell_key(key: &[u8]) -> Option<ThingKey> {
    ThingKey::read(Kind::CellHead, key)
}
