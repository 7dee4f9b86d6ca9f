//! Runs: append-only logs of events, with a projection in the same commit.
//!
//! - [`row`]: runs, events and steps as bytes.
//! - [`command`]: the operations and conditions, as bytes. `contract`: runs as one of the contracts.
//! - `append`: the one place that adds an event. `project`: its effect on the projection.
//! - `life`: closing, deleting and forking. `index`: runs by status, type and age.
//! - [`read`]: events and projections. [`list`]: lists.
//!
//! Keeps: L1 to L4 of `ARCHITECTURE.md`.

pub(crate) mod append;
pub mod command;
pub(crate) mod contract;
pub(crate) mod index;
pub mod item;
pub(crate) mod life;
pub mod list;
mod portable;
pub(crate) mod project;
pub mod read;
pub(crate) mod rejection;
pub mod row;
#[cfg(test)]
mod tests;
pub mod trim;
