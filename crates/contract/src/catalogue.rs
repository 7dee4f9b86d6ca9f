//! Spaces, branches, and how much history a space keeps.

use std::time::Duration;

/// The space that is used when none is named.
pub const DEFAULT_SPACE: &str = "default";

/// The branch that every space begins with.
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
    /// Versions that are kept, the current one counted: at least 1.
    pub versions_max: u64,
    /// How long ago an old version was current at most, in µs.
    pub age_us_max: u64,
}

impl Retention {
    /// Keeps every version.
    pub const ALL: Self = Self { versions_max: u64::MAX, age_us_max: u64::MAX };

    /// Keeps the current version only.
    pub const NONE: Self = Self { versions_max: 1, age_us_max: 0 };

    /// Keeps what is within `versions` versions and was current within `age`.
    pub fn within(versions: u64, age: Duration) -> Self {
        Self { versions_max: versions.max(1), age_us_max: u64::try_from(age.as_micros()).unwrap_or(u64::MAX) }
    }

    /// Keeps the newest `versions` versions, however old they are.
    pub fn versions(versions: u64) -> Self {
        Self { versions_max: versions.max(1), age_us_max: u64::MAX }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self::within(100, Duration::from_secs(7 * 24 * 60 * 60))
    }
}
