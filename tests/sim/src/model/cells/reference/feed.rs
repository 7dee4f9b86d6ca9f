//! The change feed of the reference: everything ever written, and the number up to which it is no longer kept.

use std::collections::VecDeque;

use contract::{Change, Limits, Reason, Subject};

use super::{CellName, Reference};

/// Entries that are given up at the end of one that wrote something.
const GIVEN_UP_MAX: usize = 2;

/// The change feed of the reference.
#[derive(Default)]
pub(crate) struct Feed {
    writes: Vec<Fed>,
    /// The last command and the time of every kept entry that wrote something.
    entries: VecDeque<(u64, u64)>,
    /// How many writes there were before the entry that is being applied.
    before_entry: usize,
    /// Up to which commit nothing is kept.
    pub(crate) floor: u64,
}

#[derive(Clone, Debug)]
struct Fed {
    commit: u64,
    at_us: u64,
    cell: CellName,
    version: u64,
    deleted: bool,
}

impl Feed {
    pub(super) fn len(&self) -> usize {
        self.writes.len()
    }

    pub(super) fn undo(&mut self, len: usize) {
        self.writes.truncate(len);
    }

    pub(super) fn write(&mut self, commit: u64, at_us: u64, cell: CellName, version: u64, deleted: bool) {
        self.writes.push(Fed { commit, at_us, cell, version, deleted });
    }

    fn end_entry(&mut self, commit: u64, now_us: u64, limits: &Limits) {
        if self.writes.len() > self.before_entry {
            self.entries.push_back((commit, now_us));
            for _ in 0..GIVEN_UP_MAX {
                let given_up = self.entries.pop_front_if(|(last, at_us)| {
                    commit - *last >= limits.changes_commits_max || now_us - *at_us > limits.changes_age_us_max
                });
                self.floor = given_up.map_or(self.floor, |(last, _)| last);
            }
        }
        self.before_entry = self.writes.len();
    }
}

impl Reference {
    /// Ends an entry: some of what the feed need not keep is given up.
    pub(crate) fn end_entry(&mut self) {
        self.feed.end_entry(self.commit, self.wall_us, &self.limits);
    }

    /// What changed in a branch after a commit, kept or not.
    pub(crate) fn changes_after(&self, space: u32, branch: u32, cursor: u64) -> Vec<Change> {
        let first = self.feed.writes.partition_point(|fed| fed.commit <= cursor);
        let here = self.feed.writes[first..].iter().filter(|fed| (fed.cell.space, fed.cell.branch) == (space, branch));
        let change = |fed: &Fed| {
            let reason = if fed.deleted { Reason::Deleted } else { Reason::Written };
            Change::new(fed.commit, fed.at_us, Subject::Cell, reason, fed.cell.name.to_owned(), fed.version)
                .in_group(fed.cell.group.map(str::to_owned))
        };
        here.map(change).collect()
    }
}
