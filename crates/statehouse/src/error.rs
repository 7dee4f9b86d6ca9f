//! Turns what the layers below say into the one error that users see.

use std::fmt::Debug;

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
        Halt::MachinePanicked { .. } => Failure::not_applied(FailureKind::Halted, halt.to_string()).into(),
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

/// An entry could not be applied. What was proposed with it is in the journal, and will be looked at again.
pub(crate) fn from_halted_entry(index: u64, halt: &Halt) -> Error {
    match from_halt(halt) {
        Error::Failed(failure) => {
            let message = format!("entry {index} of the journal cannot be applied: {}", failure.message);
            Failure { message, ..failure }.into()
        }
        other => other,
    }
}

/// Applying an entry panicked.
pub(crate) fn from_panic(index: u64, message: &str) -> Error {
    let message = format!(
        "entry {index} of the journal cannot be applied: the store panicked: {message}. Nothing after it was applied, and \
         nothing more is written. It is a defect of this release: keep a copy of the directory and report it; then open the \
         directory with a release that repairs it, or restore a backup"
    );
    Failure::not_applied(FailureKind::Halted, message).into()
}

/// A command was answered with something that no such command gives. It may have been executed.
pub(crate) fn unexpected_answer(command: &str, answer: &impl Debug) -> Error {
    let message = format!("{command} was answered with {answer:?}; that is a defect: report it");
    Failure::unknown(FailureKind::Bug, message).into()
}

pub(crate) fn cannot_open(message: impl Into<String>) -> Error {
    Failure::not_applied(FailureKind::CannotOpen, message).into()
}
