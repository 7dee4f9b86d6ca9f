//! Keyed state: the handle on maps, and on operators that own partitions of them.
//!
//! - [`Maps`]: maps by name: reading them, and updates with versions.
//! - [`Operator`], [`OwnedPartition`]: a partition of an operator has one owner, whose commits carry its fence, a number, and the
//!   positions of its inputs.
//! - [`backends`]: the same for state in any store, by one trait: in memory, over a store of bytes, and over a map.

pub mod backends;
mod checkpoints;
pub(crate) mod commit;
pub(crate) mod export;
mod handles;
pub(crate) mod import;
mod listing;
mod operator;
mod overview;
mod partition_commit;
mod reads;
mod updates;

use std::sync::Arc;

use contract::{Error, Value, Written, names};
use kernel::keyed::updates::UpdatesWriter;
use kernel::{Answer, Body, KeyedAct, Op, OpOutcome, Transact, ValueRef};
use node::error::unexpected_answer;
use node::pending::Pending;

pub use checkpoints::{
    CheckpointChoice, CheckpointError, CheckpointInfo, CheckpointOptions, Checkpoints, FoundCheckpoint,
    JointCheckpoint, ListedCheckpoints, StartedCheckpoint,
};
pub use commit::KeyedDone;
pub use contract::keyed::{
    InputPosition, InvalidVersion, KeyedValue, LogicalTime, MapSummary, Merge, Policy, UpdateOutcome, Updated, limits,
    shown_key,
};
pub use listing::{ListedOperators, ListedPartitions};
pub use operator::{Operator, OwnedPartition, Partition, check_operator};
pub use overview::{KeyedOverview, SilentPartition};
pub use partition_commit::{PartitionCommit, PartitionCommitted};
pub use reads::{KeysPage, KeysRange, ListedMaps};
pub use updates::{MapCommit, MapUpdates};

use crate::admission::Scope;
use crate::commit::{outcome, written};

/// Maps of a branch, or of a group in it. Each call is atomic and durable when it returns.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// use statehouse::keyed::UpdateOutcome;
/// let maps = house.maps();
/// assert_eq!(maps.put("prices", b"apple", 30, 7)?, UpdateOutcome::Applied);
/// assert_eq!(maps.put("prices", b"apple", 30, 7)?, UpdateOutcome::Duplicate); // a replay
/// assert_eq!(maps.put("prices", b"apple", 25, 6)?, UpdateOutcome::Stale { current: 7.into() });
/// assert_eq!(maps.put("prices", b"apple", 31, 7)?, UpdateOutcome::VersionConflict);
/// assert_eq!(maps.get("prices", b"apple")?.map(|found| found.value), Some(30.into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Maps {
    pub(crate) scope: Scope,
    pub(crate) group: Option<Arc<str>>,
}

impl Maps {
    /// Puts a value, if the version is newer than that of the key. A map that does not exist is created.
    pub fn put(
        &self,
        map: &str,
        key: &[u8],
        value: impl Into<Value>,
        version: impl Into<contract::keyed::LogicalTime>,
    ) -> Result<UpdateOutcome, Error> {
        let (value, mut updates) = (value.into(), UpdatesWriter::new());
        updates.put(key, ValueRef::from(&value), version.into());
        self.one(map, key, &updates)
    }

