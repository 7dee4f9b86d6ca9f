//! Spaces, branches, and how much history a space keeps.

use std::time::Duration;

/// The default space.
pub const DEFAULT_SPACE: &str = "default";

/// The branch that every space starts with.
pub const MAIN_BRANCH: &str = "main";

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
