//! The contract of cells: named values, each with a version that counts its writes and never restarts.
//!
//! - A cell's first write has version 1 and each later one the next number, across deletion and re-creation too.
//! - Every call is atomic and, when it returns, durable. Calls on one cell are linearizable.
//! - A deletion is a version too: it is in the history, and the cell does not exist while it is the newest.

mod rejection;

pub use rejection::CellRejection;

use crate::error::Error;
use crate::names::NameInGroup;
use crate::value::Value;

/// The stored number of a cell in the change feed.
pub(crate) const SUBJECT_CODE: u8 = 1;

/// A change has two reasons, which no metric tells apart.
pub(crate) const IS_COUNTED_BY_REASON: bool = false;

/// Cells of one branch of one space.
///
/// Calls block until the answer is durable. Names are checked by [`check_cell`](crate::names::check_cell).
pub trait Cells {
    /// Creates the cell if it does not exist; otherwise changes nothing and returns the existing version.
    fn init(&self, cell: &str, value: Value) -> Result<Initialised, Error>;

    /// The value, or none if the cell does not exist.
    fn get(&self, cell: &str) -> Result<Option<Value>, Error>;

    /// The value with its version, commit number and time.
    fn get_versioned(&self, cell: &str) -> Result<Option<Versioned>, Error>;

    /// Writes the value unconditionally.
    fn set(&self, cell: &str, value: Value) -> Result<Written, Error>;

    /// Writes the value if the cell is as expected.
    fn cas(&self, cell: &str, expected: Expected, value: Value) -> Result<Swapped, Error>;

    /// Deletes the cell, if it exists.
    fn delete(&self, cell: &str) -> Result<Deleted, Error>;

    /// The kept versions, newest first.
    fn history(&self, cell: &str, page: HistoryPage) -> Result<History, Error>;

    /// The cell as it was at a version or a time.
    fn at(&self, cell: &str, moment: Moment) -> Result<AsOf, Error>;

    /// The cells whose names start with a prefix, ordered by (name, group).
    fn list(&self, prefix: &str, page: ListPage) -> Result<Listed, Error>;
}

/// A value with its version, commit number and time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Versioned {
    /// The value.
    pub value: Value,
    /// Counts the cell's writes.
    pub version: u64,
    /// The commit number of the write, which orders it among all writes of the shard.
    pub commit: u64,
    /// When it was written, µs since 1970 in UTC.
    pub updated_at: u64,
}

impl Versioned {
    /// A value with its version, commit number and time.
    pub fn new(value: Value, version: u64, commit: u64, updated_at: u64) -> Self {
        Self { value, version, commit, updated_at }
    }
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The cell's version now.
    pub version: u64,
    /// The commit number of the write.
    pub commit: u64,
}

/// The result of [`Cells::init`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Initialised {
    /// The cell's version now.
    pub version: u64,
    /// Whether this call created it.
    pub created: bool,
}

/// The condition of [`Cells::cas`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The cell does not exist.
    Absent,
    /// The cell exists at this version.
    Version(u64),
}

/// The result of [`Cells::cas`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swapped {
    /// The cell was as expected and was written.
    Written(Written),
    /// It was not; nothing was changed.
    Conflict {
        /// The cell's version, or none if it does not exist.
        current: Option<u64>,
    },
}

/// The result of [`Cells::delete`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// The version of the deletion, or none if the cell did not exist.
    pub version: Option<u64>,
}

/// Selects a page of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryPage {
    /// Only versions below this one.
    pub before: Option<u64>,
    /// Maximum number of versions.
    pub limit: usize,
}

impl Default for HistoryPage {
    fn default() -> Self {
        Self { before: None, limit: 100 }
    }
}

/// A page of a cell's history, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct History {
    /// The versions.
    pub versions: Vec<PastVersion>,
    /// Where the next page starts, if there is more.
    pub next_before: Option<u64>,
}

/// One version in a history.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PastVersion {
    /// Counts the cell's writes.
    pub version: u64,
    /// The value, or none if this version is a deletion.
    pub value: Option<Value>,
    /// The commit number of the write.
    pub commit: u64,
    /// When it was written, µs since 1970 in UTC.
    pub updated_at: u64,
}

impl PastVersion {
    /// One version.
    pub fn new(version: u64, value: Option<Value>, commit: u64, updated_at: u64) -> Self {
        Self { version, value, commit, updated_at }
    }
}

/// A point in a cell's past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Just after this version was written.
    Version(u64),
    /// At this time, µs since 1970 in UTC.
    Time(u64),
}

/// A cell as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AsOf {
    /// It had this value.
    Value(Versioned),
    /// It did not exist: not yet, or it was deleted.
    Absent,
    /// Its past value is no longer kept.
    Unavailable {
        /// The oldest kept version.
        oldest: u64,
    },
}

/// Selects a page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPage {
    /// Only cells after this one, by name and then by group.
    pub after: Option<NameInGroup>,
    /// Maximum number of cells.
    pub limit: usize,
}

impl Default for ListPage {
    fn default() -> Self {
        Self { after: None, limit: 100 }
    }
}

/// A page of cells, ordered by (name, group).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Listed {
    /// Names with their groups, and the values of the cells.
    pub cells: Vec<(NameInGroup, Versioned)>,
    /// The cell after which the next page starts, if there is more.
    pub next_after: Option<NameInGroup>,
}
