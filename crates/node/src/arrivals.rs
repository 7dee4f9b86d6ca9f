//! Wakes those who wait for changes, each by what it waits for: a thing, a group, a branch, or a queue.
//!
//! Keeps: nobody sleeps through an entry. The apply loop commits first and looks for waiters afterwards; see [`Bells`].

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use contract::Subject;
use kernel::changes::{Noted, for_each_change};
use kernel::{FreedThing, ReadyQueue};
use kv::Bytes;
use waiting::Bells;

/// What a waiter waits for. Two different topics may be equal by chance, so a waiter that is woken reads again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Topic(u64);

/// Space and branch.
type Place = (u32, u32);

impl Topic {
    /// A thing changes.
    pub fn thing(subject: Subject, place: Place, group: Option<&str>, name: &str) -> Self {
        Self::of((0_u8, subject.code(), place, group.unwrap_or(name), name))
    }

    /// Something changes in a group.
    pub fn group(place: Place, group: &str) -> Self {
        Self::of((1_u8, place, group))
    }

    /// Something changes in a branch.
    pub fn branch(place: Place) -> Self {
        Self::of((2_u8, place))
    }

    /// A record of a queue becomes ready.
    pub fn queue(place: Place, queue: &str) -> Self {
        Self::of((3_u8, place, queue))
    }

    fn of(what: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// An entry that has just become visible.
pub(crate) struct Arrived<'entry> {
    /// The numbers of its first and of its last command.
    pub(crate) commits: (u64, u64),
    /// Its row of the change feed, if it has one.
    pub(crate) changes: Option<Bytes>,
    pub(crate) readied: &'entry [ReadyQueue],
    /// The things in no queue that have become free.
    pub(crate) freed: &'entry [FreedThing],
    /// Whether it changed the catalogue, which nearly everything depends on: it wakes everyone.
    pub(crate) catalogue_changed: bool,
}

/// Those who wait for entries.
pub(crate) type Arrivals = Bells<Topic>;

/// Somebody who waits for entries.
pub type Listener<'arrivals> = waiting::Listener<'arrivals, Topic>;

/// Wakes those who wait for what an entry has changed.
pub(crate) fn arrived(arrivals: &Arrivals, entry: &Arrived<'_>) {
    let Some(mut ringing) = arrivals.ringing() else {
        return;
    };
    let (first, last) = entry.commits;
    let mut unknown = entry.catalogue_changed;
    if let Some(row) = &entry.changes {
        let add = |change: &Noted<'_>| topics(change).iter().for_each(|topic| ringing.add(topic));
        unknown |= for_each_change(row, last, add).is_err();
    }
    for queue in entry.readied {
        ringing.add(&Topic::queue((queue.space, queue.branch), &queue.name));
    }
    for freed in entry.freed {
        let place = (freed.space, freed.branch);
        ringing.add(&Topic::thing(freed.subject, place, freed.group.as_deref(), &freed.name));
    }
    if unknown {
        ringing.add_everyone();
    }
    ringing.ring_for(Some(first));
}

/// The topics that a change is about.
fn topics(change: &Noted<'_>) -> [Topic; 3] {
    let place = (change.space, change.branch);
    [
        Topic::thing(change.subject, place, change.group, change.name),
        Topic::group(place, change.group.unwrap_or(change.name)),
        Topic::branch(place),
    ]
}

/// Announces on drop that nothing more will come: at the end of the apply loop, however it ends.
pub(crate) struct StopsAtEnd(pub(crate) Arc<crate::shared::Shared>);

impl Drop for StopsAtEnd {
    fn drop(&mut self) {
        self.0.arrivals.stop();
    }
}

#[cfg(test)]
mod tests;
