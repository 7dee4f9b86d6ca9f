//! Records: named sets of fields that workers claim, move and finish.
//!
//! - [`row`]: a record as bytes. [`fields`]: the values of its fields. [`index`], [`counts`]: lookups without a scan.
//! - `write`: the one place that writes a record, with everything that follows from it.
//! - [`command`]: the operations and conditions, as bytes. `contract`: records as one of the contracts.
//! - `due`: what time brings. `erase`: what is left of the deleted.
//! - `state`: which moves between states are allowed. `patch`, `attempt`: the operations. `guard`: the conditions.
//! - [`queue`], [`lanes`]: ready records by queue; `lane_rows` writes them. `fill`: indexes that were declared later.
//! - `claims`: the next records of a queue. [`get`], [`scan`], [`oldest`]: reading.
//!
//! Keeps: R1 to R6 of `ARCHITECTURE.md`.

pub(crate) mod attempt;
pub mod claims;
pub mod command;
pub(crate) mod contract;
pub mod counts;
mod due;
pub(crate) mod erase;
mod fence;
pub mod fields;
pub(crate) mod fill;
pub mod get;
pub(crate) mod guard;
mod guard_command;
mod held;
pub mod index;
pub mod item;
pub(crate) mod lane_rows;
pub mod lanes;
pub mod oldest;
mod owned;
pub(crate) mod patch;
pub(crate) mod portable;
pub mod queue;
pub(crate) mod rejection;
pub mod row;
pub mod scan;
pub(crate) mod state;
mod sweep;
#[cfg(test)]
mod tests;
pub mod trim;
pub(crate) mod write;
