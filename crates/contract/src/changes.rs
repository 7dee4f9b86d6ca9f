//! The change feed: the changes of every applied command, in commit order, for all contracts.
//!
//! - A cursor is a commit number: "I have seen everything up to here". Reading returns every change after it, once.
//! - All changes of one command carry its commit number and arrive in one page, in order.
//! - Retention limits the feed. A cursor that can no longer be followed gets [`Followed::Gap`], never a silent skip.

use crate::with_contracts;

/// The stored number of [`Subject::Message`].
const MESSAGE: u8 = 3;

/// Generates [`Subject`]: a thing of each contract, and a message.
macro_rules! subject {
    ($($(#[doc = $says:literal])* $folder:ident: $thing:ident($rejection:ident))*) => {
        /// The kind of thing that changed. The numbers are stored.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum Subject {
            $(
                $(#[doc = $says])*
                $thing = crate::$folder::SUBJECT_CODE,
            )*
            /// A message to a group. Its name is the sending group, its version the number of the message in its bucket.
            Message = MESSAGE,
        }

        impl Subject {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$thing,)* Self::Message];

            /// Whether its changes are counted by their reasons, for metrics: only where a kind has more than two.
            pub fn is_counted_by_reason(self) -> bool {
                match self {
                    $(Self::$thing => crate::$folder::IS_COUNTED_BY_REASON,)*
                    Self::Message => true,
                }
            }
        }
    };
}

with_contracts!(subject);

impl Subject {
    /// The stored number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The kind with this number.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|subject| subject.code() == code)
    }
}

/// The reason for a change. The numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum Reason {
    /// It was written.
    Written = 1,
    /// It was deleted.
    Deleted = 2,
    /// It expired.
    Expired = 3,
    /// A worker claimed it.
    Claimed = 4,
    /// Its worker released it.
    Released = 5,
    /// Its lease ended, and the store took it back.
    Rescued = 6,
    /// It reached a terminal state.
    Finished = 7,
    /// Its attempts are used up.
    Exhausted = 8,
    /// The message was applied in its target.
    Delivered = 9,
    /// The target refused the message, which became a dead letter.
    Refused = 10,
    /// The session that held it, or that it was tied to, has ended.
    SessionEnded = 11,
    /// Its attempt failed, and another will follow.
    Failed = 12,
    /// Its dead letter was dropped: by a command, because its time was over, or with its branch.
    Dropped = 13,
    /// The target refused the message, and could not keep it: there are too many dead letters, or something is damaged.
    Lost = 14,
}

impl Reason {
    /// Every reason.
    pub const ALL: &[Self] = &[
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
        Self::Dropped,
        Self::Lost,
    ];

    /// The stored number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The reason with this number.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.code() == code)
    }
}

/// One change by one command, in the followed branch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The number of the command, shared by all of its changes.
    pub commit: u64,
    /// When it was changed, µs since 1970 in UTC.
    pub updated_at: u64,
    /// The kind of thing.
    pub subject: Subject,
    /// The reason.
    pub reason: Reason,
    /// Its group, or none if that is its own name.
    pub group: Option<String>,
    /// Its name.
    pub name: String,
    /// Its version after the change.
    pub version: u64,
}

impl Change {
    /// A change of a thing without a group.
    pub fn new(commit: u64, updated_at: u64, subject: Subject, reason: Reason, name: String, version: u64) -> Self {
        Self { commit, updated_at, subject, reason, group: None, name, version }
    }

    /// The same change in a group.
    pub fn in_group(self, group: Option<String>) -> Self {
        Self { group, ..self }
    }
}

/// A page of the feed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ChangesPage {
    /// The changes, in commit order. Changes of one command are never split, so the last command may push the page over
    /// its limit.
    pub changes: Vec<Change>,
    /// The cursor for the next page. It also advances over filtered changes, so it may move while the page is empty.
    pub next: u64,
    /// Whether there was more to read. If not, `next` was the newest commit at that moment.
    pub more: bool,
}

impl ChangesPage {
    /// A page without changes that ends at `cursor`.
    pub fn begin(cursor: u64) -> Self {
        Self { changes: Vec::new(), next: cursor, more: false }
    }
}

/// The result of following the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followed {
    /// Everything after the cursor, up to the page's own cursor.
    Page(ChangesPage),
    /// The feed cannot tell what changed after the cursor: retention has removed changes, they are damaged, or the
    /// cursor is ahead of the feed and belongs to another history. Start over with a view.
    Gap {
        /// The oldest cursor that can be followed.
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
        for subject in Subject::ALL.iter().copied() {
            assert_eq!(Subject::from_code(subject.code()), Some(subject));
        }
        for reason in Reason::ALL.iter().copied() {
            assert_eq!(Reason::from_code(reason.code()), Some(reason));
        }
        assert_eq!((Subject::from_code(0), Reason::from_code(0)), (None, None));
    }
}
