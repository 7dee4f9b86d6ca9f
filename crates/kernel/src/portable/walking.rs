//! Reading a view for an export: what is damaged is noted, and left out.

use std::collections::BTreeSet;

use kv::{Bytes, KeyRange, KvError, Order, View};
use session::Halt;

use super::Item;
use crate::catalogue::{BranchId, Catalogue, SpaceId};
use crate::keys::names::is_name_in_group;
use crate::keys::things::{OwnedId, read_thing_key};
use crate::keys::{GENERATION_BYTES, Keys, Kind};

/// A walk over a view.
pub(crate) struct Walking<'walk, E> {
    pub(crate) view: &'walk dyn View,
    pub(crate) keys: &'walk Keys,
    pub(crate) catalogue: &'walk Catalogue,
    pub(crate) only: Option<SpaceId>,
    pub(crate) take: &'walk mut dyn FnMut(&Item<'_>) -> Result<(), E>,
    pub(crate) damaged: BTreeSet<KeyRange>,
}

impl<E: From<Halt>> Walking<'_, E> {
    pub(crate) fn includes(&self, space: SpaceId) -> bool {
        self.only.is_none_or(|only| only == space)
    }

    pub(crate) fn is_live(&self, id: &OwnedId) -> bool {
        self.includes(id.space) && self.catalogue.space(id.space).is_ok_and(|it| it.live_branch(id.branch).is_ok())
    }

    /// The value at a key; none if it is damaged.
    pub(crate) fn get(&mut self, key: &[u8]) -> Result<Option<Option<Bytes>>, E> {
        self.unless_damaged(self.view.get(key))
    }

    /// A floor; none also if both of its copies are damaged.
    pub(crate) fn floor(&mut self, key: &[u8]) -> Result<Option<Bytes>, E> {
        let view = self.view;
        Ok(self.unless_damaged(self.keys.get_either(key, |key| view.get(key)))?.flatten())
    }

    pub(crate) fn unless_damaged<T>(&mut self, read: Result<T, KvError>) -> Result<Option<T>, E> {
        match read {
            Ok(found) => Ok(Some(found)),
            Err(KvError::Damaged(damaged)) => {
                self.damaged.insert(damaged.range);
                Ok(None)
            }
            Err(other) => Err(Halt::from(other).into()),
        }
    }

    /// Whether a range is whole.
    pub(crate) fn is_whole(&mut self, range: &KeyRange) -> Result<bool, E> {
        let mut is_whole = true;
        for row in self.view.scan(range, Order::Ascending) {
            match row {
                Ok(_) => {}
                Err(KvError::Damaged(damaged)) => {
                    self.damaged.insert(damaged.range);
                    is_whole = false;
                }
                Err(other) => return Err(Halt::from(other).into()),
            }
        }
        Ok(is_whole)
    }

    /// Passes the rows of a range to `take`, without those that are damaged.
    pub(crate) fn rows(
        &mut self,
        range: &KeyRange,
        mut take: impl FnMut(&mut Self, &[u8], &Bytes) -> Result<(), E>,
    ) -> Result<(), E> {
        for row in self.view.scan(range, Order::Ascending) {
            match row {
                Ok((key, value)) => take(self, &key, &value)?,
                Err(KvError::Damaged(damaged)) => {
                    self.damaged.insert(damaged.range);
                }
                Err(other) => return Err(Halt::from(other).into()),
            }
        }
        Ok(())
    }

    /// Passes the rows of things of a kind to `take`. The index of names is derived from them.
    pub(crate) fn things(
        &mut self,
        kind: Kind,
        bucket: u16,
        space: SpaceId,
        branch: BranchId,
        mut take: impl FnMut(&mut Self, &[u8], &Bytes) -> Result<(), E>,
    ) -> Result<(), E> {
        let range = self.keys.rows_of_branch(kind, bucket, space, branch);
        self.rows(&range, |walk, key, row| if is_name_in_group(key) { Ok(()) } else { take(walk, key, row) })
    }
}

/// The thing in the key of a cell, a record or a run.
pub(crate) fn id_of(key: &[u8], space: SpaceId, branch: BranchId) -> Result<OwnedId, Halt> {
    read_thing_key(key, space, branch).ok_or_else(|| foreign("things with names"))
}

/// The number at the end of a key.
pub(crate) fn last_number(key: &[u8]) -> Option<u64> {
    debug_assert!(key.len() > GENERATION_BYTES);
    key.last_chunk().map(|number| u64::from_be_bytes(*number))
}

pub(crate) fn foreign(among: &str) -> Halt {
    Halt::Inconsistent(format!("a foreign key among {among}"))
}
