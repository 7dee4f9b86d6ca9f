//! The change feed: what every applied command changed, in commit order, for all contracts.
//!
//! - A cursor is a commit number: "I have seen everything up to here". What follows is every change after it, once.
//! - All changes of one command have its commit number and come in one page, in the order they were made.
//! - The feed is kept by retention. A cursor that it cannot be followed from any more gets [`Followed::Gap`], never
//!   a silent skip.

/// What kind of thing changed. The numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum Subject {
    /// A cell.
    Cell = 1,
    /// A record.
    Record = 2,
    /// A message to a group. Its name is the group that sent it, its version the number of the command that did.
    Message = 3,
    /// A run. Its version is its last sequence.
    Run = 4,
}

impl Subject {
    const ALL: [Self; 4] = [Self::Cell, Self::Record, Self::Message, Self::Run];

    /// Its number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The one with this number.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|subject| subject.code() == code)
    }
}

/// Why it changed. The numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum Reason {
    /// It was written.
    Written = 1,
    /// It was deleted.
    Deleted = 2,
    /// Its time was over.
    Expired = 3,
    /// A worker took it.
    Claimed = 4,
    /// Its worker gave it back.
    Released = 5,
    /// Its worker did not come back in time.
    Rescued = 6,
    /// It reached a terminal state.
    Finished = 7,
    /// Its attempts are used up.
    Exhausted = 8,
    /// The message was applied in its target.
    Delivered = 9,
    /// The target refused the message, which is gone.
    Refused = 10,
    /// The session that held it, or with which it was to end, has ended.
    SessionEnded = 11,
    /// Its attempt failed, and there will be another.
    Failed = 12,
}

impl Reason {
    const ALL: [Self; 12] = [
        Self::Written,
        Self::Deleted,
        Self::Expired,
        Self::Claimed,
        Self::Released,
        Self::Rescued,
        Self::Finished,
        Self::Exhausted,
        Self::Delivered,
        Self::Refused,
        Self::SessionEnded,
        Self::Failed,
    ];

    /// Its number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The one with this number.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }
}

/// One thing that one command changed, in the branch that is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The number of the command; every change of it has the same.
    pub commit: u64,
    /// When it was changed, µs since 1970 in UTC.
    pub updated_at: u64,
    /// What kind of thing.
    pub subject: Subject,
    /// Why.
    pub reason: Reason,
    /// Its group, or none if that is its own name.
    pub group: Option<String>,
    /// Its name.
    pub name: String,
    /// Its version after the change.
    pub version: u64,
}

impl Change {
    /// A change of a thing that is its own group.
    pub fn new(commit: u64, updated_at: u64, subject: Subject, reason: Reason, name: String, version: u64) -> Self {
        Self { commit, updated_at, subject, reason, group: None, name, version }
    }

    /// The same in a group.
    pub fn in_group(self, group: Option<String>) -> Self {
        Self { group, ..self }
    }
}

/// A page of the feed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ChangesPage {
    /// What changed, in commit order. One command's changes are never split, so the last command may bring the page
    /// above its limit.
    pub changes: Vec<Change>,
    /// The cursor to go on after. It moves over what is filtered out too, so it may move while the page is empty.
    pub next: u64,
    /// Whether there was more to look at when the page was read. If not, `next` is the newest commit of that moment.
    pub more: bool,
}

impl ChangesPage {
    /// No changes, and nothing looked at after `cursor`.
    pub fn begin(cursor: u64) -> Self {
        Self { changes: Vec::new(), next: cursor, more: false }
    }
}

/// What following the feed gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followed {
    /// Everything after the cursor, up to the page's own.
    Page(ChangesPage),
    /// The feed cannot say what changed after the cursor: retention has removed some of it, or the cursor is ahead of
    /// the feed, so it belongs to another history. Begin again with a view.
    Gap {
        /// The oldest cursor that can be followed from.
        oldest: u64,
        /// The newest one: the number of the last command.
        newest: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_names_what_it_was_made_from() {
        for subject in Subject::ALL {
            assert_eq!(Subject::from_code(subject.code()), Some(subject));
        }
        for reason in Reason::ALL {
            assert_eq!(Reason::from_code(reason.code()), Some(reason));
        }
        assert_eq!((Subject::from_code(0), Reason::from_code(0)), (None, None));
    }
}
