//! Lists of runs by name, status, type and idle time, and counts.

use std::collections::BTreeMap;
use std::time::Duration;

use contract::Error;
use contract::limits::SCAN_ROWS_MAX;
use contract::runs::RunStatus;
use kernel::catalogue::types::micros;
use kernel::names::InGroup;
use kernel::runs::list::{ListedRuns, RunFilter, RunPage, ViewRuns};
use kernel::runs::read;
use node::error::from_halt;

use super::Runs;
use crate::paging::{check_page, listed_groups};

/// Names read at a time.
const NAMES_AT_ONCE: usize = 1_000;

/// Which runs are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunList {
    /// With one of these statuses.
    pub statuses: Vec<RunStatus>,
    /// Of this kind, or of any.
    pub run_type: Option<String>,
    /// Only runs without an event for this long.
    pub quiet_for: Duration,
    /// Only names with this prefix.
    pub prefix: String,
    /// The maximum number of runs.
    pub limit: usize,
    /// Where the page before ended.
    pub cursor: Option<Vec<u8>>,
}

impl Default for RunList {
    fn default() -> Self {
        Self {
            statuses: RunStatus::ALL.to_vec(),
            run_type: None,
            quiet_for: Duration::ZERO,
            prefix: String::new(),
            limit: 100,
            cursor: None,
        }
    }
}

impl RunList {
    /// Those with a status.
    pub fn with_status(status: RunStatus) -> Self {
        Self { statuses: vec![status], ..Self::default() }
    }

    /// Sets [`run_type`](Self::run_type).
    pub fn of_type(mut self, run_type: impl Into<String>) -> Self {
        self.run_type = Some(run_type.into());
        self
    }

    /// Sets [`quiet_for`](Self::quiet_for).
    pub fn quiet_for(mut self, time: Duration) -> Self {
        self.quiet_for = time;
        self
    }

    /// Sets [`prefix`](Self::prefix).
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets [`limit`](Self::limit).
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// From where the page before ended.
    pub fn after(mut self, cursor: Option<Vec<u8>>) -> Self {
        self.cursor = cursor;
        self
    }
}

impl Runs {
    /// A page of the runs that match: those of all groups of the branch, or those of this group.
    ///
    /// A list of every status and kind is ordered by (name, group): paging sees every run that exists throughout, once.
    /// A list of some statuses or of one kind is ordered by kind, then the longest idle first, to the minute; a run
    /// that gets events between two pages may appear again there, but none is left out. A page examines at most 10,000
    /// runs, so it can be short, or empty, and say where to continue.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// use std::time::Duration;
    /// use statehouse::runs::{RunList, RunStatus};
    /// let stuck = RunList::with_status(RunStatus::Running).quiet_for(Duration::from_secs(600));
    /// let page = house.runs().list(&stuck)?;
    /// assert!(page.runs.is_empty() && page.cursor.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn list(&self, list: &RunList) -> Result<ListedRuns, Error> {
        check_page(list.limit)?;
        let groups = listed_groups(self.group.as_deref())?;
        let (view, catalogue, ids) = self.scope.view()?;
        let filter = RunFilter {
            space: ids.space,
            branch: ids.branch,
            groups,
            prefix: &list.prefix,
            statuses: &list.statuses,
            run_type: list.run_type.as_deref(),
            quiet_since_us: self.scope.shard.now().wall_us.saturating_sub(micros(list.quiet_for)),
        };
        let page = RunPage { limit: list.limit.max(1), rows_max: SCAN_ROWS_MAX, cursor: list.cursor.as_deref() };
        let runs = ViewRuns { view: &*view, keys: self.scope.shard.keys(), catalogue: &catalogue };
        Ok(runs.list(&filter, &page).map_err(|halt| from_halt(&halt))??)
    }

    /// The names of all runs without a group.
    pub(super) fn all_names(&self) -> Result<Vec<String>, Error> {
        let (view, catalogue, ids) = self.scope.view()?;
        let mut names = Vec::new();
        let mut after = None;
        loop {
            let place = (ids.space, ids.branch);
            let page = read::all(&*view, &self.scope.shard.keys(), &catalogue, place, after.as_deref(), NAMES_AT_ONCE);
            let (runs, next) = page.map_err(|halt| from_halt(&halt))?;
            names.extend(runs.into_iter().filter(|run| run.group.is_none()).map(|run| run.name));
            after = match next {
                Some(next) => Some(next),
                None => return Ok(names),
            };
        }
    }

    /// The number of runs of each kind and status, in all groups of this branch or in this group. For all groups, the
    /// store maintains the numbers. The runs of one group are counted, so a group of more than 10,000 is refused.
    pub fn counts(&self) -> Result<BTreeMap<(String, RunStatus), u64>, Error> {
        let groups = listed_groups(self.group.as_deref())?;
        let (view, catalogue, ids) = self.scope.view()?;
        if let InGroup::Named(group) = groups {
            let runs = ViewRuns { view: &*view, keys: self.scope.shard.keys(), catalogue: &catalogue };
            let counts = runs.counts_of_group((ids.space, ids.branch), group, SCAN_ROWS_MAX);
            return Ok(counts.map_err(|halt| from_halt(&halt))??);
        }
        let found =
            read::counts(&*view, &self.scope.shard.keys(), ids.space, ids.branch).map_err(|halt| from_halt(&halt))?;
        Ok(found.into_iter().map(|(run_type, status, count)| ((run_type, status), count)).collect())
    }
}
