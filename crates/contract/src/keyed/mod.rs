//! The contract of keyed state: maps from keys to values for stream processors, where every update counts exactly once.
//!
//! - A *map* is a thing with a name in a group. A key of it is *put*, with a version, or *merged*; never both.
//! - A put or a deletion is applied only if its version is newer than that of the key. Repeating it changes nothing, and its
//!   outcome says why ([`UpdateOutcome`]).
//! - Updates travel in *commits* with the positions of their inputs. A numbered commit that is sent again gets its first answer,
//!   and that is what makes merges count once.
//! - A *seal* says up to which version the source has finished: nothing at or below it is applied any more, so the store can
//!   forget the versions of deleted keys.
//! - That is the policy *monotonic*. A map can have the policy *ordered* instead: its updates, merges included, wait until the seal
//!   reaches their versions, and are applied in the order of these ([`Policy`]).
//! - [`backend`]: the same for state in any store, as a trait. [`limits`]: its limits by name.

pub mod backend;
pub mod limits;
mod rejection;

use std::fmt;

pub use rejection::KeyedRejection;

use crate::value::Value;

/// The stored number of a map in the change feed.
pub(crate) const SUBJECT_CODE: u8 = 5;

/// A change has two reasons, which no metric tells apart.
pub(crate) const IS_COUNTED_BY_REASON: bool = false;

/// A version: the time that an execution layer assigns to an input. A plain number is a round of epoch 0.
///
/// ```
/// use statehouse_contract::keyed::LogicalTime;
///
/// let early = LogicalTime::from(7);
/// let late = LogicalTime::new(1, 0);
/// assert!(early < late);
/// assert_eq!((early.to_string(), late.to_string()), ("7".into(), "1:0".into()));
/// assert_eq!("1:0".parse(), Ok(late));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogicalTime {
    /// Counts what comes first: the epochs of an execution.
    pub epoch: u64,
    /// Counts within the epoch.
    pub round: u64,
}

impl LogicalTime {
    /// A round of an epoch.
    pub const fn new(epoch: u64, round: u64) -> Self {
        Self { epoch, round }
    }
}

impl From<u64> for LogicalTime {
    fn from(round: u64) -> Self {
        Self { epoch: 0, round }
    }
}

/// A version with an epoch is no plain number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the version has an epoch, so it is no plain number")]
pub struct HasEpoch;

impl TryFrom<LogicalTime> for u64 {
    type Error = HasEpoch;

    /// ```
    /// use statehouse_contract::keyed::{HasEpoch, LogicalTime};
    /// assert_eq!((u64::try_from(LogicalTime::from(7)), u64::try_from(LogicalTime::new(1, 7))), (Ok(7), Err(HasEpoch)));
    /// ```
    fn try_from(time: LogicalTime) -> Result<Self, HasEpoch> {
        if time.epoch == 0 { Ok(time.round) } else { Err(HasEpoch) }
    }
}

impl fmt::Display for LogicalTime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { epoch: 0, round } => write!(formatter, "{round}"),
            Self { epoch, round } => write!(formatter, "{epoch}:{round}"),
        }
    }
}

/// Text that is no version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a version: a number such as 7, or an epoch and a round such as 1:7")]
pub struct InvalidVersion;

impl std::str::FromStr for LogicalTime {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        // `parse` alone would accept a plus sign.
        let number = |digits: &str| match digits.bytes().all(|byte| byte.is_ascii_digit()) {
            true => digits.parse().map_err(|_| InvalidVersion),
            false => Err(InvalidVersion),
        };
        match text.split_once(':') {
            None => number(text).map(Self::from),
            Some((epoch, round)) => Ok(Self::new(number(epoch)?, number(round)?)),
        }
    }
}

/// How the updates of a map are applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// At once, if they are newer than the key. Merges have no versions and need a numbered commit.
    #[default]
    Monotonic,
    /// In the order of their versions, once the seal reaches them. Every update has a version, merges too, and counts once by it.
    Ordered,
}

impl Policy {
    /// Each policy, with its word.
    pub const WORDS: [(Policy, &str); 2] = [(Policy::Monotonic, "monotonic"), (Policy::Ordered, "ordered")];

    /// The word for it.
    pub fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(policy, _)| *policy == self);
        found.map(|(_, word)| *word).expect("every policy has a word")
    }
}

/// What became of one update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpdateOutcome {
    /// It was applied; in an ordered map, it will be, or was, when the seal reaches its version.
    Applied,
    /// It was applied before: nothing was changed.
    Duplicate,
    /// Something newer was applied before, or the version is sealed: nothing was changed.
    Stale {
        /// The version of the key, or the seal if that is newer.
        current: LogicalTime,
    },
    /// The key has this version with another value, which stays. Somebody's computation is not deterministic.
    VersionConflict,
}

