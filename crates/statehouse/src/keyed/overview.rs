//! Keyed state in an overview.

use contract::Error;

use crate::counters::Branch;
use crate::house::Statehouse;

/// What an overview has of keyed state: nothing, because no row counts maps, and an overview reads few rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyedOverview {}

impl KeyedOverview {
    pub(crate) fn of(_: &Statehouse) -> Self {
        Self {}
    }

    /// Adds the maps of a branch. Returns how much was left out.
    pub(crate) fn add(&mut self, _: &Branch<'_>) -> Result<usize, Error> {
        Ok(0)
    }
}
