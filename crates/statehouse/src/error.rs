//! Turns what the layers below say into the one error that users see.

use contract::{Error, Failure, FailureKind};
use journal::{JournalError, QueueFull};
use kv::KvError;
use session::Halt;

pub(crate) fn from_kv(error: &KvError) -> Error {
    let kind = match error {
        KvError::Corrupt { .. } => FailureKind::Corrupt,
        KvError::Closed => FailureKind::Closed,
        _ => FailureKind::Stopped,
    };
    Failure::not_applied(kind, error.to_string()).into()
}

pub(crate) fn from_halt(halt: &Halt) -> Error {
    match halt {
        Halt::Store(error) => from_kv(error),
        Halt::MachineMissing { .. } => cannot_open(halt.to_string()),
        other => Failure::not_applied(FailureKind::Corrupt, other.to_string()).into(),
    }
}

pub(crate) fn from_journal(error: &JournalError) -> Error {
    let kind = match error {
        JournalError::Damaged { .. } => FailureKind::Corrupt,
        JournalError::Locked { .. } => FailureKind::CannotOpen,
        _ => FailureKind::Stopped,
    };
    Failure::not_applied(kind, error.to_string()).into()
}

pub(crate) fn from_full_queue(full: QueueFull) -> Error {
    let kind = if full == QueueFull::Closed { FailureKind::Closed } else { FailureKind::Busy };
    Failure::not_applied(kind, full.to_string()).into()
}

pub(crate) fn cannot_open(message: impl Into<String>) -> Error {
    Failure::not_applied(FailureKind::CannotOpen, message).into()
}
