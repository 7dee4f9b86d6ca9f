//! The name and place of a thing, read back from a key.

use kv::{DecodeError, Key, Reader, Writer};

use super::{GENERATION_BYTES, Kind, ThingId, push_group, push_name, take_group_and_name};

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

/// The name and place of a thing, with its bucket, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThingKey {
    /// The bucket.
    pub bucket: u16,
    /// The space.
    pub space: u32,
    /// The branch.
    pub branch: u32,
    /// The group, or none if it has none.
    pub group: Option<String>,
    /// The name.
    pub name: String,
}

impl ThingKey {
    /// Reads a key of a kind that ends with the name; none if it is another key.
    pub(super) fn read(kind: Kind, key: &[u8]) -> Option<Self> {
        let rest = key.get(GENERATION_BYTES..)?;
        let (bucket, rest) = rest.split_first_chunk()?;
        let (found, rest) = rest.split_first()?;
        let (space, rest) = rest.split_first_chunk()?;
        let (branch, rest) = rest.split_first_chunk()?;
        let (group, name, rest) = take_group_and_name(rest)?;
        (*found == kind as u8 && rest.is_empty()).then_some(Self {
            bucket: u16::from_be_bytes(*bucket),
            space: u32::from_be_bytes(*space),
            branch: u32::from_be_bytes(*branch),
            group,
            name,
        })
    }

    /// The same, borrowed.
    pub fn id(&self) -> ThingId<'_> {
        ThingId {
            bucket: self.bucket,
            space: self.space,
            branch: self.branch,
            group: self.group.as_deref(),
            name: &self.name,
        }
    }

    /// Appends it, as commands have it.
    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.u16(self.bucket).u32(self.space).u32(self.branch);
        writer.optional_text(self.group.as_deref()).bytes(self.name.as_bytes());
    }

    /// Reads one from a command.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (bucket, space, branch) = (reader.u16()?, reader.u32()?, reader.u32()?);
        let group = reader.optional_text()?.map(str::to_owned);
        Ok(Self { bucket, space, branch, group, name: reader.text()?.to_owned() })
    }
}
