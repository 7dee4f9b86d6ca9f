//! Wakes those who wait for changes, each by what it waits for: a thing, a group, a branch, or a queue. While nobody waits,
//! the apply loop takes no lock.
//!
//! Keeps: nobody sleeps through an entry. A waiter registers first and reads afterwards; the apply loop commits first and
//! looks for waiters afterwards; so one of the two sees the other. Never: keeps a waiter that is gone.

use std::collections::HashMap;
use std::future::poll_fn;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use contract::Subject;
use kernel::ReadyQueue;
use kernel::changes::{Noted, for_each_change};
use kv::Bytes;

use crate::bell::{Bell, Rung};

/// What a waiter waits for. Two different topics may be equal by chance, so a waiter that is woken reads again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Topic(u64);

/// Space and branch.
type Place = (u32, u32);

impl Topic {
    /// A thing changes.
    pub(crate) fn thing(subject: Subject, place: Place, group: Option<&str>, name: &str) -> Self {
        Self::of((0_u8, subject.code(), place, group.unwrap_or(name), name))
    }

    /// Something changes in a group.
    pub(crate) fn group(place: Place, group: &str) -> Self {
        Self::of((1_u8, place, group))
    }

    /// Something changes in a branch.
    pub(crate) fn branch(place: Place) -> Self {
        Self::of((2_u8, place))
    }

    /// A record of a queue becomes ready.
    pub(crate) fn queue(place: Place, queue: &str) -> Self {
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
    /// Whether it changed the catalogue, which nearly everything depends on: it wakes everyone.
    pub(crate) catalogue_changed: bool,
}

/// Why waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// There is something to look at; nothing of it happened before this command.
    Arrived {
        /// The first command of an entry; none if it is not known.
        first_commit: Option<u64>,
    },
    /// Nothing came in time.
    TimeOver,
    /// Nothing more will come.
    Stopped,
}

/// Those who wait for entries.
#[derive(Default)]
pub(crate) struct Arrivals {
    stopped: AtomicBool,
    /// How many topics are listened to, with those that several listen to.
    listening: AtomicUsize,
    bells: Mutex<HashMap<Topic, Vec<Arc<Bell>>>>,
}

impl Arrivals {
    fn lock(&self) -> MutexGuard<'_, HashMap<Topic, Vec<Arc<Bell>>>> {
        self.bells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes those who wait for what an entry has changed.
    pub(crate) fn arrived(&self, entry: &Arrived<'_>) {
        // After the commit, and before the look for listeners.
        fence(Ordering::SeqCst);
        if self.listening.load(Ordering::SeqCst) == 0 {
            return;
        }
        let bells = self.lock();
        let mut to_ring = Vec::new();
        let mut find = |topic: Topic| to_ring.extend(bells.get(&topic).into_iter().flatten().cloned());
        let (first, last) = entry.commits;
        let mut unknown = entry.catalogue_changed;
        if let Some(row) = &entry.changes {
            let visited = for_each_change(row, last, |change| topics(change).into_iter().for_each(&mut find));
            unknown |= visited.is_err();
        }
        for queue in entry.readied {
            find(Topic::queue((queue.space, queue.branch), &queue.name));
        }
        if unknown {
            to_ring.extend(bells.values().flatten().cloned());
        }
        drop(bells);
        to_ring.iter().for_each(|bell| bell.ring_for(Some(first)));
    }

    /// Nothing more will come.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        let bells: Vec<_> = self.lock().values().flatten().cloned().collect();
        bells.iter().for_each(|bell| bell.ring());
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Listens for some topics, from now on.
    pub(crate) fn listen(&self, topics: Vec<Topic>) -> Listener<'_> {
        self.listen_with(Arc::new(Bell::default()), topics)
    }

    /// Lets a bell ring for some topics too, from now on.
    pub(crate) fn listen_with(&self, bell: Arc<Bell>, topics: Vec<Topic>) -> Listener<'_> {
        // Most sessions have pushes and no subscriptions: they stay out of the way of the apply loop.
        if !topics.is_empty() {
            let mut bells = self.lock();
            for topic in &topics {
                bells.entry(*topic).or_default().push(bell.clone());
            }
            self.listening.fetch_add(topics.len(), Ordering::SeqCst);
        }
        // Before whatever the waiter reads.
        fence(Ordering::SeqCst);
        Listener { arrivals: self, bell, topics }
    }
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

/// Somebody who listens; forgotten on drop.
pub(crate) struct Listener<'arrivals> {
    arrivals: &'arrivals Arrivals,
    bell: Arc<Bell>,
    topics: Vec<Topic>,
}

impl Listener<'_> {
    /// Waits, in a task, until something has happened since it listens, or nothing more will.
    pub(crate) async fn heard(&self) -> Waited {
        poll_fn(|context| match self.poll(context.waker()) {
            Some(waited) => Poll::Ready(waited),
            None => Poll::Pending,
        })
        .await
    }

    fn poll(&self, waker: &Waker) -> Option<Waited> {
        match self.bell.poll(waker) {
            Some(Rung { first_commit }) => Some(Waited::Arrived { first_commit }),
            // `stop` sets its flag before it rings, so a stop that is not seen here rings the bell.
            None => self.arrivals.is_stopped().then_some(Waited::Stopped),
        }
    }

    /// Waits until something has happened since it listens.
    pub(crate) fn wait(&self, timeout: Duration) -> Waited {
        if let Some(waited) = self.poll(Waker::noop()) {
            return waited;
        }
        match self.bell.wait(timeout) {
            Some(Rung { first_commit }) => Waited::Arrived { first_commit },
            None => Waited::TimeOver,
        }
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        if self.topics.is_empty() {
            return;
        }
        let mut bells = self.arrivals.lock();
        for topic in &self.topics {
            if let Some(hung) = bells.get_mut(topic) {
                hung.retain(|bell| !Arc::ptr_eq(bell, &self.bell));
                if hung.is_empty() {
                    bells.remove(topic);
                }
            }
        }
        self.arrivals.listening.fetch_sub(self.topics.len(), Ordering::SeqCst);
    }
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
