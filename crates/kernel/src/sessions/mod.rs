//! Sessions as the contracts see them, and users' machines.
//!
//! - `owned`: things that end with a session, found by an index.
//! - [`hosted`]: users' machines beside the contracts, on the same journal.
//!
//! Keeps: E3 and E6 of `ARCHITECTURE.md`.

pub mod hosted;
pub(crate) mod owned;
