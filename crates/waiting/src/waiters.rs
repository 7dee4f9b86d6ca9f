//! Workers that wait for something to claim.
//!
//! Every record that becomes ready wakes one waiter, the one that has waited longest among those whose prefix covers
//! its queue. A job therefore costs one claim, however many workers wait. They are found by prefix, so those who wait for
//! something else cost nothing.
//!
//! Keeps: nobody sleeps through a record. A waiter is in the list before its last check for records, and a chosen one
//! checks again before it gives up.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::ops::Bound;
use std::pin::Pin;
use std::task::{Poll, Waker};

use crate::sync::{Mutex, lock};

/// Space and branch.
type Scope = (u32, u32);

/// What a worker waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Space and branch.
    pub scope: (u32, u32),
    /// How the names of its queues begin.
    pub prefix: String,
}

/// The waiting workers.
///
/// ```
/// use std::future::pending;
/// use std::{cell::Cell, pin::pin, time::Duration};
/// use statehouse_waiting::{Waiters, Wanted, block_on};
/// let waiters = Waiters::default();
/// let mut place = waiters.join(Wanted { scope: (1, 1), prefix: "jobs.".into() }).expect("they are open");
/// waiters.ready([((1, 1), "jobs.mail.")]);
/// assert!(block_on(place.turn(pin!(pending())), || Duration::MAX, &Cell::new(false)));
/// ```
#[derive(Default)]
pub struct Waiters {
    state: Mutex<State>,
}

/// By the prefix they wait for, and in order of arrival; with their tasks, once they sleep. None of the maps is empty.
type ByPrefix = BTreeMap<String, BTreeMap<u64, Option<Waker>>>;

#[derive(Default)]
struct State {
    /// A chosen waiter is no longer here.
    waiting: BTreeMap<Scope, ByPrefix>,
    next: u64,
    closing: bool,
}

impl State {
    fn task(&mut self, wanted: &Wanted, number: u64) -> Option<&mut Option<Waker>> {
        self.waiting.get_mut(&wanted.scope)?.get_mut(&wanted.prefix)?.get_mut(&number)
    }

    /// Removes a waiter, which is chosen, or leaves.
    fn remove(&mut self, scope: Scope, prefix: &str, number: u64) -> Option<Option<Waker>> {
        let by_prefix = self.waiting.get_mut(&scope)?;
        let by_number = by_prefix.get_mut(prefix)?;
        let task = by_number.remove(&number);
        if by_number.is_empty() {
            by_prefix.remove(prefix);
        }
        if by_prefix.is_empty() {
            self.waiting.remove(&scope);
        }
        task
    }

    /// Chooses the one that has waited longest for something that covers a queue; its task must be woken without the lock.
    fn choose(&mut self, scope: Scope, queue: &str) -> Option<Waker> {
        let by_prefix = self.waiting.get(&scope)?;
        let oldest = oldest(by_prefix, covering(by_prefix, queue))?;
        self.remove(scope, &oldest.1, oldest.0)?
    }

    /// Chooses the one that has waited longest for something that another may have waited for too.
    fn choose_instead_of(&mut self, other: &Wanted) -> Option<Waker> {
        let by_prefix = self.waiting.get(&other.scope)?;
        let from = (Bound::Excluded(other.prefix.as_str()), Bound::Unbounded);
        let narrower = by_prefix.range::<str, _>(from).map(|(prefix, _)| prefix.as_str());
        let narrower = narrower.take_while(|prefix| prefix.starts_with(&other.prefix));
        let oldest = oldest(by_prefix, covering(by_prefix, &other.prefix).chain(narrower))?;
        self.remove(other.scope, &oldest.1, oldest.0)?
    }
}

/// The one that has waited longest for one of these prefixes: its number and its prefix.
fn oldest<'map>(by_prefix: &'map ByPrefix, prefixes: impl Iterator<Item = &'map str>) -> Option<(u64, String)> {
    let first = |prefix: &'map str| Some((*by_prefix.get(prefix)?.first_key_value()?.0, prefix));
    prefixes.filter_map(first).min().map(|(number, prefix)| (number, prefix.to_owned()))
}

