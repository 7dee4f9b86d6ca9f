//! What sessions mean to the contracts, and the machines that users bring.
//!
//! - `owned`: what ends with a session, found by an index when it does.
//! - [`hosted`]: users' machines beside the contracts, on the same journal.
//!
//! Keeps: E3 and E6 of `ARCHITECTURE.md`.

pub mod hosted;
pub(crate) mod owned;
