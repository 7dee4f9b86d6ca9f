//! Why a call on a cell is refused.

use crate::facts::{Class, Facts, Members, members};
use crate::rejection::state;

/// A deterministic "no" about a cell. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CellRejection {
    /// A cell is not as the caller expected it.
    #[error("cell {cell:?} is not as expected: it {} [SH-1003]", state(.current))]
    Conflict {
        /// The cell that differs; for a range, one cell of it.
        cell: String,
        /// Its version now, or none if it does not exist.
        current: Option<u64>,
    },
}

impl CellRejection {
    /// No code: a cell that does not exist is an answer.
    pub const NO_SUCH_THING: Option<&'static str> = None;

    /// What everybody must know of it.
    pub fn facts(&self) -> Facts {
        match self {
            Self::Conflict { .. } => Facts::retryable("SH-1003", Class::Conflict),
        }
    }

    /// What a caller needs next, as members of JSON.
    pub fn members(&self) -> Members {
        match self {
            Self::Conflict { cell, current } => members!["cell" => cell, "current_version" => current],
        }
    }
}
