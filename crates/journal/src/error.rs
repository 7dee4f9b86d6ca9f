//! Why the journal refused something, or stopped.

use std::io;

use rustix::io::Errno;

use crate::frame::ShardId;
use crate::log::Position;

/// Why a journal cannot continue, or cannot be opened. Only [`NoSpace`](Self::NoSpace) can be retried in place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Bytes known to be durable are damaged or gone. Nothing was changed on disk.
    #[error(
        "the journal is damaged: {what} ({place}); nothing was changed, restore the file or the directory from a copy"
    )]
    Damaged {
        /// Which file, or which shard and index.
        place: String,
        /// The damage.
        what: String,
    },
    /// The disk failed. The data being written may or may not be there after a restart.
    #[error("the journal could not {action}: {reason}")]
    Io {
        /// The failed operation.
        action: &'static str,
        /// The reason given by the layer below.
        reason: String,
    },
    /// The journal stopped at an earlier failure.
    #[error("the journal accepts no more commands after an earlier failure: {first}")]
    Poisoned {
        /// The failure that came first.
        first: String,
    },
    /// There is no room for the entries. They are not in the journal and never will be, and the journal goes on.
    #[error("the journal has no room for more entries: {reason}; nothing was appended, free space and retry")]
    NoSpace {
        /// The reason given by the system.
        reason: String,
    },
    /// Somebody else has appended to the shard: the appender does not own it any more.
    #[error(
        "the journal of shard {shard} has another entry behind {after}: it has a new owner; nothing was appended, read \
         the entries behind it before the next append"
    )]
    Deposed {
        /// The shard.
        shard: ShardId,
        /// What the entry was to be behind.
        after: Position,
    },
    /// The answer to an append was lost: its entry may be in the log, or arrive later.
    #[error(
        "the journal of shard {shard} did not answer an append behind {after}: the entry may be there or arrive later; \
         read the entries behind {after} and append again, which shows which one is there"
    )]
    Unanswered {
        /// The shard.
        shard: ShardId,
        /// What the entry was to be behind.
        after: Position,
    },
    /// The log ends before an entry that it had called durable.
    #[error("the journal of shard {shard} has lost its end: entry {acknowledged} was durable, and it ends at {found}")]
    TailLost {
        /// The shard.
        shard: ShardId,
        /// What was durable.
        acknowledged: Position,
        /// The last entry that is there.
        found: Position,
    },
    /// The shard has another history than the appender: they do not continue the same entries.
    #[error(
        "the journal of shard {shard} has history {found:016x}, and the entry to append is of history {appended:016x}; \
         nothing was appended, stop this owner and open the shard from this journal or from an image of its history"
    )]
    OtherHistory {
        /// The shard.
        shard: ShardId,
        /// The history of its entries.
        found: u64,
        /// The history of the entry that was refused.
        appended: u64,
    },
    /// Somebody else has the directory open.
    #[error("the journal in {path} is open elsewhere")]
    Locked {
        /// The directory.
        path: String,
    },
}

impl JournalError {
    /// Whether an entry whose append failed like this may be in the log nevertheless (J7).
    pub fn may_be_appended(&self) -> bool {
        match self {
            Self::NoSpace { .. } | Self::Poisoned { .. } | Self::Locked { .. } => false,
            Self::Deposed { .. } | Self::TailLost { .. } | Self::OtherHistory { .. } => false,
            Self::Io { .. } | Self::Damaged { .. } | Self::Unanswered { .. } => true,
        }
    }

    pub(crate) fn io(action: &'static str, reason: impl ToString) -> Self {
        Self::Io { action, reason: reason.to_string() }
    }

    /// [`NoSpace`](Self::NoSpace) if the system lacks a resource that it may have again, else a failure of the disk.
    pub(crate) fn no_room_or_io(action: &'static str, error: &io::Error) -> Self {
        match is_lack_of_room(error) {
            true => Self::NoSpace { reason: error.to_string() },
            false => Self::io(action, error),
        }
    }

    pub(crate) fn damaged(place: impl ToString, what: impl ToString) -> Self {
        Self::Damaged { place: place.to_string(), what: what.to_string() }
    }
}

/// Whether a call failed because space, a quota, memory or descriptors are used up. Everything else is a disk that
/// fails.
pub(crate) fn is_lack_of_room(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, OutOfMemory, QuotaExceeded, StorageFull};
    let is_descriptor = |errno| [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error).contains(&errno);
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge | OutOfMemory)
        || error.raw_os_error().is_some_and(is_descriptor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_resources_that_may_be_there_again_are_a_lack_of_room() {
        for (errno, lacks) in [(28, true), (122, true), (24, true), (23, true), (12, true), (5, false), (30, false)] {
            assert_eq!(is_lack_of_room(&io::Error::from_raw_os_error(errno)), lacks, "{errno}");
        }
    }
}
