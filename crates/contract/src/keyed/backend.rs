//! State backends of stream processors: what any store of keys and values has to do so that each update counts once.
//!
//! [`ExactlyOnceStateBackend`] is the portable contract. [`VersionedStateBackend`] adds what a processor needs besides: what
//! became of an update, deletions, a seal, and moving some keys to another backend. `statehouse-testkit` has the suite that
//! every implementation passes.
//!
//! Keeps: D1 (a key has the value of its newest version). Never: puts an older version over a newer one.

use std::hash::Hash;

use serde::{Deserialize, Serialize};

use super::{LogicalTime, UpdateOutcome};
use crate::error::Error;
use crate::rejection::Rejection;

/// A state backend in which each update counts once, by its version.
///
/// # Duties
/// - A put whose version is not above that of its key changes nothing, however often and in whatever order it comes.
/// - The first value of a version stays. Another value for it is [`BackendError::VersionConflict`].
/// - A snapshot is the state at one moment, with the versions of deleted keys.
/// - A restore takes effect as a whole or not at all. What was put after the snapshot is gone; putting it again counts.
///
/// ```
/// use statehouse_contract::keyed::backend::{BackendError, ExactlyOnceStateBackend};
///
/// /// Counts a sale once, whatever the source sends again.
/// fn sell<B>(stock: &B, fruit: &str, event: u64) -> Result<(), BackendError>
/// where
///     B: ExactlyOnceStateBackend<Key = String, Value = i64, Version = u64>,
/// {
///     let (left, seen) = stock.get(&fruit.to_owned())?.unwrap_or((100, 0));
///     if event > seen { stock.put(fruit.to_owned(), left - 1, event) } else { Ok(()) }
/// }
/// ```
pub trait ExactlyOnceStateBackend {
    /// The keys.
    type Key: Hash + Eq + Clone + Send;
    /// The values.
    type Value: Serialize + for<'de> Deserialize<'de> + Send;
    /// The versions, such as `u64` or [`LogicalTime`].
    type Version: Ord + Clone + Send;

    /// Puts a value, if the version is newer than that of the key; otherwise it changes nothing, and is no error.
    fn put(&self, key: Self::Key, value: Self::Value, version: Self::Version) -> Result<(), BackendError>;

    /// The value of a key, with its version; none if the key has no value.
    #[allow(clippy::type_complexity, reason = "it is a result, an option and a pair")]
    fn get(&self, key: &Self::Key) -> Result<Option<(Self::Value, Self::Version)>, BackendError>;

    /// The whole state as bytes, for a checkpoint.
    fn snapshot(&self) -> Result<Vec<u8>, BackendError>;

    /// Replaces the whole state by that of a snapshot. If it is refused, the state is as it was.
    fn restore(&mut self, data: &[u8]) -> Result<(), BackendError>;
}

/// A state backend that says what became of an update, deletes, forgets what is sealed, and moves keys.
///
/// # Duties
/// - The version of a deletion is remembered until the seal passes it: a late put does not bring the key back.
/// - Nothing at or below the seal is applied, and a seal never goes back.
/// - Keys that are restored into a state never put an older version over a newer one.
///
/// ```
/// use statehouse_contract::UpdateOutcome;
/// use statehouse_contract::keyed::backend::{BackendError, VersionedStateBackend};
///
/// /// Moves keys to another backend, which may have got newer updates of them already.
/// fn hand_over<B: VersionedStateBackend>(from: &B, to: &mut B, keys: &[B::Key]) -> Result<(), BackendError> {
///     to.restore_keys(&from.snapshot_for_keys(keys)?)
/// }
///
/// /// Whether nobody knew of the key's deletion.
/// fn forget<B: VersionedStateBackend>(state: &B, key: B::Key, at: B::Version) -> Result<bool, BackendError> {
///     Ok(state.delete(key, at)? == UpdateOutcome::Applied)
/// }
/// ```
pub trait VersionedStateBackend: ExactlyOnceStateBackend {
    /// [`put`](ExactlyOnceStateBackend::put), with what became of it.
    fn put_outcome(
        &self,
        key: Self::Key,
        value: Self::Value,
        version: Self::Version,
    ) -> Result<UpdateOutcome, BackendError>;

