//! What the commands of an entry add to rows that are written once for the whole entry: the change feed and counts.
//!
//! Keeps: K7 for them too. What a rejected command has noted is forgotten with its writes.

use std::collections::BTreeMap;

use contract::Limits;
use kv::Staging;
use session::{Halt, Stamp};

use crate::changes::ChangeLog;
use crate::keys::Keys;

/// Which count: of the records of a queue, of one type, in one state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CountKey {
    pub(crate) space: u32,
    pub(crate) branch: u32,
    pub(crate) queue: String,
    pub(crate) record_type: u32,
    pub(crate) state: u8,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Folded {
    pub(crate) changes: ChangeLog,
    counts: Vec<(CountKey, i64)>,
    counts_at_savepoint: usize,
    messages: MessageCounts,
    messages_at_savepoint: MessageCounts,
    /// Whether a message was put among those to publish; perhaps by a command that was rejected then.
    pub(crate) publishes: bool,
}

/// How many messages wait: for their time or their group, and to be published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// For their time, or to be applied in a group.
    pub due: i64,
    /// To be published.
    pub publish: i64,
}

impl Folded {
    /// From here on, [`undo`](Self::undo) comes back to here.
    pub(crate) fn savepoint(&mut self) {
        self.changes.savepoint();
        self.counts_at_savepoint = self.counts.len();
        self.messages_at_savepoint = self.messages;
    }

    /// Forgets what was noted since the savepoint.
    pub(crate) fn undo(&mut self) {
        self.changes.undo();
        self.counts.truncate(self.counts_at_savepoint);
        self.messages = self.messages_at_savepoint;
    }

    /// Notes that a count rises or falls.
    pub(crate) fn count(&mut self, key: CountKey, by: i64) {
        self.counts.push((key, by));
    }

    /// Notes that messages begin or cease to wait.
    pub(crate) fn count_messages(&mut self, due: i64, publish: i64) {
        self.messages.due += due;
        self.messages.publish += publish;
        self.publishes |= publish > 0;
    }

    /// The counts that were noted so far.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &CountKey> {
        self.counts.iter().map(|(key, _)| key)
    }

    /// Writes what was noted, at the end of an entry.
    pub(crate) fn write(
        &mut self,
        state: &mut Staging,
        keys: &Keys,
        limits: &Limits,
        stamp: Stamp,
        commit: u64,
    ) -> Result<(), Halt> {
        self.changes.write(state, keys, limits, stamp, commit)?;
        let mut sums: BTreeMap<CountKey, i64> = BTreeMap::new();
        for (key, by) in self.counts.drain(..) {
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
