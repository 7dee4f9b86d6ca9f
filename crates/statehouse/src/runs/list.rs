//! Lists of runs by status, type and how long they have been quiet, and how many there are.

use std::collections::BTreeMap;
use std::time::Duration;

use contract::Error;
use contract::limits::SCAN_ROWS_MAX;
use contract::runs::RunStatus;
use kernel::catalogue::types::micros;
use kernel::runs::read::{self, ListedRun, RunFilter};

use super::Runs;
use crate::cells::check_page;
use crate::error::from_halt;
use crate::shard::keys;

/// Names that are read at a time.
const NAMES_AT_ONCE: usize = 1_000;

/// Which runs are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunList {
    /// With one of these statuses.
    pub statuses: Vec<RunStatus>,
    /// Of this kind, or of any.
    pub run_type: Option<String>,
    /// That have got no event for so long.
    pub quiet_for: Duration,
    /// How many at most.
    pub limit: usize,
}

impl Default for RunList {
    fn default() -> Self {
        Self { statuses: RunStatus::ALL.to_vec(), run_type: None, quiet_for: Duration::ZERO, limit: 100 }
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
}

impl Runs {
    /// The runs of this branch that match, of all groups, those first that have been quiet longest. Looks at no more than
    /// 10,000 runs.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// use std::time::Duration;
    /// use statehouse::runs::{RunList, RunStatus};
    /// let stuck = RunList::with_status(RunStatus::Running).quiet_for(Duration::from_secs(600));
    /// assert!(house.runs().list(&stuck)?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn list(&self, list: &RunList) -> Result<Vec<ListedRun>, Error> {
        check_page(list.limit)?;
        let (view, catalogue, ids) = self.scope.view()?;
        let filter = RunFilter {
            space: ids.space,
            branch: ids.branch,
            statuses: &list.statuses,
            run_type: list.run_type.as_deref(),
            quiet_since_us: self.scope.shard.now().wall_us.saturating_sub(micros(list.quiet_for)),
        };
        read::list(&*view, &keys(), &catalogue, &filter, list.limit, SCAN_ROWS_MAX).map_err(|halt| from_halt(&halt))
    }

    /// The names of all runs that are their own groups.
    pub(super) fn all_names(&self) -> Result<Vec<String>, Error> {
        let (view, catalogue, ids) = self.scope.view()?;
        let mut names = Vec::new();
        let mut after = None;
        loop {
            let place = (ids.space, ids.branch);
            let page = read::all(&*view, &keys(), &catalogue, place, after.as_deref(), NAMES_AT_ONCE);
            let (runs, next) = page.map_err(|halt| from_halt(&halt))?;
            names.extend(runs.into_iter().filter(|run| run.group.is_none()).map(|run| run.name));
            after = match next {
                Some(next) => Some(next),
                None => return Ok(names),
            };
        }
    }

    /// How many runs of each kind are in each status, of this branch.
    pub fn counts(&self) -> Result<BTreeMap<(String, RunStatus), u64>, Error> {
        let (view, _, ids) = self.scope.view()?;
        let found = read::counts(&*view, &keys(), ids.space, ids.branch).map_err(|halt| from_halt(&halt))?;
        Ok(found.into_iter().map(|(run_type, status, count)| ((run_type, status), count)).collect())
    }
}
