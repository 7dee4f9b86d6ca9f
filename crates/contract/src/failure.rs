//! What the environment does to a call, and what is known of its write then.

/// What is known of a write that was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It did not happen and will not.
    NotApplied,
    /// It may have happened, or happen yet.
    Unknown,
}

/// The environment failed a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} [{}]", .kind.code())]
pub struct Failure {
    /// What to do about it.
    pub kind: FailureKind,
    /// Whether the write may have happened.
    pub outcome: Outcome,
    /// For a person.
    pub message: String,
}

/// What to do about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// A queue or the journal is at its bound: try again shortly.
    Busy,
    /// The store was closed.
    Closed,
    /// The store stopped at a disk failure: reopen it, and look at the disk.
    Stopped,
    /// Stored bytes are damaged: restore from a copy.
    Corrupt,
    /// The disk has less free than is kept free: make room. What makes room is not refused.
    DiskLow,
    /// The directory cannot be opened: it is not a store, or not one of this release, or the system refuses.
    CannotOpen,
    /// An entry of the journal cannot be applied: the message names it. Nothing after it is applied or written.
    Halted,
    /// Something happened that should be impossible: report it.
    Bug,
    /// The directory is open already, here or in another process.
    InUse,
    /// The disk is full, and the store stopped at that: make room, then reopen it.
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
            FailureKind::DiskLow => "SH-2015",
            FailureKind::InUse => "SH-2020",
            FailureKind::DiskFull => "SH-2021",
        }
    }
}

impl Failure {
    /// A failure of a call whose write did not happen.
    pub fn not_applied(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, outcome: Outcome::NotApplied, message: message.into() }
    }

    /// A failure of a call whose write may have happened.
    pub fn unknown(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, outcome: Outcome::Unknown, message: message.into() }
    }
}
