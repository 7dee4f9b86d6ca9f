//! Records in an overview.

use std::collections::BTreeMap;
use std::time::Duration;

use contract::Error;
use kernel::keys::queues::QueueId;
use kernel::records::counts::count_states;
use kernel::records::oldest::{OldestReady, oldest_ready};
use kernel::records::queue::ALL_QUEUES;
use node::error::from_halt;

use crate::counters::{Branch, LOOKED_AT_MAX};
use crate::house::Statehouse;

/// The records of all spaces and branches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordsOverview {
    /// How many there are of each type in each state.
    pub by_state: BTreeMap<(String, String), u64>,
    /// The record of each queue that has been ready longest, with how long.
    pub oldest_ready: Vec<(OldestReady, Duration)>,
}

impl RecordsOverview {
    pub(crate) fn of(_: &Statehouse) -> Self {
        Self::default()
    }

    /// Adds the records of a branch. Returns how many queues were not examined.
    pub(crate) fn add(&mut self, branch: &Branch<'_>) -> Result<usize, Error> {
        let Branch { view, keys, catalogue, place, .. } = branch;
        let every_queue = QueueId { space: place.0, branch: place.1, name: ALL_QUEUES };
        let counts = count_states(*view, keys, catalogue, every_queue).map_err(|halt| from_halt(&halt))?;
        for (of, count) in counts.by_state {
            *self.by_state.entry(of).or_default() += count;
        }
        let parts_max = LOOKED_AT_MAX - self.oldest_ready.len();
        let oldest = oldest_ready(*view, keys, catalogue, *place, parts_max);
        let (oldest, left_out) = oldest.map_err(|halt| from_halt(&halt))?;
        self.oldest_ready.extend(oldest.into_iter().map(|one| {
            let age = branch.since(one.ready_us);
            (one, age)
        }));
        Ok(left_out)
    }
}
