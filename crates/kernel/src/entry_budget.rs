//! What the commands of one journal entry may still do for others: correct lanes, apply what waits, remove what is old. A later entry
//! does the rest.
//!
//! Touches: nothing. Keeps: an entry takes bounded time, however many commands it has. Never: is given back by a command that is
//! refused.

use contract::limits::{SEALED_BYTES_MAX, SEALED_UPDATES_MAX};

/// Lanes that the claims of an entry correct at most, in addition to eight for each record that they have taken. Not each
/// of them: whatever else is in the entry waits for all of them.
pub const CORRECTIONS_MAX: usize = 64;

/// What is left of it.
pub(crate) struct EntryBudget {
    /// Lanes that claims correct.
    pub(crate) corrections: usize,
    /// Waiting updates.
    pub(crate) updates: usize,
    /// Bytes of rows that seals and sweeps read.
    pub(crate) row_bytes: usize,
}

impl EntryBudget {
    /// What an entry begins with.
    pub(crate) const WHOLE: Self =
        Self { corrections: CORRECTIONS_MAX, updates: SEALED_UPDATES_MAX, row_bytes: SEALED_BYTES_MAX };
}
