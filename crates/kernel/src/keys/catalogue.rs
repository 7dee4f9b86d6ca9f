//! Keys of the catalogue: rows of the shard itself.

use kv::{Key, KeyRange};

use super::{GENERATION_BYTES, Keys, ShardKind};

/// In front of the key of a row's second copy. No generation has this number, so it sorts before all of them, far from
/// the row itself.
const COPY: [u8; GENERATION_BYTES] = [0; GENERATION_BYTES];

impl Keys {
    /// Whether a row has a second copy: without the applied row and the catalogue nothing else can be understood.
    pub fn has_copy(&self, key: &[u8]) -> bool {
        let kinds = [
            ShardKind::Applied,
            ShardKind::CatalogueMeta,
            ShardKind::CatalogueSpace,
            ShardKind::CatalogueBranch,
            ShardKind::CatalogueType,
            ShardKind::CatalogueMachine,
        ];
        kinds.into_iter().any(|kind| key.starts_with(&self.shard_row(kind)))
    }

    /// The key of the second copy of a row.
    pub fn copy_of(key: &[u8]) -> Key {
        let mut copy = Key::from(COPY);
        copy.extend_from_slice(key);
        copy
    }

    /// The key of the row that a second copy is of.
    pub fn original_of(copy: &[u8]) -> Option<&[u8]> {
        copy.strip_prefix(&COPY)
    }

    /// The second copies of the rows of a range.
    pub fn copies_in(range: &KeyRange) -> KeyRange {
        let end = match &range.end {
            Some(end) => Some(Self::copy_of(end).to_vec()),
            None => KeyRange::prefix(&COPY).end,
        };
        KeyRange { start: Self::copy_of(&range.start).to_vec(), end }
    }

    /// The row of the catalogue's own numbers.
    pub fn catalogue_meta(&self) -> Key {
        self.shard_row(ShardKind::CatalogueMeta)
    }

    /// The row of a space.
    pub fn catalogue_space(&self, space: u32) -> Key {
        let mut key = self.shard_row(ShardKind::CatalogueSpace);
        key.extend_from_slice(&space.to_be_bytes());
        key
    }

    /// The rows of all spaces.
    pub fn catalogue_spaces(&self) -> KeyRange {
        KeyRange::prefix(&self.shard_row(ShardKind::CatalogueSpace))
    }

    /// The row of a branch.
    pub fn catalogue_branch(&self, space: u32, branch: u32) -> Key {
        let mut key = self.shard_row(ShardKind::CatalogueBranch);
        key.extend_from_slice(&space.to_be_bytes());
        key.extend_from_slice(&branch.to_be_bytes());
        key
    }

    /// The rows of all branches.
    pub fn catalogue_branches(&self) -> KeyRange {
        KeyRange::prefix(&self.shard_row(ShardKind::CatalogueBranch))
    }

    /// The row of a record type.
    pub fn catalogue_type(&self, space: u32, record_type: u32) -> Key {
        let mut key = self.shard_row(ShardKind::CatalogueType);
        key.extend_from_slice(&space.to_be_bytes());
        key.extend_from_slice(&record_type.to_be_bytes());
        key
    }

    /// The rows of all record types.
    pub fn catalogue_types(&self) -> KeyRange {
        KeyRange::prefix(&self.shard_row(ShardKind::CatalogueType))
    }

    /// The row of a user's machine.
    pub fn catalogue_machine(&self, machine: u16) -> Key {
        let mut key = self.shard_row(ShardKind::CatalogueMachine);
        key.extend_from_slice(&machine.to_be_bytes());
        key
    }

    /// The rows of all users' machines.
    pub fn catalogue_machines(&self) -> KeyRange {
        KeyRange::prefix(&self.shard_row(ShardKind::CatalogueMachine))
    }
}
