//! The indexes over time: ready records and due work, with the low end of each in memory.
//!
//! Touches: the `Ready`, `DueWall` and `DueCluster` rows, which nothing else writes. Keeps: R5 (a row of these indexes
//! is exactly where the record says).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kv::{Key, KeyRange, Staging, copied};
use session::Halt;

use super::window::{Entry, Window};
use crate::keys::records::{DueClock, DueOf};
use crate::keys::{Keys, ThingId};
use crate::machine::Applying;

/// Queues whose low ends are kept in memory.
const QUEUES_MAX: usize = 1_024;

/// Remembered prefixes of queues.
const PREFIXES_MAX: usize = 256;

/// A queue of records that can be claimed: those that share a prefix of their names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadyQueue {
    /// The space.
    pub space: u32,
    /// The branch.
    pub branch: u32,
    /// The prefix that its records share.
    pub name: String,
}

/// The queue of a record: its name up to the last `.`, `:` or `/`.
///
/// ```
/// use statehouse_kernel::records::schedule::queue_of;
/// assert_eq!(queue_of("jobs.email.42"), "jobs.email.");
/// assert_eq!(queue_of("alone"), "");
/// ```
pub fn queue_of(name: &str) -> &str {
    name.rfind(SEPARATORS).map_or("", |last| &name[..=last])
}

/// The characters that end the name of a queue.
pub const SEPARATORS: [char; 3] = ['.', ':', '/'];

enum Index {
    Ready(ReadyQueue),
    Due(DueClock),
}

/// Queues by a prefix of their names.
type Prefixes = BTreeMap<String, Arc<BTreeSet<ReadyQueue>>>;

/// The low ends of the indexes, and the changes of the current command to them.
#[derive(Default)]
pub(crate) struct Windows {
    ready: BTreeMap<ReadyQueue, Window>,
    wall: Window,
    cluster: Window,
    /// For each branch and each requested prefix, the queues that start with it; some may be empty by now.
    queues: BTreeMap<(u32, u32), Prefixes>,
    /// The queues of records that have become ready in the entry at hand, one for each record.
    pub(crate) readied: Vec<ReadyQueue>,
    /// Added (true) and removed entries of the command at hand.
    noted: Vec<(Index, Entry, bool)>,
}

impl Windows {
    /// The command was rejected: nothing has changed.
    pub(crate) fn undo(&mut self) {
        self.noted.clear();
    }

    /// Forgets everything, because the store was changed in another way.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The command is done: its changes hold.
    pub(crate) fn settle(&mut self) {
        for (index, entry, added) in self.noted.drain(..) {
            if let Index::Ready(queue) = &index
                && added
            {
                learn_queue(&mut self.queues, queue);
                self.readied.push(queue.clone());
            }
            let window = match &index {
                Index::Ready(queue) => self.ready.get_mut(queue),
                Index::Due(DueClock::Wall) => Some(&mut self.wall),
                Index::Due(DueClock::Cluster) => Some(&mut self.cluster),
            };
            match window {
                // Nobody has asked for this queue yet.
                None => {}
                Some(window) if added => window.insert(entry),
                Some(window) => window.remove(&entry),
            }
        }
    }

    /// These are the queues of a branch with this prefix.
    pub(crate) fn learn_queues(&mut self, branch: (u32, u32), prefix: &str, queues: Arc<BTreeSet<ReadyQueue>>) {
        if self.queues.values().map(BTreeMap::len).sum::<usize>() >= PREFIXES_MAX {
            self.queues.clear();
        }
        self.queues.entry(branch).or_default().insert(prefix.to_owned(), queues);
    }

    /// The queues of a branch with this prefix, if they are known.
    pub(crate) fn queues(&self, branch: (u32, u32), prefix: &str) -> Option<Arc<BTreeSet<ReadyQueue>>> {
        self.queues.get(&branch)?.get(prefix).cloned()
    }

