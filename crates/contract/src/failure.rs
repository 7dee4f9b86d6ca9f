//! Failures of the environment, and the fate of the write they interrupted.

/// The fate of an unacknowledged write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was not applied and will not be.
    NotApplied,
    /// It may have been applied, or may still be.
    Unknown,
}

/// The environment failed a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} [{}]", .kind.code())]
pub struct Failure {
    /// The kind of failure, which tells what to do.
    pub kind: FailureKind,
    /// Whether the write may have been applied.
    pub outcome: Outcome,
    /// A message for people.
    pub message: String,
}

/// The kind of a failure, which tells what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// A queue or the journal is full: retry shortly.
    Busy,
    /// The store was closed.
    Closed,
    /// The store stopped at a disk failure: check the disk, then reopen the store.
    Stopped,
    /// Stored bytes are damaged: restore a backup.
    Corrupt,
    /// Free disk space is below the reserve: free space. Operations that free space are not refused.
    DiskLow,
    /// The directory cannot be opened: it is not a store, is from another release, or the system denies access.
    CannotOpen,
    /// An entry of the journal cannot be applied: the message names it. Nothing after it is applied or written.
    Halted,
    /// Something happened that should be impossible: report it.
    Bug,
    /// The directory is already open, here or in another process.
    InUse,
    /// This node does not own the shard, or not any more: ask again, and its owner answers.
    NotOwner,
    /// The disk is full and the store has stopped: free space, then reopen the store.
    DiskFull,
}

impl FailureKind {
    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            FailureKind::Busy => "SH-2001",
            FailureKind::Closed => "SH-2002",
            FailureKind::Stopped => "SH-2003",
            FailureKind::Corrupt => "SH-2004",
            FailureKind::CannotOpen => "SH-2005",
            FailureKind::Bug => "SH-2006",
            FailureKind::Halted => "SH-2007",
            FailureKind::NotOwner => "SH-2008",
            FailureKind::DiskLow => "SH-2015",
            FailureKind::InUse => "SH-2020",
            FailureKind::DiskFull => "SH-2021",
        }
    }
}

impl Failure {
    /// A failure whose write was not applied.
    pub fn not_applied(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, outcome: Outcome::NotApplied, message: message.into() }
    }

    /// A failure whose write may have been applied.
    pub fn unknown(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, outcome: Outcome::Unknown, message: message.into() }
    }
}
