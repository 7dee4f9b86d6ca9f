//! The entries of runs in the table of routes.

use contract::access::{Area, Verb};
use wire::operations::NoBody;
use wire::query::NoQuery;
use wire::routes::{RUNS_APPEND, RUNS_CLOSE, RUNS_DELETE, RUNS_EVENTS, RUNS_FORK, RUNS_LIST, RUNS_SNAPSHOT};
use wire::runs::{AppendEvents, Fork, ListRuns, NewEvents, ReadEvents};

use crate::access::Permission;
use crate::http::entry::{Entry, entry, followed, waiting};

pub(in crate::api) fn routes() -> Vec<Entry> {
    vec![
        entry(
            RUNS_LIST,
            Permission::listing(Area::Run, |query: &ListRuns| query.prefix.as_deref()),
            "Lists runs by name, status, type and idle time, in one group or all groups",
            super::list,
        ),
        waiting(
            RUNS_EVENTS,
            events(),
            "Reads the events after a sequence",
            |query: &ReadEvents, _| followed(query.follow),
            super::events,
        )
        .prefer_wait()
        .streams(),
        entry(RUNS_APPEND, append(), "Appends one event, or a list of events in one commit", super::append)
            .if_match()
            .idempotency_key(),
        entry(
            RUNS_SNAPSHOT,
            Permission::thing(Verb::Read, Area::Run),
            "Reads the projection of a run",
            super::snapshot,
        ),
        entry(RUNS_CLOSE, Permission::thing(Verb::Write, Area::Run), "Closes a run to further events", super::close),
        entry(RUNS_FORK, fork(), "Forks a run: the new run shares its events up to a sequence", super::fork),
        entry(
            RUNS_DELETE,
            Permission::thing(Verb::Write, Area::Run),
            "Deletes a run permanently; its name is never reused",
            super::delete,
        ),
    ]
}

fn events() -> Permission<ReadEvents, NoBody> {
    Permission::of("read runs; watch them if it follows", |asking, needs| {
        needs.thing(Verb::Read, Area::Run, asking.group, asking.name);
        if asking.follows {
            needs.thing(Verb::Watch, Area::Run, asking.group, asking.name);
        }
    })
}

/// Who sends another event under a known key is shown the stored one, unless the append is strict.
fn append() -> Permission<AppendEvents, NewEvents> {
    Permission::of("append runs; read them unless strict", |asking, needs| {
        let AppendEvents { run_type: _, strict } = asking.query;
        needs.thing(Verb::Append, Area::Run, asking.group, asking.name);
        if *strict != Some(true) {
            needs.thing(Verb::Read, Area::Run, asking.group, asking.name);
        }
    })
}

/// The fork is in the group of its origin, which is one of the same name if the request names none.
fn fork() -> Permission<NoQuery, Fork> {
    Permission::of("read runs; write the fork", |asking, needs| {
        let Fork { at: _, name } = asking.body;
        needs.thing(Verb::Read, Area::Run, asking.group, asking.name);
        #[cfg(feature = "canary")]
        if crate::canary::Hole::OtherNames.is_open() {
            return;
        }
        needs.thing(Verb::Write, Area::Run, Some(asking.group.unwrap_or(asking.name)), name);
    })
}
