//! Rows that hold things themselves, and not an index: the one place where they are written and removed.
//!
//! Their bytes, and the things that exist by them, are counted to their space here, so no contract can forget it: the keys of
//! these rows are of a type that nothing else can write. Whoever writes such a row has read it, and says how long it was.

use kv::{Key, Staging, Writer};
use session::Halt;

use crate::context::Applying;
use crate::folded::Folded;
use crate::keys::names::is_name_in_group;
use crate::keys::{GENERATION_BYTES, HeldKey, kind_and_space};
use crate::usage::{HOLDERS, UsageChange, holder_of};

/// A row as it is before it is written or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Was {
    /// The length of its value.
    pub(crate) bytes: usize,
    /// Whether a thing exists by it. A part of a thing is none.
    pub(crate) exists: bool,
}

impl Was {
    /// A part of a thing, with a value of this length.
    pub(crate) fn part(bytes: usize) -> Self {
        Self { bytes, exists: false }
    }
}

/// The rows of things, to be written.
pub(crate) struct HeldRows<'staging> {
    pub(crate) state: &'staging mut Staging,
    pub(crate) folded: &'staging mut Folded,
}

impl HeldRows<'_> {
    /// Writes a row. `was` is none if there is no such row yet; `exists` says whether a thing exists by it from now on.
    pub(crate) fn put(&mut self, key: HeldKey, was: Option<Was>, exists: bool, encode: impl FnOnce(&mut Writer)) {
        let key = key.into_key();
        let (place, key_bytes) = (place_of(&key), counted_bytes(&key));
        let bytes = self.state.put_encoded(key, encode);
        self.count(place, key_bytes, was, Some(Was { bytes, exists }));
    }

    /// Removes a row that is there.
    pub(crate) fn delete(&mut self, key: HeldKey, was: Was) {
        let key = key.into_key();
        self.count(place_of(&key), counted_bytes(&key), Some(was), None);
        self.state.delete(key);
    }

    /// Removes a row of any kind that was found in a scan.
    pub(crate) fn delete_found(&mut self, key: Key, row: &[u8]) -> Result<(), Halt> {
        if let Some(was) = found(&key, row)? {
            self.count(place_of(&key), counted_bytes(&key), Some(was), None);
        }
        self.state.delete(key);
        Ok(())
    }

    fn count(&mut self, (space, holder): (u32, usize), key_bytes: usize, was: Option<Was>, is: Option<Was>) {
        let bytes =
            |row: Option<Was>| row.map_or(0, |row| i64::try_from(key_bytes + row.bytes).expect("rows are bounded"));
        let things = |row: Option<Was>| i64::from(row.is_some_and(|row| row.exists));
        let by = UsageChange { things: things(is) - things(was), bytes: bytes(is) - bytes(was) };
        self.folded.count_usage(space, holder, by);
    }
}

/// What a row counts; none if it does not hold a thing.
pub(crate) fn found(key: &[u8], row: &[u8]) -> Result<Option<Was>, Halt> {
    let Some((kind, _)) = kind_and_space(key) else { return Ok(None) };
    let Some(holder) = holder_of(kind).map(|place| &HOLDERS[place]) else { return Ok(None) };
    if holder.held[0] as u8 != kind {
        return Ok(Some(Was::part(row.len())));
    }
    if is_name_in_group(key) {
        return Ok(None);
    }
    Ok(Some(Was { bytes: row.len(), exists: (holder.exists)(row)? }))
}

/// The bytes of a key that are counted: generations are local to a node.
pub(crate) fn counted_bytes(key: &[u8]) -> usize {
    key.len() - GENERATION_BYTES
}

/// The space of a row, and whose it is.
fn place_of(key: &[u8]) -> (u32, usize) {
    let place = kind_and_space(key).and_then(|(kind, space)| Some((space, holder_of(kind)?)));
    place.expect("the kinds of these keys are in the lists of the contracts")
}

impl Applying<'_> {
    /// The rows of things, to be written.
    pub(crate) fn held(&mut self) -> HeldRows<'_> {
        HeldRows { state: self.state, folded: self.folded }
    }
}
