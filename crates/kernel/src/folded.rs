//! What the commands of an entry add to rows that are written once for the whole entry: the change feed and counts.
//!
//! Keeps: K7 for them too. What a rejected command has noted is forgotten with its writes.

use std::collections::BTreeMap;

use kv::Staging;
use session::{Halt, Stamp};

use crate::changes::ChangeLog;
use crate::keys::Keys;

/// Which count: of the records of a queue, of one type, in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Counted<Name> {
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
        let numbers = (self.space, self.branch, self.record_type, self.state);
        numbers == (other.space, other.branch, other.record_type, other.state) && self.queue == other.queue
    }
}

/// Commands that follow each other mostly change the same few counts, whose keys are then among the last ones.
const KEYS_LOOKED_AT: usize = 8;

/// See the module.
#[derive(Default)]
pub(crate) struct Folded {
    pub(crate) changes: ChangeLog,
    /// The counts that were noted, some perhaps twice, and some perhaps by commands that were rejected.
    count_keys: Vec<CountKey>,
    /// By how much, for the place of a count in `count_keys`.
    counts: Vec<(usize, i64)>,
    counts_at_savepoint: usize,
}

impl Folded {
    /// From here on, [`undo`](Self::undo) comes back to here.
    pub(crate) fn savepoint(&mut self) {
        self.changes.savepoint();
        self.counts_at_savepoint = self.counts.len();
    }

    /// Forgets what was noted since the savepoint.
    pub(crate) fn undo(&mut self) {
        self.changes.undo();
        self.counts.truncate(self.counts_at_savepoint);
    }

    /// Notes that a count rises or falls.
    pub(crate) fn count(&mut self, counted: Counted<&str>, by: i64) {
        let recent = self.count_keys.iter().enumerate().rev().take(KEYS_LOOKED_AT);
        let known = recent.into_iter().find(|(_, key)| key.is(&counted)).map(|(place, _)| place);
        let place = known.unwrap_or_else(|| {
            let Counted { space, branch, queue, record_type, state } = counted;
            self.count_keys.push(CountKey { space, branch, queue: queue.to_owned(), record_type, state });
            self.count_keys.len() - 1
        });
        self.counts.push((place, by));
    }

    /// The counts that were noted so far.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &CountKey> {
        self.counts.iter().map(|(place, _)| &self.count_keys[*place])
    }

    /// Writes what was noted, at the end of an entry.
    pub(crate) fn write(&mut self, state: &mut Staging, keys: &Keys, stamp: Stamp, commit: u64) -> Result<(), Halt> {
        self.changes.write(state, keys, stamp, commit);
        let mut sums_by_place = vec![0_i64; self.count_keys.len()];
        for (place, by) in self.counts.drain(..) {
            sums_by_place[place] += by;
        }
        let mut sums: BTreeMap<CountKey, i64> = BTreeMap::new();
        for (key, by) in self.count_keys.drain(..).zip(sums_by_place) {
            *sums.entry(key).or_default() += by;
        }
        for (key, by) in sums.into_iter().filter(|(_, by)| *by != 0) {
            crate::records::counts::add(state, keys, &key, by)?;
        }
        Ok(())
    }
}