    /// The first record of a queue.
    pub(crate) fn first_ready(
        &mut self,
        state: &Staging,
        keys: &Keys,
        buckets: u16,
        queue: &ReadyQueue,
    ) -> Result<Option<Entry>, Halt> {
        let range = |bucket| whole(keys.ready_prefix(bucket, queue.space, queue.branch, &queue.name));
        if let Some(window) = self.ready.get_mut(queue) {
            return Ok(window.first(state, buckets, range)?.cloned());
        }
        if self.ready.len() >= QUEUES_MAX {
            self.ready.pop_first();
        }
        let window = self.ready.entry(queue.clone()).or_default();
        Ok(window.first(state, buckets, range)?.cloned())
    }

    /// The first thing that will be due by a clock.
    pub(crate) fn first_due(
        &mut self,
        state: &Staging,
        keys: &Keys,
        buckets: u16,
        clock: DueClock,
    ) -> Result<Option<Entry>, Halt> {
        let window = match clock {
            DueClock::Wall => &mut self.wall,
            DueClock::Cluster => &mut self.cluster,
        };
        Ok(window.first(state, buckets, |bucket| whole(keys.due_prefix(clock, bucket)))?.cloned())
    }
}

fn learn_queue(queues: &mut BTreeMap<(u32, u32), Prefixes>, queue: &ReadyQueue) {
    for (prefix, known) in queues.get_mut(&(queue.space, queue.branch)).into_iter().flatten() {
        if queue.name.starts_with(prefix) && !known.contains(queue) {
            Arc::make_mut(known).insert(queue.clone());
        }
    }
}

fn whole(prefix: Key) -> (KeyRange, usize) {
    (KeyRange::prefix(&prefix), prefix.len())
}

/// A place in the index of what can be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadyPlace {
    pub(crate) order: i64,
    pub(crate) ready_us: u64,
}

impl Applying<'_> {
    pub(crate) fn put_ready(&mut self, record: &ThingId<'_>, place: ReadyPlace) {
        self.change_ready(record, place, true);
    }

    pub(crate) fn delete_ready(&mut self, record: &ThingId<'_>, place: ReadyPlace) {
        self.change_ready(record, place, false);
    }

    fn change_ready(&mut self, record: &ThingId<'_>, place: ReadyPlace, added: bool) {
        let queue = queue_of(record.name);
        let mut key = self.keys.ready_prefix(record.bucket, record.space, record.branch, queue);
        let suffix = Keys::ready_suffix(place.order, place.ready_us, record);
        key.extend_from_slice(&suffix);
        self.change_row(key, b"", added);
        let queue = ReadyQueue { space: record.space, branch: record.branch, name: queue.to_owned() };
        self.windows.noted.push((Index::Ready(queue), Entry { suffix, bucket: record.bucket }, added));
    }

    pub(crate) fn put_due(&mut self, clock: DueClock, at_us: u64, of: DueOf, record: &ThingId<'_>) {
        self.change_due(clock, record.bucket, Keys::due_suffix(at_us, of, record), b"", true);
    }

    pub(crate) fn delete_due(&mut self, clock: DueClock, at_us: u64, of: DueOf, record: &ThingId<'_>) {
        self.change_due(clock, record.bucket, Keys::due_suffix(at_us, of, record), b"", false);
    }

    pub(crate) fn change_due(&mut self, clock: DueClock, bucket: u16, suffix: Key, value: &[u8], added: bool) {
        let mut key = self.keys.due_prefix(clock, bucket);
        key.extend_from_slice(&suffix);
        self.change_row(key, value, added);
        self.windows.noted.push((Index::Due(clock), Entry { suffix, bucket }, added));
    }

    fn change_row(&mut self, key: Key, value: &[u8], added: bool) {
        if added {
            self.state.put(key, copied(value));
        } else {
            self.state.delete(key);
        }
    }
}
