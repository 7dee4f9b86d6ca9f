//! Keys of the catalogue: rows of the shard itself.

use kv::{Key, KeyRange};

use super::{Keys, ShardKind};

impl Keys {
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

    /// The row of the guard of a prefix of group names.
    pub fn catalogue_guard(&self, space: u32, prefix: &str) -> Key {
        let mut key = self.shard_row(ShardKind::CatalogueGuard);
        key.extend_from_slice(&space.to_be_bytes());
        key.extend_from_slice(prefix.as_bytes());
        key
    }

    /// The rows of all guards.
    pub fn catalogue_guards(&self) -> KeyRange {
        KeyRange::prefix(&self.shard_row(ShardKind::CatalogueGuard))
    }

    /// The row of a principal.
    pub fn catalogue_principal(&self, name: &str) -> Key {
        let mut key = self.shard_row(ShardKind::CataloguePrincipal);
        key.extend_from_slice(name.as_bytes());
        key
    }

    /// The rows of all principals.
    pub fn catalogue_principals(&self) -> KeyRange {
        KeyRange::prefix(&self.shard_row(ShardKind::CataloguePrincipal))
    }

    /// How far the audit has come.
    pub fn audit_head(&self) -> Key {
        self.shard_row(ShardKind::AuditHead)
    }

    /// How far the indexes of a record type are filled.
    pub fn index_fill(&self, space: u32, record_type: u32) -> Key {
        let mut key = self.shard_row(ShardKind::IndexFill);
        key.extend_from_slice(&space.to_be_bytes());
        key.extend_from_slice(&record_type.to_be_bytes());
        key
    }

    /// The rows of all types whose indexes are being filled.
    pub fn index_fills(&self) -> KeyRange {
        KeyRange::prefix(&self.shard_row(ShardKind::IndexFill))
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

/// Reads the end of [`Keys::index_fill`]: the space and the type.
pub fn read_index_fill(key: &[u8]) -> Option<(u32, u32)> {
    let (rest, record_type) = key.split_last_chunk::<4>()?;
    let (_, space) = rest.split_last_chunk::<4>()?;
    Some((u32::from_be_bytes(*space), u32::from_be_bytes(*record_type)))
}
