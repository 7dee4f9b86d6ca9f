//! The name and place of a thing, read back from a key.

use kv::Key;

use super::{GENERATION_BYTES, ThingId, push_group, push_name, take_group_and_name};

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

pub(super) fn push_group_and_name(key: &mut Key, thing: &ThingId<'_>) {
    push_group(key, thing.group);
    push_name(key, thing.name.as_bytes());
}

/// Reads the key of a record, or of a run or a cell's newest version; none for a name of the index.
pub fn read_thing_key(key: &[u8], space: u32, branch: u32) -> Option<OwnedId> {
    // Generation, bucket, kind, space, branch.
    let rest = key.get(GENERATION_BYTES + 2 + 1 + 4 + 4..)?;
    let (group, name, rest) = take_group_and_name(rest)?;
    rest.is_empty().then_some(OwnedId { space, branch, group, name })
}