/// The prefixes of a name that somebody waits for, the longest first. Each step goes to the last one that can be one, so
/// there are no more steps than the name has parts that differ.
fn covering<'map>(by_prefix: &'map ByPrefix, name: &str) -> impl Iterator<Item = &'map str> {
    let mut until = Some(name);
    std::iter::from_fn(move || {
        loop {
            let (found, _) = by_prefix.range::<str, _>((Bound::Unbounded, Bound::Included(until?))).next_back()?;
            let common = common_prefix(found, name);
            if common.len() == found.len() {
                until = common.char_indices().next_back().map(|(last, _)| &name[..last]);
                return Some(found.as_str());
            }
            until = Some(common);
        }
    })
}

/// What both names begin with.
fn common_prefix<'name>(one: &str, name: &'name str) -> &'name str {
    let alike = one.chars().zip(name.char_indices()).take_while(|(a, (_, b))| a == b).last();
    alike.map_or("", |(_, (at, last))| &name[..at + last.len_utf8()])
}

/// A place among the waiters; removed on drop.
pub struct Place<'waiters> {
    waiters: &'waiters Waiters,
    number: u64,
    wanted: Wanted,
    /// Whether it knows that it was chosen, and will look for records.
    heard: bool,
}

impl Waiters {
    /// Joins the waiters; none when there is nothing more to wait for.
    pub fn join(&self, wanted: Wanted) -> Option<Place<'_>> {
        let mut state = lock(&self.state);
        if state.closing {
            return None;
        }
        let number = state.next;
        state.next += 1;
        let by_prefix = state.waiting.entry(wanted.scope).or_default();
        by_prefix.entry(wanted.prefix.clone()).or_default().insert(number, None);
        Some(Place { waiters: self, number, wanted, heard: false })
    }

    /// Records of these queues have become ready, one for each time that a queue is named.
    pub fn ready<'queue>(&self, queues: impl IntoIterator<Item = (Scope, &'queue str)>) {
        let mut queues = queues.into_iter().peekable();
        if queues.peek().is_none() {
            return;
        }
        let mut state = lock(&self.state);
        let tasks: Vec<_> = queues.filter_map(|(scope, queue)| state.choose(scope, queue)).collect();
        drop(state);
        tasks.into_iter().for_each(Waker::wake);
    }

    /// The number of waiters.
    pub fn count(&self) -> usize {
        lock(&self.state).waiting.values().flat_map(BTreeMap::values).map(BTreeMap::len).sum()
    }

    /// Wakes everyone: nothing will become ready any more.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.closing = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        let tasks = waiting.into_values().flat_map(BTreeMap::into_values).flat_map(BTreeMap::into_values);
        tasks.flatten().for_each(Waker::wake);
    }
}

impl Place<'_> {
    /// Waits to be chosen, or until the time is up; returns whether it was chosen.
    pub async fn turn(&mut self, mut time_over: Pin<&mut impl Future<Output = ()>>) -> bool {
        poll_fn(|context| {
            if self.is_chosen(context.waker()) {
                return Poll::Ready(true);
            }
            time_over.as_mut().poll(context).map(|()| false)
        })
        .await
    }

    /// It was chosen, and could not take what it was chosen for: somebody else should.
    pub fn pass_on(mut self) {
        self.heard = false;
    }

    /// Whether it was chosen; if not, the task is woken when it is.
    fn is_chosen(&mut self, waker: &Waker) -> bool {
        match lock(&self.waiters.state).task(&self.wanted, self.number) {
            None => self.heard = true,
            Some(task) => *task = Some(waker.clone()),
        }
        self.heard
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.waiters.state);
        let was_waiting = state.remove(self.wanted.scope, &self.wanted.prefix, self.number).is_some();
        if was_waiting || self.heard {
            return;
        }
        // It was chosen for a record that it does not look for any more: somebody else should.
        let task = state.choose_instead_of(&self.wanted);
        drop(state);
        if let Some(task) = task {
            task.wake();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
