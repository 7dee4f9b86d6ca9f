//! A run read from its events: a page of them, its projection rebuilt, and whether that is the stored one.

use contract::Error;
use contract::runs::{Fetched, RunSnapshot};
use kernel::Keys;
use kernel::keys::ThingId;
use kernel::runs::read;
use kernel::runs::row::RunHead;
use kv::View;

use crate::error::from_halt;

/// Events that a replay reads at a time.
const REPLAY_EVENTS: usize = 1_000;

/// The result of comparing a run's projection with its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The last event examined.
    pub upto: u64,
    /// The stored projection and the rebuilt one, if they differ.
    pub difference: Option<Box<(RunSnapshot, RunSnapshot)>>,
}

/// The events after a sequence.
pub fn fetch(
    view: &dyn View,
    keys: &Keys,
    id: &ThingId<'_>,
    head: &RunHead,
    after: u64,
    limit: usize,
) -> Result<Fetched, Error> {
    read::fetch(view, keys, id, head, after, limit).map_err(|halt| from_halt(&halt))
}

/// The projection, rebuilt from all events.
pub fn replay(view: &dyn View, keys: &Keys, id: &ThingId<'_>, head: &RunHead) -> Result<RunSnapshot, Error> {
    let mut snapshot = RunSnapshot::empty(id.name);
    while snapshot.last_event_seq < head.last_seq {
        for event in fetch(view, keys, id, head, snapshot.last_event_seq, REPLAY_EVENTS)?.events {
            snapshot.apply(&event);
        }
    }
    Ok(snapshot)
}

/// Compares the projection of a run with its events.
pub fn verify(view: &dyn View, keys: &Keys, id: &ThingId<'_>, head: &RunHead) -> Result<Verified, Error> {
    let kept = read::snapshot(view, keys, id, head).map_err(|halt| from_halt(&halt))?;
    let replayed = replay(view, keys, id, head)?;
    let difference = (kept != replayed).then(|| Box::new((kept, replayed)));
    Ok(Verified { upto: head.last_seq, difference })
}

/// Compares the projection of a run with its events; none if the run does not exist.
pub(super) fn verify_in(view: &dyn View, keys: &Keys, id: &ThingId<'_>) -> Result<Option<Verified>, Error> {
    match read::head(view, keys, id).map_err(|halt| from_halt(&halt))? {
        Ok(head) => verify(view, keys, id, &head).map(Some),
        Err(_) => Ok(None),
    }
}