    /// Puts a value with version 0: the first value stays, until a [`put`](Self::put) with a version above 0 replaces it. Use it in maps
    /// that are never sealed; once a map has a seal, inserting a new id is [`Stale`](UpdateOutcome::Stale).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// use statehouse::keyed::UpdateOutcome;
    /// let seen = house.maps();
    /// assert_eq!(seen.insert("events", b"event-1", "paid")?, UpdateOutcome::Applied);
    /// assert_eq!(seen.insert("events", b"event-1", "paid")?, UpdateOutcome::Duplicate);
    /// assert_eq!(seen.insert("events", b"event-1", "other")?, UpdateOutcome::VersionConflict);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert(&self, map: &str, id: &[u8], value: impl Into<Value>) -> Result<UpdateOutcome, Error> {
        self.put(map, id, value, 0)
    }

    /// Deletes a key, if the version is newer than that of the key. The version is remembered until the seal passes it.
    pub fn delete(
        &self,
        map: &str,
        key: &[u8],
        version: impl Into<contract::keyed::LogicalTime>,
    ) -> Result<UpdateOutcome, Error> {
        let mut updates = UpdatesWriter::new();
        updates.delete(key, version.into());
        self.one(map, key, &updates)
    }

    fn one(&self, map: &str, key: &[u8], updates: &UpdatesWriter) -> Result<UpdateOutcome, Error> {
        names::check_key(key)?;
        let updated = self.propose(map, KeyedAct::Update(updates.updates()), updated).wait()?;
        updated.of(0).ok_or_else(|| unexpected_answer("one update", &updated))
    }

    /// Applies several updates in one commit: each is applied, or it says why it was not.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// use statehouse::keyed::MapUpdates;
    /// let updates = MapUpdates::new().put(b"apple", 30, 7).put(b"pear", 40, 7).delete(b"plum", 7);
    /// assert_eq!(house.maps().update("prices", &updates)?.applied(), 3);
    /// assert_eq!(house.maps().update("prices", &updates)?.applied(), 0); // a replay
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn update(&self, map: &str, updates: &MapUpdates) -> Result<Updated, Error> {
        self.update_later(map, updates).wait()
    }

    /// [`update`](Self::update), answered later.
    pub fn update_later(&self, map: &str, updates: &MapUpdates) -> Pending<Updated> {
        match updates.check() {
            Ok(()) => self.propose(map, KeyedAct::Update(updates.as_updates()), updated),
            Err(error) => Pending::refused(error),
        }
    }

    /// Says up to which version the source has finished. An update that arrives later with a version at or below it changes nothing,
    /// and the store forgets the versions of deletions that the seal has passed, in bounded steps. A lower seal changes nothing.
    pub fn seal(&self, map: &str, version: impl Into<contract::keyed::LogicalTime>) -> Result<(), Error> {
        self.seal_later(map, version).wait().map(drop)
    }

    /// [`seal`](Self::seal), answered later: whether this has raised the seal.
    pub fn seal_later(&self, map: &str, version: impl Into<contract::keyed::LogicalTime>) -> Pending<bool> {
        self.propose(map, KeyedAct::Seal(version.into()), changed)
    }

    /// Creates a map with a policy, unless it exists with it. Maps that are created by their first update are monotonic.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// use statehouse::keyed::{MapUpdates, Merge, Policy};
    /// let maps = house.maps();
    /// maps.create("balances", Policy::Ordered)?;
    /// // They come out of order, and twice; each counts once, in the order of versions, when the source has sealed them.
    /// let updates = MapUpdates::new().merge_at(b"ann", Merge::Max, 5, 2).merge_at(b"ann", Merge::Add, 3, 1);
    /// maps.update("balances", &updates)?;
    /// maps.update("balances", &updates)?;
    /// assert_eq!(maps.get("balances", b"ann")?, None);
    /// maps.seal("balances", 2)?;
    /// assert_eq!(maps.get("balances", b"ann")?.map(|found| found.value), Some(5.into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create(&self, map: &str, policy: Policy) -> Result<(), Error> {
        self.create_later(map, policy).wait().map(drop)
    }

    /// [`create`](Self::create), answered later: whether this has created it.
    pub fn create_later(&self, map: &str, policy: Policy) -> Pending<bool> {
        self.propose(map, KeyedAct::Create(policy), changed)
    }

    /// Deletes a map with all that it holds, its input positions and the number of its last commit included. Returns whether
    /// there was one.
    pub fn delete_map(&self, map: &str) -> Result<bool, Error> {
        Ok(self.delete_map_later(map).wait()?.is_some())
    }

    /// [`delete_map`](Self::delete_map), answered later: the commit number, if there was a map.
    pub fn delete_map_later(&self, map: &str) -> Pending<Option<u64>> {
        self.propose(map, KeyedAct::Delete, |answer| match &answer {
            Answer::Done { outcomes, .. } if outcomes.as_slice() == [OpOutcome::Nothing] => Ok(None),
            _ => written(answer).map(|Written { commit, .. }| Some(commit)),
        })
    }

    fn propose<T>(&self, map: &str, act: KeyedAct<'_>, decode: fn(Answer) -> Result<T, Error>) -> Pending<T> {
        let prepare = || {
            self.check_names(map)?;
            self.scope.current()
        };
        let (catalogue, ids) = match prepare() {
            Ok(prepared) => prepared,
            Err(error) => return Pending::refused(error),
        };
        let transact = Transact::new(ids.space, ids.branch, self.group.as_deref(), vec![Op::Map(map, act)]);
        self.scope.propose(&catalogue, &Body::Transact(transact), decode)
    }

    fn check_names(&self, map: &str) -> Result<(), Error> {
        if let Some(group) = &self.group {
            names::check_group(group)?;
        }
        Ok(names::check_map(map)?)
    }
}

fn changed(answer: Answer) -> Result<bool, Error> {
    match outcome(answer)? {
        (_, OpOutcome::Written(_)) => Ok(true),
        (_, OpOutcome::Existing(_)) => Ok(false),
        other => Err(unexpected_answer("a change of a map", &other)),
    }
}

fn updated(answer: Answer) -> Result<Updated, Error> {
    match outcome(answer)? {
        (_, OpOutcome::Updated(updated)) => Ok(updated),
        other => Err(unexpected_answer("updates", &other)),
    }
}
