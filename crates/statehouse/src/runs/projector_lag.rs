//! How far projectors are behind, measured by the store from the positions that they have stored: one that is dead is seen
//! too.
//!
//! Never: asks a projector, or reads more than a page of the change feed for each.

use std::sync::PoisonError;
use std::time::Duration;

use contract::records::filter::Filter as RecordFilter;
use contract::{Error, Followed, Subject, Value};
use kernel::changes::{Filter, changes_after};
use kernel::names::InGroup;
use node::error::from_halt;

use super::projector::{CURSOR, CURSORS};
use crate::house::Statehouse;
use crate::records::ScanOptions;

/// Projectors whose lag is measured, the first ones by name.
pub const PROJECTORS_MEASURED_MAX: usize = 64;

/// How far a projector is behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectorLag {
    /// Its name.
    pub name: String,
    /// The age of the oldest change of a run that it has not seen; zero if it has seen all of them.
    pub lag: Duration,
}

impl Statehouse {
    /// How far each [`Projector`](super::Projector) of this store is behind, whether it runs or not. Looks at up to 10,000
    /// changes for each, and goes on there the next time: with more changes of other things in between, a lag is found late.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// use statehouse::runs::{Projector, StoredEvent};
    /// let nothing = |_: &str, _: Option<Vec<u8>>, _: &[StoredEvent]| Vec::new();
    /// # let event = statehouse::runs::NewEvent::new("A", "k", "2026-02-11T10:00:00Z", statehouse::Json::new("{}")?);
    /// house.runs().append("run-1", &event)?;
    /// Projector::new(&house, "names", nothing).catch_up()?;
    /// let lags = house.projector_lags()?;
    /// assert_eq!((lags[0].name.as_str(), lags[0].lag.is_zero()), ("names", true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn projector_lags(&self) -> Result<Vec<ProjectorLag>, Error> {
        let options = ScanOptions::default().limit(PROJECTORS_MEASURED_MAX);
        let cursors = self.records().scan_exact(CURSORS, &RecordFilter::all(), &options)?.records;
        let mut looks = self.shard.shared.beside.runs.looks_at_feed.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *looks);
        let mut lags = Vec::new();
        for (thing, record) in cursors {
            let name = thing.name[CURSORS.len()..].to_owned();
            // Somebody else's record of such a name is no projector.
            let Some(cursor) = record.value(CURSOR).and_then(Value::as_integer).map(i64::cast_unsigned) else {
                continue;
            };
            let look = (name.clone(), cursor);
            let from = before.get(&look).copied().unwrap_or(cursor);
            let (lag, seen) = self.lag_after(from)?;
            looks.insert(look, seen);
            lags.push(ProjectorLag { name, lag });
        }
        Ok(lags)
    }

    /// The age of the first change of a run after a commit, and up to where there is none.
    fn lag_after(&self, cursor: u64) -> Result<(Duration, u64), Error> {
        let scope = self.default_space().scope;
        let (view, _, ids) = scope.view()?;
        let now_us = self.shard.now().wall_us;
        let read = |cursor, subject| {
            let (space, branch, group, prefix) = (ids.space, ids.branch, InGroup::Own, "");
            let filter = Filter { space, branch, subject, group, prefix };
            changes_after(&*view, &self.shard.keys(), cursor, &filter, 1).map_err(|halt| from_halt(&halt))
        };
        let age = |at_us: u64| Duration::from_micros(now_us.saturating_sub(at_us));
        Ok(match read(cursor, Some(Subject::Run))? {
            Followed::Page(page) => match page.changes.first() {
                Some(change) => (age(change.updated_at), cursor),
                None => (Duration::ZERO, page.next),
            },
            // It has not seen what is no longer there: at least as old as the oldest that is.
            Followed::Gap { oldest, .. } => match read(oldest, None)? {
                Followed::Page(page) => {
                    (page.changes.first().map_or(Duration::ZERO, |change| age(change.updated_at)), cursor)
                }
                Followed::Gap { .. } => (Duration::ZERO, cursor),
            },
        })
    }
}
