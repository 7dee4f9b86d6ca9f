//! Totals of an entry's commands, for metrics.
//!
//! Keeps: K7 for them too: counts of a rejected command are dropped. Never: is stored, or decides anything.

use contract::{Reason, Subject};

/// Reasons are numbered from 1, without a gap.
const REASONS: usize = Reason::ALL.len() + 1;

/// The totals of one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    counts: Counts,
    counts_at_savepoint: Counts,
    /// The space and type of every claimed record.
    pub claimed: Vec<(u32, u32)>,
    claimed_at_savepoint: usize,
    /// Commands refused because something was not as they expected.
    pub conflicts: Vec<Conflict>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Changes of records and messages, by the number of their reason.
    reasons: [u32; REASONS],
    repeated_appends: u32,
    /// Updates that were not applied, by the number of what became of them.
    not_applied: [u32; NotApplied::ALL.len()],
}

/// What becomes of an update that is not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotApplied {
    /// It was applied before.
    Duplicate,
    /// Something newer was.
    Stale,
    /// Its version has another value.
    VersionConflict,
}

impl NotApplied {
    const ALL: [Self; 3] = [Self::Duplicate, Self::Stale, Self::VersionConflict];

    /// The word for it in metrics.
    fn word(self) -> &'static str {
        match self {
            Self::Duplicate => "duplicate",
            Self::Stale => "stale",
            Self::VersionConflict => "version_conflict",
        }
    }
}

/// A command refused because something was not as it expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The contract of what was not as expected: its folder.
    pub on: &'static str,
    /// The type of the record or the kind of the run; empty if it has none.
    pub type_name: String,
}

impl Tally {
    /// The number of changes of records or messages with this reason.
    pub fn changes(&self, reason: Reason) -> u64 {
        self.counts.reasons[usize::from(reason.code())].into()
    }

    /// The number of appends answered by an existing event.
    pub fn repeated_appends(&self) -> u64 {
        self.counts.repeated_appends.into()
    }

    /// The number of updates that were not applied: duplicates, stale ones, and version conflicts.
    pub fn updates_not_applied(&self) -> [(&'static str, u64); 3] {
        NotApplied::ALL.map(|became| (became.word(), self.counts.not_applied[became as usize].into()))
    }

    pub(crate) fn savepoint(&mut self) {
        self.counts_at_savepoint = self.counts;
        self.claimed_at_savepoint = self.claimed.len();
    }

    pub(crate) fn undo(&mut self) {
        self.counts = self.counts_at_savepoint;
        self.claimed.truncate(self.claimed_at_savepoint);
    }

    pub(crate) fn changed(&mut self, subject: Subject, reason: Reason) {
        if subject.is_counted_by_reason() {
            self.counts.reasons[usize::from(reason.code())] += 1;
        }
    }

    pub(crate) fn not_applied(&mut self, became: NotApplied) {
        self.counts.not_applied[became as usize] += 1;
    }

    pub(crate) fn append_repeated(&mut self) {
        self.counts.repeated_appends += 1;
    }
}
