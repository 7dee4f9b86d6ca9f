//! Totals of an entry's commands for rows that are written once per entry: the change feed, counts, what spaces take, and
//! the numbers of messages.
//!
//! Keeps: K7 for them too. Whatever a rejected command noted is dropped with its writes.

use std::collections::BTreeMap;

use contract::Limits;
use kv::Staging;
use session::{Halt, Stamp};

use crate::changes::ChangeLog;
use crate::counts::{CountKey, Counted, MessageCounts, add, add_dead_letters, add_messages, row_key};
use crate::keys::Keys;
use crate::outbox::MessageState;
use crate::outbox::numbers::MessageNumbers;
use crate::usage::{self, HOLDERS, UsageChange};

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
    /// What the contracts take in spaces: space, place of the contract in the list, and by how much.
    usage: Vec<(u32, usize, UsageChange)>,
    usage_at_savepoint: usize,
    messages: MessageCounts,
    messages_at_savepoint: MessageCounts,
    /// By how much the number of dead letters of each space has changed.
    dead_letters: BTreeMap<u32, i64>,
    /// Those since the savepoint.
    dead_letters_since: Vec<(u32, i64)>,
    pub(crate) numbers: MessageNumbers,
    /// Whether a message was added to those to publish; possibly by a command that was rejected later.
    pub(crate) publishes: bool,
}

impl Folded {
    /// Sets the point to which [`undo`](Self::undo) returns.
    pub(crate) fn savepoint(&mut self) {
        self.changes.savepoint();
        self.counts_at_savepoint = self.counts.len();
        self.usage_at_savepoint = self.usage.len();
        self.messages_at_savepoint = self.messages;
        self.dead_letters_since.clear();
        self.numbers.savepoint();
    }

    /// Drops everything noted since the savepoint.
    pub(crate) fn undo(&mut self) {
        self.changes.undo();
        self.counts.truncate(self.counts_at_savepoint);
        self.usage.truncate(self.usage_at_savepoint);
        self.messages = self.messages_at_savepoint;
        for (space, by) in self.dead_letters_since.drain(..) {
            *self.dead_letters.entry(space).or_default() -= by;
        }
        self.numbers.undo();
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

    /// Notes that the things of a contract take more or less of a space.
    pub(crate) fn count_usage(&mut self, space: u32, holder: usize, by: UsageChange) {
        // A command mostly changes things of one contract.
        match self.usage[self.usage_at_savepoint..].last_mut() {
            Some((last_space, last_holder, change)) if (*last_space, *last_holder) == (space, holder) => change.add(by),
            _ => self.usage.push((space, holder, by)),
        }
    }

    /// Notes that messages start or stop waiting.
    pub(crate) fn count_messages(&mut self, state: MessageState, by: i64) {
        *self.messages.of_mut(state) += by;
        self.publishes |= state == MessageState::Publish && by > 0;
    }

    /// Notes that messages to a space become dead letters, or are none any longer.
    pub(crate) fn count_dead_letters(&mut self, space: u32, by: i64) {
        self.messages.dead += by;
        *self.dead_letters.entry(space).or_default() += by;
        self.dead_letters_since.push((space, by));
    }

    /// By how much the number of dead letters of a space has changed in this entry.
    pub(crate) fn dead_letters_of(&self, space: u32) -> i64 {
        self.dead_letters.get(&space).copied().unwrap_or(0)
    }

    /// By how much the number of messages has changed in this entry.
    pub(crate) fn messages(&self) -> MessageCounts {
        self.messages
    }

    /// Reads the rows of what was noted since the savepoint, to find out whether they can be written. Messages need not be
    /// counted.
    pub(crate) fn check(&self, state: &Staging, keys: &Keys) -> Result<(), Halt> {
        let mut checked = None;
        for (place, _) in &self.counts[self.counts_at_savepoint..] {
            if checked.replace(*place) == Some(*place) {
                continue;
            }
            let key = &self.count_keys[*place];
            let mut rows = vec![row_key(keys, key)];
            key.for_each_above(|key| rows.push(row_key(keys, &key)));
            for row in rows {
                state.get(&row)?;
            }
        }
        for (space, ..) in &self.usage[self.usage_at_savepoint..] {
            usage::check(state, keys, *space)?;
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
            add(state, keys, &key, by)?;
        }
        self.numbers.write(state, keys);
        self.write_usage(state, keys)?;
        self.write_dead_letters(state, keys)?;
        let messages = std::mem::take(&mut self.messages);
        self.messages_at_savepoint = MessageCounts::default();
        add_messages(state, keys, messages)
    }

    fn write_dead_letters(&mut self, state: &mut Staging, keys: &Keys) -> Result<(), Halt> {
        self.dead_letters_since.clear();
        let by_space = std::mem::take(&mut self.dead_letters);
        by_space.into_iter().try_for_each(|(space, by)| add_dead_letters(state, keys, space, by))
    }

    fn write_usage(&mut self, state: &mut Staging, keys: &Keys) -> Result<(), Halt> {
        let mut by_space: BTreeMap<u32, [UsageChange; HOLDERS.len()]> = BTreeMap::new();
        for (space, holder, by) in self.usage.drain(..) {
            by_space.entry(space).or_default()[holder].add(by);
        }
        self.usage_at_savepoint = 0;
        for (space, changes) in by_space {
            usage::change(state, keys, space, &changes)?;
        }
        Ok(())
    }
}
