//! Keyed state in a commit: its operations on maps, and its conditions.

use std::sync::Arc;

use contract::keyed::{LogicalTime, Policy, Updated};
use contract::limits::NAME_BYTES_MAX;
use contract::{Error, Rejection, names};
use kernel::keyed::restore::{RestoredCounts, RestoredMap};
use kernel::keyed::rows::ContentRows;
use kernel::{Guard, KeyedAct, KeyedGuard, Op, OpOutcome};

use super::Maps;
use super::updates::{MapCommit, MapUpdates};
use crate::commit::{Commit, OwnGuard, OwnOp};

pub(super) enum OwnKeyedGuard {
    Absent(String, Vec<u8>),
    Exists(String, Vec<u8>),
    VersionIs(String, Vec<u8>, LogicalTime),
    VersionBelow(String, Vec<u8>, LogicalTime),
    UnchangedSince(String, Vec<u8>, u64),
    RangeUnchangedSince(String, Vec<u8>, Option<Vec<u8>>, u64),
    PositionIs(String, String, Option<u64>),
}

impl OwnGuard for OwnKeyedGuard {
    fn check(&self) -> Result<(), Error> {
        match self {
            Self::Absent(map, key)
            | Self::Exists(map, key)
            | Self::VersionIs(map, key, _)
            | Self::VersionBelow(map, key, _)
            | Self::UnchangedSince(map, key, _) => {
                names::check_map(map)?;
                names::check_key(key)?;
            }
            Self::RangeUnchangedSince(map, from, to, _) => {
                names::check_map(map)?;
                // The ends of a range need not be keys.
                for end in std::iter::once(from).chain(to) {
                    Rejection::check_limit("name_bytes_max", NAME_BYTES_MAX, end.len())?;
                }
            }
            Self::PositionIs(map, input, _) => {
                names::check_map(map)?;
                names::check_input(input)?;
            }
        }
        Ok(())
    }

    fn guard(&self) -> Guard<'_> {
        Guard::Map(match self {
            Self::Absent(map, key) => KeyedGuard::Absent(map, key),
            Self::Exists(map, key) => KeyedGuard::Exists(map, key),
            Self::VersionIs(map, key, version) => KeyedGuard::VersionIs(map, key, *version),
            Self::VersionBelow(map, key, version) => KeyedGuard::VersionBelow(map, key, *version),
            Self::UnchangedSince(map, key, commit) => KeyedGuard::UnchangedSince(map, key, *commit),
            Self::RangeUnchangedSince(map, from, to, commit) => {
                KeyedGuard::RangeUnchangedSince(map, from, to.as_deref(), *commit)
            }
            Self::PositionIs(map, input, position) => KeyedGuard::PositionIs(map, input, *position),
        })
    }
}

pub(super) enum OwnKeyedOp {
    Update(String, Arc<MapUpdates>),
    Commit(String, Arc<MapCommit>),
    Seal(String, LogicalTime),
    Create(String, Policy),
    Delete(String),
    BeginRestore(String, RestoredMap),
    /// Rows, encoded and checked.
    RestoreRows(String, u32, Vec<u8>),
    EndRestore(String, u32, RestoredCounts),
    AbandonRestore(String, u32),
    BeginCheckpoint(String),
    EndCheckpoint(String, u64),
}

impl OwnOp for OwnKeyedOp {
    fn check(&self) -> Result<(), Error> {
        let (Self::Update(map, _)
        | Self::Commit(map, _)
        | Self::Seal(map, _)
        | Self::Create(map, _)
        | Self::Delete(map)
        | Self::BeginRestore(map, _)
        | Self::RestoreRows(map, ..)
        | Self::EndRestore(map, ..)
        | Self::AbandonRestore(map, _)
        | Self::BeginCheckpoint(map)
        | Self::EndCheckpoint(map, _)) = self;
        names::check_map(map)?;
        match self {
            Self::Update(_, updates) => updates.check(),
            Self::Commit(_, commit) => commit.check(),
            _ => Ok(()),
        }
    }

    fn op(&self) -> Op<'_> {
        match self {
            Self::Update(map, updates) => Op::Map(map, KeyedAct::Update(updates.as_updates())),
            Self::Commit(map, commit) => Op::Map(map, KeyedAct::Commit(commit.as_commit())),
            Self::Seal(map, version) => Op::Map(map, KeyedAct::Seal(*version)),
            Self::Create(map, policy) => Op::Map(map, KeyedAct::Create(*policy)),
            Self::Delete(map) => Op::Map(map, KeyedAct::Delete),
            Self::BeginRestore(map, restored) => Op::Map(map, KeyedAct::BeginRestore(*restored)),
            Self::RestoreRows(map, number, rows) => {
                let rows = ContentRows::read(rows).expect("they were checked when they were read");
                Op::Map(map, KeyedAct::RestoreRows(*number, rows))
            }
            Self::EndRestore(map, number, counts) => Op::Map(map, KeyedAct::EndRestore(*number, *counts)),
            Self::AbandonRestore(map, number) => Op::Map(map, KeyedAct::AbandonRestore(*number)),
            Self::BeginCheckpoint(map) => Op::Map(map, KeyedAct::BeginCheckpoint),
            Self::EndCheckpoint(map, begun) => Op::Map(map, KeyedAct::EndCheckpoint(*begun)),
        }
    }
}

