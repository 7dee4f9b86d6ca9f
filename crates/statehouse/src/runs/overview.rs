//! Runs in an overview.

use std::collections::BTreeMap;
use std::time::Duration;

use contract::Error;
use contract::runs::RunStatus;
use kernel::runs::list::{ListedRun, ViewRuns};
use kernel::runs::read;
use node::error::from_halt;

use super::ProjectorLag;
use crate::counters::{Branch, LOOKED_AT_MAX};
use crate::house::Statehouse;

/// The runs of all spaces and branches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunsOverview {
    /// How many there are of each kind in each status.
    pub by_status: BTreeMap<(String, RunStatus), u64>,
    /// The running run of each kind that has been idle longest, and for how long.
    pub quietest: Vec<(ListedRun, Duration)>,
    /// How far projectors are behind.
    pub projectors: Vec<ProjectorLag>,
}

impl RunsOverview {
    pub(crate) fn of(house: &Statehouse) -> Self {
        // Not known while their records, or the feed, are damaged.
        Self { projectors: house.projector_lags().unwrap_or_default(), ..Self::default() }
    }

    /// Adds the runs of a branch. Returns for how many kinds the quietest was not looked for.
    pub(crate) fn add(&mut self, branch: &Branch<'_>) -> Result<usize, Error> {
        let Branch { view, keys, catalogue, place, .. } = branch;
        let mut left_out = 0;
        let counts = read::counts(*view, keys, place.0, place.1).map_err(|halt| from_halt(&halt))?;
        for (kind, status, count) in counts {
            if status == RunStatus::Running && self.quietest.len() < LOOKED_AT_MAX {
                let runs = ViewRuns { view: *view, keys: *keys, catalogue };
                let quietest = runs.quietest(*place, &kind).map_err(|halt| from_halt(&halt))?;
                self.quietest.extend(quietest.map(|run| {
                    let quiet_for = branch.since(run.last_event_us);
                    (run, quiet_for)
                }));
            } else if status == RunStatus::Running {
                left_out += 1;
            }
            *self.by_status.entry((kind, status)).or_default() += count;
        }
        Ok(left_out)
    }
}
