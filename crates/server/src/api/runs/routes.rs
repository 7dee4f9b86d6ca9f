//! The entries of runs in the table of routes.

use wire::routes::{RUNS_APPEND, RUNS_CLOSE, RUNS_DELETE, RUNS_EVENTS, RUNS_FORK, RUNS_LIST, RUNS_SNAPSHOT};
use wire::runs::ReadEvents;

use crate::http::entry::{Entry, entry, followed, waiting};

pub(in crate::api) fn routes() -> Vec<Entry> {
    vec![
        entry(RUNS_LIST, "Lists runs by name, status, type and idle time, in one group or all groups", super::list),
        waiting(
            RUNS_EVENTS,
            "Reads the events after a sequence",
            |query: &ReadEvents, _| followed(query.follow),
            super::events,
        )
        .prefer_wait()
        .streams(),
        entry(RUNS_APPEND, "Appends one event, or a list of events in one commit", super::append)
            .write()
            .if_match()
            .idempotency_key(),
        entry(RUNS_SNAPSHOT, "Reads the projection of a run", super::snapshot),
        entry(RUNS_CLOSE, "Closes a run to further events", super::close).write(),
        entry(RUNS_FORK, "Forks a run: the new run shares its events up to a sequence", super::fork).write(),
        entry(RUNS_DELETE, "Deletes a run permanently; its name is never reused", super::delete).write(),
    ]
}
