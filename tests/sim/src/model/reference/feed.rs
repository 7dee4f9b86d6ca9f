//! What the change feed tells of cells: everything ever written, and the number up to which it is no longer kept.

use std::collections::VecDeque;

use contract::{Change, Limits, Reason, Subject};
use session::ChangedSessions;

use super::{Id, Reference};

/// Entries that are given up at the end of one that wrote something.
const GIVEN_UP_MAX: usize = 2;

/// The change feed of the reference. What else than cells is written is not in it, so its floor is right where nothing else
/// is, or where all of it is kept.
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

/// A write of a cell.
#[derive(Clone, Debug)]
pub(super) struct Fed {
    pub(super) commit: u64,
    pub(super) at_us: u64,
    pub(super) id: Id,
    pub(super) version: u64,
    pub(super) deleted: bool,
}

impl Feed {
    pub(super) fn write(&mut self, fed: Fed) {
        self.writes.push(fed);
    }

    /// Takes back the last write.
    pub(super) fn undo(&mut self) {
        self.writes.pop();
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
    /// Ends an entry: some of what the feed need not keep is given up. Gives what it has changed in sessions.
    pub(crate) fn end_entry(&mut self) -> ChangedSessions {
        self.feed.end_entry(self.commit, self.wall_us, &self.limits);
        self.end_entry_of_sessions()
    }

    /// What changed in the cells of a branch after a commit, kept or not.
    pub(crate) fn cell_changes_after(&self, place: (u32, u32), cursor: u64) -> Vec<Change> {
        let first = self.feed.writes.partition_point(|fed| fed.commit <= cursor);
        let here = self.feed.writes[first..].iter().filter(|fed| fed.id.place() == place);
        let change = |fed: &Fed| {
            let reason = if fed.deleted { Reason::Deleted } else { Reason::Written };
            Change::new(fed.commit, fed.at_us, Subject::Cell, reason, fed.id.name.clone(), fed.version)
                .in_group(fed.id.group.clone())
        };
        here.map(change).collect()
    }
}
