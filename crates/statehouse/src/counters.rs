//! The activity and content of an open directory, as numbers for metrics.
//!
//! - [`Counters`]: activity since it was opened. Only rises.
//! - [`Overview`]: current content: records and runs by type, sessions, messages, waiting workers.
//!
//! Never: decides anything.

use std::collections::BTreeMap;
use std::time::Duration;

use contract::Error;
use contract::runs::RunStatus;
use kernel::MessageCounts;
use kernel::keys::queues::QueueId;
use kernel::records::counts::count_states;
use kernel::records::oldest::{OldestReady, oldest_ready};
use kernel::records::queue::ALL_QUEUES;
use kernel::runs::list::{ListedRun, ViewRuns};
use kernel::runs::read;
use kv::Readable;
use node::background::scrub_progress::ScrubProgress;
use node::error::from_halt;
use node::sessions::census::LivingSessions;

use crate::house::Statehouse;
use crate::runs::ProjectorLag;
pub use node::meters::{Claims, Counters, OTHER_TYPES, TYPES_COUNTED_MAX};

/// The number of queues examined for their oldest record, and of kinds of runs for their longest idle one. Each costs
/// as many reads as there are buckets.
pub const LOOKED_AT_MAX: usize = 128;

/// The current content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Overview {
    /// Records of each type in each state, of all spaces and branches.
    pub records: BTreeMap<(String, String), u64>,
    /// Runs of each kind in each status, of all spaces and branches.
    pub runs: BTreeMap<(String, RunStatus), u64>,
    /// The record of each queue that has been ready longest, with how long.
    pub oldest_ready: Vec<(OldestReady, Duration)>,
    /// The running run of each kind that has been idle longest, and for how long.
    pub quietest_runs: Vec<(ListedRun, Duration)>,
    /// Queues and kinds not examined for these, because there are more than [`LOOKED_AT_MAX`].
    pub left_out: usize,
    /// The number of waiting messages.
    pub messages: MessageCounts,
    /// The number of sessions by state.
    pub sessions: LivingSessions,
    /// Workers that wait for something to claim.
    pub claimers_waiting: usize,
    /// How far projectors are behind.
    pub projectors: Vec<ProjectorLag>,
}

impl Statehouse {
    /// Activity since the directory was opened. Takes a few short locks, and reads nothing.
    pub fn counters(&self) -> Counters {
        self.shard.counters()
    }

    /// The current content. Reads a row for each queue and type, and some for each queue with something to claim.
    pub fn overview(&self) -> Result<Overview, Error> {
        let (view, catalogue) = self.shard.view()?;
        let view = Readable(&*view);
        let now_us = self.shard.now().wall_us;
        let mut overview = Overview {
            messages: kernel::outbox::waiting::waiting(&view, &self.shard.keys()).map_err(|halt| from_halt(&halt))?,
            sessions: self.shard.keeper.census().0,
            claimers_waiting: self.shard.waiters.count(),
            // Not known while their records, or the feed, are damaged.
            projectors: self.projector_lags().unwrap_or_default(),
            ..Overview::default()
        };
        let branches: Vec<_> = catalogue
            .spaces()
            .flat_map(|(space, found)| {
                let live = found.branches().filter(|(_, branch)| !branch.deleted);
                live.map(move |(branch, _)| (space, branch)).collect::<Vec<_>>()
            })
            .collect();
        for place in branches {
            let (space, branch) = place;
            let counts =
                count_states(&view, &self.shard.keys(), &catalogue, QueueId { space, branch, name: ALL_QUEUES });
            for (of, count) in counts.map_err(|halt| from_halt(&halt))?.by_state {
                *overview.records.entry(of).or_default() += count;
            }
            for (kind, status, count) in
                read::counts(&view, &self.shard.keys(), space, branch).map_err(|halt| from_halt(&halt))?
            {
                if status == RunStatus::Running && overview.quietest_runs.len() < LOOKED_AT_MAX {
                    let runs = ViewRuns { view: &view, keys: self.shard.keys(), catalogue: &catalogue };
                    let quietest = runs.quietest(place, &kind);
                    let quietest = quietest.map_err(|halt| from_halt(&halt))?;
                    overview.quietest_runs.extend(quietest.map(|run| {
                        let quiet_for = Duration::from_micros(now_us.saturating_sub(run.last_event_us));
                        (run, quiet_for)
                    }));
                } else if status == RunStatus::Running {
                    overview.left_out += 1;
                }
                *overview.runs.entry((kind, status)).or_default() += count;
            }
            let parts_max = LOOKED_AT_MAX - overview.oldest_ready.len();
            let oldest = oldest_ready(&view, &self.shard.keys(), &catalogue, place, parts_max);
            let (oldest, left_out) = oldest.map_err(|halt| from_halt(&halt))?;
            let aged = oldest.into_iter().map(|one| {
                let age = Duration::from_micros(now_us.saturating_sub(one.ready_us));
                (one, age)
            });
            overview.oldest_ready.extend(aged);
            overview.left_out += left_out;
        }
        Ok(overview)
    }

    /// The progress of the scrub.
    pub fn scrub(&self) -> ScrubProgress {
        self.shard.shared.scrub.read()
    }

    /// Why the store has stopped, if it has: it accepts no more writes then, and must be reopened.
    pub fn failure(&self) -> Option<Error> {
        self.shard.failure()
    }
}
