//! Why the journal refused something, or stopped.

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
    /// There is no space for another segment. Nothing was written, and the journal goes on.
    #[error("the journal has no room for more entries: {reason}; nothing was written, free space and retry")]
    NoSpace {
        /// The reason given by the system.
        reason: String,
    },
    /// Somebody else has the directory open.
    #[error("the journal in {path} is open elsewhere")]
    Locked {
        /// The directory.
        path: String,
    },
}

impl JournalError {
    pub(crate) fn io(action: &'static str, reason: impl ToString) -> Self {
        Self::Io { action, reason: reason.to_string() }
    }

    pub(crate) fn no_space(error: &std::io::Error) -> Self {
        Self::NoSpace { reason: error.to_string() }
    }

    pub(crate) fn damaged(place: impl ToString, what: impl ToString) -> Self {
        Self::Damaged { place: place.to_string(), what: what.to_string() }
    }
}
