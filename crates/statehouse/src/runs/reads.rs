//! Reading runs: events, the stored projection, and the one rebuilt from events.

use std::sync::Arc;

use contract::runs::{Fetched, RunSnapshot};
use contract::{Error, Rejection, RunRejection};
use kernel::keys::ThingId;
use kernel::runs::read;
use kernel::runs::row::RunHead;
use kernel::{Catalogue, Keys};
use kv::View;
use node::error::from_halt;
use node::runs::replay::{Verified, fetch, replay, verify};

use super::Runs;
use crate::paging::check_page;

/// A view with the place that names are in.
struct InView {
    view: Arc<dyn View>,
    catalogue: Arc<Catalogue>,
    space: u32,
    branch: u32,
    keys: Keys,
}

impl InView {
    fn id<'name>(&self, runs: &'name Runs, run: &'name str) -> Result<ThingId<'name>, Rejection> {
        self.catalogue.thing(self.space, self.branch, runs.group.as_deref(), run)
    }

    fn head(&self, id: &ThingId<'_>) -> Result<RunHead, Error> {
        Ok(read::head(&*self.view, &self.keys, id).map_err(|halt| from_halt(&halt))??)
    }
}

impl Runs {
    fn in_view(&self, run: &str) -> Result<InView, Error> {
        self.prepare(run)?;
        let (view, catalogue, ids) = self.scope.view()?;
        Ok(InView { view, catalogue, space: ids.space, branch: ids.branch, keys: ids.keys })
    }

    /// The events after a sequence, ascending, at most `limit` (1 to 1,000), with the run's last sequence.
    pub fn fetch(&self, run: &str, after: u64, limit: usize) -> Result<Fetched, Error> {
        check_page(limit)?;
        let view = self.in_view(run)?;
        let id = view.id(self, run)?;
        let head = view.head(&id)?;
        fetch(&*view.view, &view.keys, &id, &head, after, limit)
    }

    /// The last event committed before a time, in µs since 1970; 0 if there is none. [`fetch`](Self::fetch) from there
    /// on reads by time.
    pub fn seq_before(&self, run: &str, wall_us: u64) -> Result<u64, Error> {
        let view = self.in_view(run)?;
        let id = view.id(self, run)?;
        let head = view.head(&id)?;
        read::seq_before(&*view.view, &view.keys, &id, &head, wall_us).map_err(|halt| from_halt(&halt))
    }

    /// The projection; none if the run does not exist. It is in the same commit as the last event.
    pub fn snapshot(&self, run: &str) -> Result<Option<RunSnapshot>, Error> {
        let view = self.in_view(run)?;
        let id = view.id(self, run)?;
        let head = match view.head(&id) {
            Err(Error::Rejected(Rejection::Run(RunRejection::NoSuchRun { .. }))) => return Ok(None),
            other => other?,
        };
        read::snapshot(&*view.view, &view.keys, &id, &head).map(Some).map_err(|halt| from_halt(&halt))
    }

    /// The projection, rebuilt from all events.
    pub fn project(&self, run: &str) -> Result<RunSnapshot, Error> {
        let view = self.in_view(run)?;
        let id = view.id(self, run)?;
        let head = view.head(&id)?;
        replay(&*view.view, &view.keys, &id, &head)
    }

    /// Compares the projection with its events, at one view.
    pub fn verify(&self, run: &str) -> Result<Verified, Error> {
        let view = self.in_view(run)?;
        let id = view.id(self, run)?;
        let head = view.head(&id)?;
        verify(&*view.view, &view.keys, &id, &head)
    }
}
