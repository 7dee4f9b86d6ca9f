//! Spaces, branches, how much history a space keeps, and what its things take.

use std::collections::BTreeMap;
use std::time::Duration;

/// The default space.
pub const DEFAULT_SPACE: &str = "default";

/// The branch that every space starts with.
pub const MAIN_BRANCH: &str = "main";

/// The number of the branch `main` of the space `default`, in every store. No branch has the number 0.
pub const FIRST_BRANCH_NUMBER: u32 = 1;

/// How many old versions of a cell are kept. The current version is always kept.
///
/// An old version is kept while it is among the newest `versions_max` versions (the current one counted) *and* was
/// current within the last `age_max`.
///
/// ```
/// use statehouse_contract::Retention;
/// assert_eq!(Retention::default().versions_max, 100);
/// assert_eq!(Retention::NONE.versions_max, 1);
/// assert_eq!(Retention::ALL.versions_max, u64::MAX);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Number of kept versions, including the current one: at least 1.
    pub versions_max: u64,
    /// How long ago a kept old version may have been current, in µs.
    pub age_us_max: u64,
}

impl Retention {
    /// Keeps every version.
    pub const ALL: Self = Self { versions_max: u64::MAX, age_us_max: u64::MAX };

    /// Keeps the current version only.
    pub const NONE: Self = Self { versions_max: 1, age_us_max: 0 };

    /// Keeps old versions among the newest `versions` that were current within `age`.
    pub fn within(versions: u64, age: Duration) -> Self {
        Self { versions_max: versions.max(1), age_us_max: u64::try_from(age.as_micros()).unwrap_or(u64::MAX) }
    }

    /// Keeps the newest `versions` versions, regardless of age.
    pub fn versions(versions: u64) -> Self {
        Self { versions_max: versions.max(1), age_us_max: u64::MAX }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self::within(100, Duration::from_secs(7 * 24 * 60 * 60))
    }
}

/// How many things there are, and how many bytes they take.
///
/// The bytes are those of the keys and values of the rows that hold the things: every kept version of a cell, a record with its fields, a
/// run with its events and steps. Indexes are not counted. A deleted thing that is still remembered takes bytes, but
/// is no thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Things that exist.
    pub things: u64,
    /// Bytes.
    pub bytes: u64,
}

/// What the things of a space take, in all its branches.
///
/// ```
/// use statehouse_contract::{SpaceUsage, Usage};
/// let usage = SpaceUsage {
///     by_contract: [("cells", 40), ("records", 2)].map(|(name, bytes)| (name.into(), Usage { things: 1, bytes })).into(),
/// };
/// assert_eq!(usage.total(), Usage { things: 2, bytes: 42 });
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceUsage {
    /// By the name of the contract, such as `cells`. Every contract is there.
    pub by_contract: BTreeMap<String, Usage>,
}

impl SpaceUsage {
    /// Adds what another space takes.
    pub fn add(&mut self, other: &SpaceUsage) {
        for (contract, usage) in &other.by_contract {
            let sum = self.by_contract.entry(contract.clone()).or_default();
            *sum = Usage { things: sum.things + usage.things, bytes: sum.bytes + usage.bytes };
        }
    }

    /// All contracts together.
    pub fn total(&self) -> Usage {
        self.by_contract.values().fold(Usage::default(), |total, usage| Usage {
            things: total.things + usage.things,
            bytes: total.bytes + usage.bytes,
        })
    }
}