/// What became of the updates of an operation.
///
/// ```
/// use statehouse_contract::keyed::{UpdateOutcome, Updated};
///
/// let updated = Updated::new(3, vec![(1, UpdateOutcome::Duplicate)]);
/// assert_eq!(updated.of(1), Some(UpdateOutcome::Duplicate));
/// assert_eq!((updated.applied(), updated.of(3)), (2, None));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Updated {
    count: u32,
    others: Vec<(u32, UpdateOutcome)>,
}

impl Updated {
    /// So many updates, all applied but `others`, which are in order of their places.
    pub fn new(count: u32, others: Vec<(u32, UpdateOutcome)>) -> Self {
        Self { count, others }
    }

    /// How many updates there were.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// How many were applied.
    pub fn applied(&self) -> usize {
        self.count() - self.others.len()
    }

    /// Those that were not applied, by their places.
    pub fn others(&self) -> &[(u32, UpdateOutcome)] {
        &self.others
    }

    /// What became of the update at a place.
    pub fn of(&self, place: usize) -> Option<UpdateOutcome> {
        let place = u32::try_from(place).ok().filter(|place| *place < self.count)?;
        let other = self.others.binary_search_by_key(&place, |(place, _)| *place);
        Some(other.map_or(UpdateOutcome::Applied, |found| self.others[found].1))
    }

    /// What became of each, in order.
    pub fn outcomes(&self) -> impl Iterator<Item = UpdateOutcome> + '_ {
        (0..self.count()).map(|place| self.of(place).expect("the place is below the count"))
    }
}

/// How two integers become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Merge {
    /// Their sum. An overflow is refused.
    Add,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
}

impl Merge {
    /// Each way, with its word.
    pub const WORDS: [(Merge, &str); 3] = [(Merge::Add, "add"), (Merge::Min, "min"), (Merge::Max, "max")];

    /// The word for it.
    pub fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(merge, _)| *merge == self);
        found.map(|(_, word)| *word).expect("every way has a word")
    }

    /// One integer of two; none if it would overflow.
    pub fn of(self, left: i64, right: i64) -> Option<i64> {
        match self {
            Merge::Add => left.checked_add(right),
            Merge::Min => Some(left.min(right)),
            Merge::Max => Some(left.max(right)),
        }
    }
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyedValue {
    /// The value.
    pub value: Value,
    /// The version that it was put with; none if it was merged.
    pub version: Option<LogicalTime>,
    /// The commit number of the write.
    pub commit: u64,
}

impl KeyedValue {
    /// A value that was put with a version, or merged.
    pub fn new(value: Value, version: Option<LogicalTime>, commit: u64) -> Self {
        Self { value, version, commit }
    }
}

/// How far an input was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputPosition {
    /// The position.
    pub position: u64,
    /// The commit number of the write.
    pub commit: u64,
    /// When it was committed, µs since 1970 in UTC.
    pub updated_at: u64,
}

impl InputPosition {
    /// A position that a commit has written.
    pub fn new(position: u64, commit: u64, updated_at: u64) -> Self {
        Self { position, commit, updated_at }
    }
}

/// A map as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MapSummary {
    /// Keys that have a value.
    pub keys: u64,
    /// Deleted keys whose versions are remembered until the seal passes them.
    pub deleted: u64,
    /// How its updates are applied.
    pub policy: Policy,
    /// Updates that wait for the seal; behind one that passed more than a commit applies, also those that it has reached.
    pub waiting: u64,
    /// The number of the last numbered commit; 0 if there was none.
    pub last_number: u64,
    /// The version up to which the source has finished.
    pub seal: Option<LogicalTime>,
    /// The commit number of the last change.
    pub commit: u64,
    /// The commit number of its last restore, if there was one. A restore that fails leaves it as it is.
    pub restored: Option<u64>,
    /// When it was changed, µs since 1970 in UTC.
    pub updated_at: u64,
}

/// A key in words: text, or bytes as `0x` and digits.
///
/// ```
/// use statehouse_contract::keyed::shown_key;
///
/// assert_eq!((shown_key(b"word"), shown_key(&[0xff, 1])), ("word".into(), "0xff01".into()));
/// ```
pub fn shown_key(key: &[u8]) -> String {
    match std::str::from_utf8(key) {
        Ok(text) if !text.contains(char::is_control) => text.to_owned(),
        _ => key.iter().fold("0x".to_owned(), |shown, byte| shown + &format!("{byte:02x}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_as_it_is_shown() {
        for version in [LogicalTime::from(0), LogicalTime::from(u64::MAX), LogicalTime::new(u64::MAX, 0)] {
            assert_eq!(version.to_string().parse(), Ok(version));
        }
        for text in ["", ":", "1:", ":1", "+1", "1:+1", "-1", "1:2:3", "18446744073709551616", "a"] {
            assert_eq!(text.parse::<LogicalTime>(), Err(InvalidVersion), "{text:?}");
        }
    }
}
