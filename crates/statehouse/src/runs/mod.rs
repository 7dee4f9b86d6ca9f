//! Runs: the handle on append-only logs of events, and each of its operations.

pub(crate) mod commit;
pub(crate) mod export;
mod handles;
pub(crate) mod import;
mod life;
mod list;
mod model;
mod overview;
mod projector;
mod projector_lag;
mod reads;
mod tail;
mod transaction;

use std::sync::Arc;

use contract::limits::RUN_TYPE_BYTES_MAX;
use contract::{Error, Rejection, RunRejection, names};
use kernel::{Answer, Append, Body, Catalogue, Duplicates, EventRef, Op, RunAct, Transact};
use node::pending::Pending;

pub use commit::RunDone;
pub use contract::runs::{
    AppendResult, FETCH_LIMIT, Fetched, IdempotencyKey, NewEvent, RunSnapshot, RunStateStore, RunStatus, StepError,
    StepSnapshot, StepStatus, StoredEvent,
};
pub use kernel::runs::list::{ListedRun, ListedRuns};
pub use list::RunList;
pub use node::runs::replay::Verified;
pub use overview::RunsOverview;
pub use projector::{LAG_HIGH, LAG_STALE, Projection, ProjectionStatus, Projector, ProjectorAlert, Reduce};
pub use projector_lag::{PROJECTORS_MEASURED_MAX, ProjectorLag};
pub use tail::Tail;
pub use transaction::TransactionRuns;

use crate::admission::{Scope, ScopeIds};
use commit::append_result;

/// Runs of a branch, or of a group in it. Each call is atomic and durable when it returns.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// use statehouse::Json;
/// use statehouse::runs::{IdempotencyKey, NewEvent, RunStatus};
/// let runs = house.runs();
/// let key = IdempotencyKey::new("run-1", "RunStarted", "plan-7").to_string();
/// let started = NewEvent::new("RunStarted", key, "2026-02-11T10:00:00Z", Json::new("{}")?);
/// let first = runs.append("run-1", &started)?;
/// let again = runs.append("run-1", &started)?; // a retry
/// assert_eq!((first.run_seq, again.run_seq, again.idempotent), (1, 1, true));
/// assert_eq!(runs.snapshot("run-1")?.unwrap().status, RunStatus::Running); // in the same commit
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Runs {
    pub(crate) scope: Scope,
    pub(crate) group: Option<Arc<str>>,
}

/// Options of an append.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct AppendOptions {
    /// The run's last sequence must be this one; 0 for a run that does not exist.
    pub expected_last: Option<u64>,
    /// Whether to refuse a known key or id with different content.
    pub strict: bool,
    /// The kind of the run, if this append creates it.
    pub run_type: String,
}

impl AppendOptions {
    /// Sets [`run_type`](Self::run_type).
    pub fn run_type(run_type: impl Into<String>) -> Self {
        Self { run_type: run_type.into(), ..Self::default() }
    }

    /// Sets [`expected_last`](Self::expected_last).
    pub fn expecting(mut self, last: u64) -> Self {
        self.expected_last = Some(last);
        self
    }

    /// Sets [`strict`](Self::strict).
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }
}

impl Runs {
    /// Appends an event. A run that does not exist is created.
    pub fn append(&self, run: &str, event: &NewEvent) -> Result<AppendResult, Error> {
        self.append_later(run, event, &AppendOptions::default()).wait()
    }

    /// [`append`](Self::append) with options.
    pub fn append_with(&self, run: &str, event: &NewEvent, options: &AppendOptions) -> Result<AppendResult, Error> {
        self.append_later(run, event, options).wait()
    }

    /// [`append_with`](Self::append_with), answered later.
    pub fn append_later(&self, run: &str, event: &NewEvent, options: &AppendOptions) -> Pending<AppendResult> {
        self.propose(run, std::slice::from_ref(event), options, |answer| appended(answer).map(|results| results[0]))
    }

    /// Appends several events in one commit: all or none. Repeated events are answered as such.
    pub fn append_all(
        &self,
        run: &str,
        events: &[NewEvent],
        options: &AppendOptions,
    ) -> Result<Vec<AppendResult>, Error> {
        self.append_all_later(run, events, options).wait()
    }

    /// [`append_all`](Self::append_all), answered later.
    pub fn append_all_later(
        &self,
        run: &str,
        events: &[NewEvent],
        options: &AppendOptions,
    ) -> Pending<Vec<AppendResult>> {
        self.propose(run, events, options, appended)
    }

    fn propose<T>(
        &self,
        run: &str,
        events: &[NewEvent],
        options: &AppendOptions,
        decode: fn(Answer) -> Result<T, Error>,
    ) -> Pending<T> {
        let prepare = || {
            events.iter().try_for_each(NewEvent::check)?;
            check_run_type(&options.run_type)?;
            self.prepare(run)
        };
        let (catalogue, ids) = match prepare() {
            Ok(prepared) => prepared,
            Err(error) => return Pending::refused(error),
        };
        let ops = events.iter().enumerate().map(|(place, event)| {
            let expected_last = options.expected_last.filter(|_| place == 0);
            let duplicates = if options.strict { Duplicates::RefuseOthers } else { Duplicates::Answer };
            Op::Run(run, append_act(event, expected_last, duplicates, &options.run_type))
        });
        self.transact(&catalogue, ids, self.group.as_deref(), ops.collect(), decode)
    }

    fn transact<T>(
        &self,
        catalogue: &Catalogue,
        ids: ScopeIds,
        group: Option<&str>,
        ops: Vec<Op<'_>>,
        decode: fn(Answer) -> Result<T, Error>,
    ) -> Pending<T> {
        let transact = Transact::new(ids.space, ids.branch, group, ops);
        self.scope.propose(catalogue, &Body::Transact(transact), decode)
    }

    fn prepare(&self, run: &str) -> Result<(Arc<Catalogue>, ScopeIds), Error> {
        if let Some(group) = &self.group {
            names::check_group(group)?;
        }
        names::check_run(run)?;
        self.scope.current()
    }
}

/// The operation that appends an event.
pub(crate) fn append_act<'event>(
    event: &'event NewEvent,
    expected_last: Option<u64>,
    duplicates: Duplicates,
    run_type: &'event str,
) -> RunAct<'event> {
    RunAct::Append(Box::new(Append { expected_last, duplicates, run_type, event: EventRef::from(event) }))
}

fn appended(answer: Answer) -> Result<Vec<AppendResult>, Error> {
    let outcomes = match answer {
        Answer::Rejected(rejection) => return Err(rejection.into()),
        Answer::Done { outcomes, .. } => outcomes,
    };
    outcomes.iter().map(append_result).collect()
}

impl RunStateStore for Runs {
    fn append_event(&self, run: &str, event: &NewEvent) -> Result<AppendResult, Error> {
        self.append(run, event)
    }

    fn fetch_events(&self, run: &str, after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        Ok(self.fetch(run, after_seq, limit)?.events)
    }

    fn get_snapshot(&self, run: &str) -> Result<Option<RunSnapshot>, Error> {
        match self.snapshot(run) {
            Err(Error::Rejected(Rejection::Run(RunRejection::Archived { .. }))) => Ok(None),
            other => other,
        }
    }

    fn project_snapshot(&self, run: &str) -> Result<RunSnapshot, Error> {
        self.project(run)
    }
}

/// Refuses a kind of runs that is too long.
pub(crate) fn check_run_type(run_type: &str) -> Result<(), Rejection> {
    Rejection::check_limit("run_type_bytes_max", RUN_TYPE_BYTES_MAX, run_type.len())
}
