//! Keys of the rows that hold things themselves.

use std::ops::Deref;

use kv::Key;

use super::{GENERATION_BYTES, SHARD_ROWS};

/// The key of a row that holds a thing, or a part of one. It can be read like any key, but only `held.rs` writes the row,
/// because its bytes are counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeldKey(Key);

impl HeldKey {
    pub(super) fn new(key: Key) -> Self {
        Self(key)
    }

    pub(crate) fn into_key(self) -> Key {
        self.0
    }
}

impl Deref for HeldKey {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// The kind and the space of a row in a bucket, from its key; none if it is a row of the shard itself. Of a kind without a
/// space, the space means nothing.
pub(crate) fn kind_and_space(key: &[u8]) -> Option<(u8, u32)> {
    let (bucket, rest) = key.get(GENERATION_BYTES..)?.split_first_chunk()?;
    let (kind, rest) = rest.split_first()?;
    let space = u32::from_be_bytes(*rest.first_chunk()?);
    (u16::from_be_bytes(*bucket) != SHARD_ROWS).then_some((*kind, space))
}
