//! What an export has of runs.

use contract::runs::StepSnapshot;

use super::row::{EventRow, RunHead};
use crate::keys::things::OwnedId;

/// A part of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunItem<'row> {
    /// A run. Its events and its steps follow.
    Head {
        /// Which run.
        run: &'row OwnedId,
        /// Its head.
        head: RunHead,
    },
    /// An event of a run, one that it has itself.
    Event {
        /// Which run.
        run: &'row OwnedId,
        /// Its sequence.
        seq: u64,
        /// The event.
        event: EventRow<'row>,
    },
    /// A step of a run's projection.
    Step {
        /// Which run.
        run: &'row OwnedId,
        /// The step.
        step: StepSnapshot,
    },
    /// The rows of a deleted run are to go.
    Removal {
        /// Which run.
        run: &'row OwnedId,
        /// Since when.
        at_us: u64,
    },
}
