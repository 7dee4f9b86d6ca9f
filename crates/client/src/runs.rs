//! Runs: append-only histories with a projection.

use wire::follow::Follow;
use wire::routes::{RUNS_APPEND, RUNS_CLOSE, RUNS_DELETE, RUNS_EVENTS, RUNS_FORK, RUNS_LIST, RUNS_SNAPSHOT, Route};
use wire::runs::{
    AppendAnswer, AppendEvents, Appended, Events, Fork, ListRuns, NewEvents, ReadEvents, ReadSnapshot, RunPosition,
    RunsPage, SnapshotText,
};
use wire::values::JsonText;

use crate::call::Call;
use crate::client::Client;
use crate::error::Error;
use crate::events::EventStream;

/// The runs of a client's place.
#[derive(Clone)]
pub struct Runs<'client> {
    client: &'client Client,
}

impl Client {
    /// The runs here.
    pub fn runs(&self) -> Runs<'_> {
        Runs { client: self }
    }
}

impl Runs<'_> {
    fn call(&self, route: Route, run: &str) -> Call {
        self.client.call(route, &[run])
    }

    /// Appends an event, given as JSON: `{"eventType": "Paid", "idempotencyKey": "payment-1", "eventData": {…}}`. With
    /// `expect`, only if the run is at that sequence.
    pub async fn append(&self, run: &str, event: impl Into<String>, expect: Option<u64>) -> Result<Appended, Error> {
        let body = NewEvents::One(JsonText(event.into()));
        match self.send(run, &body, &AppendEvents::default(), expect).await? {
            AppendAnswer::One(one) => Ok(one),
            AppendAnswer::Several(_) => Err(other_form("one event was appended, but the answer is a list")),
        }
    }

    /// Appends events in one commit, all or none.
    pub async fn append_all(
        &self,
        run: &str,
        events: impl IntoIterator<Item = String>,
        expect: Option<u64>,
    ) -> Result<Vec<Appended>, Error> {
        let body = NewEvents::Several(events.into_iter().map(JsonText).collect());
        match self.send(run, &body, &AppendEvents::default(), expect).await? {
            AppendAnswer::Several(several) => Ok(several.results),
            AppendAnswer::One(_) => Err(other_form("a list of events was appended, but the answer is a single one")),
        }
    }

    /// Appends with all options of the route.
    pub async fn send(
        &self,
        run: &str,
        events: &NewEvents,
        query: &AppendEvents,
        expect: Option<u64>,
    ) -> Result<AppendAnswer, Error> {
        self.call(RUNS_APPEND, run).query(query).if_version(expect).json(events).read().await
    }

    /// The events after a sequence; with [`Follow::Wait`], waits for one.
    pub async fn events(&self, run: &str, query: &ReadEvents) -> Result<Events, Error> {
        let wait = match query.follow {
            Some(Follow::Wait(wait)) => Some(wait.0),
            _ => None,
        };
        self.call(RUNS_EVENTS, run).query(query).waiting(wait).read().await
    }

    /// Follows the events after a sequence, across restarts of the server.
    pub fn follow(&self, run: &str, after: u64) -> EventStream {
        let query = ReadEvents { follow: Some(Follow::Stream), ..ReadEvents::default() };
        self.call(RUNS_EVENTS, run).query(&query).events(Some(after.to_string()))
    }

    /// The projection, as the contract defines it; none if there is no such run.
    pub async fn snapshot(&self, run: &str) -> Result<Option<SnapshotText>, Error> {
        self.call(RUNS_SNAPSHOT, run).query(&ReadSnapshot::default()).find().await
    }

    /// The projection, rebuilt from all events.
    pub async fn project(&self, run: &str) -> Result<SnapshotText, Error> {
        self.call(RUNS_SNAPSHOT, run).query(&ReadSnapshot { project: Some(true) }).read().await
    }

    /// Runs by status, type and how long they have been quiet.
    pub async fn list(&self, query: &ListRuns) -> Result<RunsPage, Error> {
        self.client.call(RUNS_LIST, &[]).query(query).read().await
    }

    /// Closes a run to further events.
    pub async fn close(&self, run: &str) -> Result<RunPosition, Error> {
        self.call(RUNS_CLOSE, run).read().await
    }

    /// Creates a run that shares the events up to a sequence.
    pub async fn fork(&self, run: &str, fork: &Fork) -> Result<RunPosition, Error> {
        self.call(RUNS_FORK, run).json(fork).read().await
    }

    /// Deletes a run for good; its name cannot be reused.
    pub async fn delete(&self, run: &str) -> Result<RunPosition, Error> {
        self.call(RUNS_DELETE, run).read().await
    }
}

fn other_form(cause: &str) -> Error {
    Error::Unreadable { cause: cause.to_owned(), outcome: contract::Outcome::Unknown }
}
