//! The indexes over time: what is due, and what is ready; the low end of each is kept in memory.
//!
//! Touches: the `DueWall` and `DueCluster` rows, which nothing else writes; `lanes` writes what is ready. Keeps: R5 (a row
//! of these indexes is exactly where the record says).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use kv::{Key, KeyRange, Staging};
use session::Halt;

use super::window::{Entry, Window};
use crate::changes::Subject;
use crate::keys::due::DueClock;
use crate::keys::queues::{QueueId, ReadyPlace};
use crate::keys::{Keys, ThingId};

/// Queues whose low ends are kept in memory: at least half as many, those that were claimed from last.
const QUEUES_MAX: usize = 2_048;

/// Entries of these at most, or a few more: what they have is counted when so many more queues are there.
const ENTRIES_MAX: usize = 262_144;
const COUNTED_EVERY: usize = 32;

/// A queue of a branch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadyQueue {
    /// The space.
    pub space: u32,
    /// The branch.
    pub branch: u32,
    /// Its name, which its records start with.
    pub name: String,
}

/// A thing in no queue that has become free, as those who wait for it know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreedThing {
    /// What it is.
    pub subject: Subject,
    /// The space.
    pub space: u32,
    /// The branch.
    pub branch: u32,
    /// Its group, if it has one.
    pub group: Option<String>,
    /// Its name.
    pub name: String,
}

impl FreedThing {
    /// The thing, as those who wait for it know it.
    pub fn of(subject: Subject, thing: &ThingId<'_>) -> Self {
        let ThingId { space, branch, group, name, .. } = *thing;
        Self { subject, space, branch, group: group.map(str::to_owned), name: name.to_owned() }
    }

    /// What those who wait for it wait for: its group and its name, each with an end that no name contains, so that none is
    /// the beginning of another.
    pub fn waited_for(&self) -> String {
        format!("{}\0{}\0", self.group.as_deref().unwrap_or(&self.name), self.name)
    }
}

impl From<QueueId<'_>> for ReadyQueue {
    fn from(queue: QueueId<'_>) -> Self {
        Self { space: queue.space, branch: queue.branch, name: queue.name.to_owned() }
    }
}

enum Index {
    Ready(ReadyQueue),
    Due(DueClock),
}

/// The low ends of the indexes, and the changes of the current command to them.
pub(crate) struct Windows {
    ready: QueueWindows,
    wall: Window,
    cluster: Window,
    /// The queues of records that have become ready in the entry at hand, one for each record.
    pub(crate) readied: Vec<ReadyQueue>,
    /// Those of the command at hand.
    noted_readied: Vec<ReadyQueue>,
    /// The things in no queue that have become free in the entry at hand.
    pub(crate) freed: Vec<FreedThing>,
    /// Those of the command at hand.
    noted_freed: Vec<FreedThing>,
    /// Added (true) and removed entries of the command at hand.
    noted: Vec<(Index, Entry, bool)>,
}

impl Default for Windows {
    fn default() -> Self {
        Self {
            ready: QueueWindows::default(),
            // What is due goes on without what is damaged. A claim takes the first record of its queue, so it does not.
            wall: Window::skipping_damage(),
            cluster: Window::skipping_damage(),
            readied: Vec::new(),
            noted_readied: Vec::new(),
            freed: Vec::new(),
            noted_freed: Vec::new(),
            noted: Vec::new(),
        }
    }
}

/// The low ends of the queues that were claimed from last. In two generations, so that forgetting costs nothing: what
/// was not used during a whole generation goes with it.
#[derive(Default)]
struct QueueWindows {
    recent: BTreeMap<ReadyQueue, Window>,
    earlier: BTreeMap<ReadyQueue, Window>,
    /// Queues that were claimed from once. A window is worth its while from the second time on.
    seen: BTreeSet<ReadyQueue>,
    seen_earlier: BTreeSet<ReadyQueue>,
}

impl QueueWindows {
    fn get_mut(&mut self, queue: &ReadyQueue) -> Option<&mut Window> {
        self.recent.get_mut(queue).or_else(|| self.earlier.get_mut(queue))
    }

    /// Whether a queue has a window, or should have one. Notes that it was asked for.
    fn is_busy(&mut self, queue: &ReadyQueue) -> bool {
        if self.get_mut(queue).is_some() || self.seen.remove(queue) || self.seen_earlier.remove(queue) {
            return true;
        }
        if self.seen.len() >= QUEUES_MAX / 2 {
            self.seen_earlier = std::mem::take(&mut self.seen);
        }
        self.seen.insert(queue.clone());
        false
    }

