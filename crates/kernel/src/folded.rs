//! Totals of an entry's commands for rows that are written once per entry: the change feed and counts.
//!
//! Keeps: K7 for them too. Whatever a rejected command noted is dropped with its writes.

use std::collections::BTreeMap;

use contract::Limits;
use kv::Staging;
use session::{Halt, Stamp};

use crate::changes::ChangeLog;
use crate::keys::Keys;
use crate::records::queue::above;

/// What a count counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CountOf {
    Records,
    /// Runs; their kind takes the place of the queue.
    Runs,
}

/// Which count: of the records of a queue, of one type, in one state; or of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Counted<Name> {
    pub(crate) of: CountOf,
    pub(crate) space: u32,
    pub(crate) branch: u32,
    pub(crate) queue: Name,
    pub(crate) record_type: u32,
    pub(crate) state: u8,
}

/// A count whose queue's name is its own.
pub(crate) type CountKey = Counted<String>;

impl CountKey {
    fn is(&self, other: &Counted<&str>) -> bool {
        let numbers = (self.of, self.space, self.branch, self.record_type, self.state);
        numbers == (other.of, other.space, other.branch, other.record_type, other.state) && self.queue == other.queue
    }

    /// Visits the counts of the queues above: a queue counts what is in the queues below it too.
    fn for_each_above(&self, mut visit: impl FnMut(CountKey)) {
        let mut higher = match self.of {
            CountOf::Records => above(&self.queue),
            CountOf::Runs => None,
        };
        while let Some(queue) = higher {
            visit(CountKey { queue: queue.to_owned(), ..*self });
            higher = above(queue);
        }
    }
}

/// Consecutive commands mostly change the same few counts, whose keys are then among the last ones.
const KEYS_LOOKED_AT: usize = 8;

/// The totals of the current entry.
#[derive(Default)]
pub(crate) struct Folded {
    pub(crate) changes: ChangeLog,
    /// The keys of noted counts, possibly repeated, and possibly from rejected commands.
    count_keys: Vec<CountKey>,
    /// By how much, for the place of a count in `count_keys`.
    counts: Vec<(usize, i64)>,
    counts_at_savepoint: usize,
    messages: MessageCounts,
    messages_at_savepoint: MessageCounts,
    /// Whether a message was added to those to publish; possibly by a command that was rejected later.
    pub(crate) publishes: bool,
}

/// The number of waiting messages: for their time or their group, and to be published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// For their time, or to be applied in a group.
    pub due: i64,
    /// To be published.
    pub publish: i64,
}

impl MessageCounts {
    /// All that wait.
    pub(crate) fn total(self) -> i64 {
        self.due + self.publish
    }
}

impl Folded {
    /// Sets the point to which [`undo`](Self::undo) returns.
    pub(crate) fn savepoint(&mut self) {
        self.changes.savepoint();
        self.counts_at_savepoint = self.counts.len();
        self.messages_at_savepoint = self.messages;
    }

    /// Drops everything noted since the savepoint.
    pub(crate) fn undo(&mut self) {
        self.changes.undo();
        self.counts.truncate(self.counts_at_savepoint);
        self.messages = self.messages_at_savepoint;
    }

    /// Notes that a count rises or falls.
    pub(crate) fn count(&mut self, counted: Counted<&str>, by: i64) {
        let recent = self.count_keys.iter().enumerate().rev().take(KEYS_LOOKED_AT);
        let known = recent.into_iter().find(|(_, key)| key.is(&counted)).map(|(place, _)| place);
        let place = known.unwrap_or_else(|| {
            let Counted { of, space, branch, queue, record_type, state } = counted;
            self.count_keys.push(CountKey { of, space, branch, queue: queue.to_owned(), record_type, state });
            self.count_keys.len() - 1
        });
        self.counts.push((place, by));
    }

    /// Notes that messages start or stop waiting.
    pub(crate) fn count_messages(&mut self, due: i64, publish: i64) {
        self.messages.due += due;
        self.messages.publish += publish;
        self.publishes |= publish > 0;
    }

    /// By how much the number of messages has changed in this entry.
    pub(crate) fn messages(&self) -> MessageCounts {
        self.messages
    }

    /// Reads the rows of everything noted since the savepoint, to find out whether they can be written.
    pub(crate) fn check(&self, state: &Staging, keys: &Keys) -> Result<(), Halt> {
        let mut checked = None;
        for (place, _) in &self.counts[self.counts_at_savepoint..] {
            if checked.replace(*place) == Some(*place) {
                continue;
            }
            let key = &self.count_keys[*place];
            let mut rows = vec![crate::records::counts::row_key(keys, key)];
            key.for_each_above(|key| rows.push(crate::records::counts::row_key(keys, &key)));
            for row in rows {
                state.get(&row)?;
            }
        }
        if self.messages != self.messages_at_savepoint {
            state.get(&keys.message_counts())?;
        }
        Ok(())
    }

    /// Writes the totals at the end of an entry.
    pub(crate) fn write(
        &mut self,
        state: &mut Staging,
        keys: &Keys,
        limits: &Limits,
        stamp: Stamp,
        commit: u64,
    ) -> Result<(), Halt> {
        self.changes.write(state, keys, limits, stamp, commit)?;
        let mut sums_by_place = vec![0_i64; self.count_keys.len()];
        for (place, by) in self.counts.drain(..) {
            sums_by_place[place] += by;
        }
        let mut sums: BTreeMap<CountKey, i64> = BTreeMap::new();
        for (key, by) in self.count_keys.drain(..).zip(sums_by_place).filter(|(_, by)| *by != 0) {
            key.for_each_above(|key| *sums.entry(key).or_default() += by);
            *sums.entry(key).or_default() += by;
        }
        for (key, by) in sums.into_iter().filter(|(_, by)| *by != 0) {
            crate::records::counts::add(state, keys, &key, by)?;
        }
        let messages = std::mem::take(&mut self.messages);
        self.messages_at_savepoint = MessageCounts::default();
        crate::records::send::add_counts(state, keys, messages)
    }
}