    /// Deletes a key, if the version is newer than that of the key. A key that does not exist is deleted too: puts with older
    /// versions come too late.
    fn delete(&self, key: Self::Key, version: Self::Version) -> Result<UpdateOutcome, BackendError>;

    /// The version up to which updates of the key change nothing: that of its value or its deletion, or the seal if that is
    /// newer. None if any version is applied.
    fn passed(&self, key: &Self::Key) -> Result<Option<Self::Version>, BackendError>;

    /// Says that the source has finished up to a version: nothing at or below it is applied any more, and deletions at or below
    /// it are forgotten. A lower seal changes nothing.
    fn seal(&self, version: Self::Version) -> Result<(), BackendError>;

    /// The state of some keys as bytes: their values and versions, those of deleted keys included. Only
    /// [`restore_keys`](Self::restore_keys) takes it.
    fn snapshot_for_keys(&self, keys: &[Self::Key]) -> Result<Vec<u8>, BackendError>;

    /// Adds the keys of a snapshot, of some keys or of all, in one step: each is taken over if it is newer than what is known of
    /// it here, even if its version is sealed. All other keys stay. If it is refused, the state is as it was.
    fn restore_keys(&mut self, data: &[u8]) -> Result<(), BackendError>;
}

/// A version that a backend can store: it is a [`LogicalTime`] in other words, in the same order.
pub trait StateVersion: Ord + Clone + Send + Into<LogicalTime> + TryFrom<LogicalTime> {}

impl<V: Ord + Clone + Send + Into<LogicalTime> + TryFrom<LogicalTime>> StateVersion for V {}

/// Why a state backend did not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The key has this version with another value, which stays.
    #[error(
        "key {key:?} has version {version} with another value, which stays: a computation is not deterministic, or two sources number alike"
    )]
    VersionConflict {
        /// The key, in words.
        key: String,
        /// The version.
        version: LogicalTime,
    },
    /// The snapshot is not what was written. Nothing was changed.
    #[error("the snapshot is damaged: {reason}; nothing was changed")]
    DamagedSnapshot {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The snapshot is sound, and this backend cannot hold it. Nothing was changed.
    #[error("the snapshot cannot be restored here: {reason}; nothing was changed")]
    UnsuitableSnapshot {
        /// Why not.
        reason: String,
    },
    /// A key, a value or a version cannot be turned into bytes, or back.
    #[error("{what} cannot be stored or read: {reason}")]
    Unstorable {
        /// What it is.
        what: &'static str,
        /// Why not.
        reason: String,
    },
    /// The store below refused or failed.
    #[error(transparent)]
    Store(#[from] Error),
}

impl From<Rejection> for BackendError {
    fn from(rejection: Rejection) -> Self {
        BackendError::Store(rejection.into())
    }
}

impl BackendError {
    /// What [`put`](ExactlyOnceStateBackend::put) answers for an outcome: a conflict is an error, and everything else is not.
    ///
    /// ```
    /// use statehouse_contract::UpdateOutcome;
    /// use statehouse_contract::keyed::backend::BackendError;
    ///
    /// let stale = UpdateOutcome::Stale { current: 7.into() };
    /// assert_eq!(BackendError::unless_conflict(stale, 6, || "apple".into()), Ok(()));
    /// let error = BackendError::unless_conflict(UpdateOutcome::VersionConflict, 7, || "apple".into()).unwrap_err();
    /// assert!(error.to_string().starts_with("key \"apple\" has version 7 with another value"));
    /// ```
    pub fn unless_conflict(
        outcome: UpdateOutcome,
        version: impl Into<LogicalTime>,
        key: impl FnOnce() -> String,
    ) -> Result<(), Self> {
        match outcome {
            UpdateOutcome::VersionConflict => Err(Self::VersionConflict { key: key(), version: version.into() }),
            UpdateOutcome::Applied | UpdateOutcome::Duplicate | UpdateOutcome::Stale { .. } => Ok(()),
        }
    }
}