    /// The window of a queue, perhaps a new one.
    fn open(&mut self, queue: &ReadyQueue) -> &mut Window {
        if !self.recent.contains_key(queue) {
            let found = self.earlier.remove(queue);
            if self.recent.len() >= QUEUES_MAX / 2 || self.is_large() {
                self.earlier = std::mem::take(&mut self.recent);
            }
            self.recent.insert(queue.clone(), found.unwrap_or_default());
        }
        self.recent.get_mut(queue).expect("it was just put there")
    }

    fn is_large(&self) -> bool {
        let counts = self.recent.len().is_multiple_of(COUNTED_EVERY);
        counts && self.recent.values().map(Window::len).sum::<usize>() > ENTRIES_MAX / 2
    }
}

impl Windows {
    /// The command was rejected: nothing has changed.
    pub(crate) fn undo(&mut self) {
        self.noted.clear();
        self.noted_readied.clear();
        self.noted_freed.clear();
    }

    /// Forgets everything, because the store was changed in another way.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Notes that an entry of what is due was added or removed.
    pub(super) fn note_due(&mut self, clock: DueClock, entry: Entry, is_added: bool) {
        self.noted.push((Index::Due(clock), entry, is_added));
    }

    /// Notes that a row of a queue was added or removed.
    pub(crate) fn note_ready(&mut self, queue: QueueId<'_>, entry: Entry, is_added: bool) {
        self.noted.push((Index::Ready(queue.into()), entry, is_added));
    }

    /// Notes that a record of a queue has become ready.
    pub(crate) fn note_readied(&mut self, queue: QueueId<'_>) {
        self.noted_readied.push(queue.into());
    }

    /// Notes that a thing in no queue has become free.
    pub(crate) fn note_freed(&mut self, subject: Subject, thing: &ThingId<'_>) {
        self.noted_freed.push(FreedThing::of(subject, thing));
    }

    /// The command is done: its changes hold.
    pub(crate) fn settle(&mut self) {
        self.readied.append(&mut self.noted_readied);
        self.freed.append(&mut self.noted_freed);
        for (index, entry, is_added) in self.noted.drain(..) {
            let window = match &index {
                Index::Ready(queue) => self.ready.get_mut(queue),
                Index::Due(DueClock::Wall) => Some(&mut self.wall),
                Index::Due(DueClock::Cluster) => Some(&mut self.cluster),
            };
            match window {
                // Nobody has asked for this queue yet.
                None => {}
                Some(window) if is_added => window.insert(entry),
                Some(window) => window.remove(&entry),
            }
        }
    }

    /// Whether the low end of a queue is in memory, or should be. Notes that it was asked for.
    pub(crate) fn is_busy(&mut self, queue: QueueId<'_>) -> bool {
        self.ready.is_busy(&queue.into())
    }

    /// Whether the low end of a queue is in memory.
    pub(crate) fn has_queue(&mut self, queue: QueueId<'_>) -> bool {
        self.ready.get_mut(&queue.into()).is_some()
    }

    /// Keeps the low end of a queue in memory, given where its rows begin in each bucket that has any.
    pub(crate) fn begin_queue(&mut self, queue: QueueId<'_>, begins: impl Iterator<Item = (u16, ReadyPlace)>) {
        let window = self.ready.open(&queue.into());
        window.begin(begins.map(|(bucket, place)| (bucket, Keys::ready_place_suffix(place))));
    }

    /// The first row of a queue whose low end is in memory.
    pub(crate) fn first_ready(
        &mut self,
        state: &Staging,
        keys: &Keys,
        queue: QueueId<'_>,
    ) -> Result<Option<Entry>, Halt> {
        let window = self.ready.open(&queue.into());
        Ok(window.first(state, |bucket| whole(keys.ready_prefix(bucket, queue)))?.cloned())
    }

    /// The first row in a bucket of a queue whose low end is in memory.
    pub(crate) fn first_ready_in(
        &mut self,
        state: &Staging,
        keys: &Keys,
        queue: QueueId<'_>,
        bucket: u16,
    ) -> Result<Option<Key>, Halt> {
        let Some(window) = self.ready.get_mut(&queue.into()) else { return Ok(None) };
        Ok(window.first_in(state, bucket, |bucket| whole(keys.ready_prefix(bucket, queue)))?.cloned())
    }

    /// The first thing that will be due by a clock.
    pub(crate) fn first_due(
        &mut self,
        state: &Staging,
        keys: &Keys,
        buckets: Range<u16>,
        clock: DueClock,
    ) -> Result<Option<Entry>, Halt> {
        let window = match clock {
            DueClock::Wall => &mut self.wall,
            DueClock::Cluster => &mut self.cluster,
        };
        if !window.has_begun() {
            window.begin(buckets.map(|bucket| (bucket, Key::default())));
        }
        Ok(window.first(state, |bucket| whole(keys.due_prefix(clock, bucket)))?.cloned())
    }
}

fn whole(prefix: Key) -> (KeyRange, usize) {
    (KeyRange::prefix(&prefix), prefix.len())
}