/// The result of an operation on a map, where it is more than a version.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyedDone {
    /// The updates were applied, or some of them.
    Updated(Updated),
    /// The map was as the operation would have it: the seal is as high or higher, or it exists.
    Unchanged {
        /// The commit number of its last change.
        commit: u64,
    },
    /// A restore was begun; no operation that users put into a commit has this result.
    RestoreBegun {
        /// The number of what is put aside.
        number: u32,
    },
}

impl KeyedDone {
    /// That of a map is the commit number of its last change; each key has its own.
    pub fn version(&self) -> Option<u64> {
        match self {
            KeyedDone::Updated(_) | KeyedDone::RestoreBegun { .. } => None,
            KeyedDone::Unchanged { commit } => Some(*commit),
        }
    }
}

/// The result of an operation, if only keyed state has such results.
pub(crate) fn done(outcome: &OpOutcome) -> Option<KeyedDone> {
    match outcome {
        OpOutcome::Updated(updated) => Some(KeyedDone::Updated(updated.clone())),
        OpOutcome::Assigned(number) => Some(KeyedDone::RestoreBegun { number: *number }),
        OpOutcome::Existing(commit) => Some(KeyedDone::Unchanged { commit: *commit }),
        _ => None,
    }
}

impl Commit {
    /// Updates keys of a map, each with its version.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// use statehouse::keyed::MapUpdates;
    /// let shop = house.group("shop");
    /// let updates = MapUpdates::new().put(b"apple", 30, 7);
    /// shop.commit().if_key_absent("prices", b"apple").update_map("prices", updates).set_cell("open", true).run()?;
    /// assert_eq!(shop.maps().get("prices", b"apple")?.map(|found| found.value), Some(30.into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn update_map(self, map: &str, updates: MapUpdates) -> Self {
        self.with_op(OwnKeyedOp::Update(map.to_owned(), Arc::new(updates)))
    }

    /// Makes this the numbered commit of a map: sent again, all of it gets its first answer.
    pub fn commit_map(self, map: &str, commit: MapCommit) -> Self {
        self.commit_map_shared(map, Arc::new(commit))
    }

    pub(super) fn commit_map_shared(self, map: &str, commit: Arc<MapCommit>) -> Self {
        self.with_op(OwnKeyedOp::Commit(map.to_owned(), commit))
    }

    /// Raises the seal of a map.
    pub fn seal_map(self, map: &str, version: impl Into<LogicalTime>) -> Self {
        self.with_op(OwnKeyedOp::Seal(map.to_owned(), version.into()))
    }

    /// Creates a map with a policy, unless it exists with it.
    pub fn create_map(self, map: &str, policy: Policy) -> Self {
        self.with_op(OwnKeyedOp::Create(map.to_owned(), policy))
    }

    /// Deletes a map with all that it holds.
    pub fn delete_map(self, map: &str) -> Self {
        self.with_op(OwnKeyedOp::Delete(map.to_owned()))
    }

    /// Only if the key of the map has no value.
    pub fn if_key_absent(self, map: &str, key: &[u8]) -> Self {
        self.with_guard(OwnKeyedGuard::Absent(map.to_owned(), key.to_vec()))
    }

    /// Only if the key of the map has a value.
    pub fn if_key_exists(self, map: &str, key: &[u8]) -> Self {
        self.with_guard(OwnKeyedGuard::Exists(map.to_owned(), key.to_vec()))
    }

    /// Only if the key of the map was put with this version.
    pub fn if_key_version(self, map: &str, key: &[u8], version: impl Into<LogicalTime>) -> Self {
        self.with_guard(OwnKeyedGuard::VersionIs(map.to_owned(), key.to_vec(), version.into()))
    }

    /// Only if the key of the map was put with a lower version, or not at all.
    pub fn if_key_version_below(self, map: &str, key: &[u8], version: impl Into<LogicalTime>) -> Self {
        self.with_guard(OwnKeyedGuard::VersionBelow(map.to_owned(), key.to_vec(), version.into()))
    }

    /// Only if no commit after this one has changed the key of the map.
    pub fn if_key_unchanged_since(self, map: &str, key: &[u8], commit: u64) -> Self {
        self.with_guard(OwnKeyedGuard::UnchangedSince(map.to_owned(), key.to_vec(), commit))
    }

    /// Only if no commit after this one has changed a key from `from` to before `to`, if given.
    pub fn if_keys_unchanged_since(self, map: &str, from: &[u8], to: Option<&[u8]>, commit: u64) -> Self {
        let (from, to) = (from.to_vec(), to.map(<[u8]>::to_vec));
        self.with_guard(OwnKeyedGuard::RangeUnchangedSince(map.to_owned(), from, to, commit))
    }

    /// Only if the map has read the input up to this position; none expects that it has read nothing of it.
    pub fn if_input_position(self, map: &str, input: &str, position: Option<u64>) -> Self {
        self.with_guard(OwnKeyedGuard::PositionIs(map.to_owned(), input.to_owned(), position))
    }
}

impl Maps {
    /// Starts a commit in the group of these maps. Maps without a group form one each, so the commit can concern only one of
    /// them.
    pub fn commit(&self) -> Commit {
        Commit::new(self.scope.clone(), self.group.as_deref().map(str::to_owned))
    }
}
