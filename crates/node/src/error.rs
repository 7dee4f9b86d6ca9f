//! Turns errors of the layers below into the one error that users see.

use std::fmt::Debug;

use contract::{Error, Failure, FailureKind, Rejection};
use journal::{JournalError, QueueFull};
use kernel::keys::readable::describe_range_by_numbers;
use kv::KvError;
use session::Halt;

/// The store below failed.
pub fn from_kv(error: &KvError) -> Error {
    match error {
        KvError::Damaged(damaged) => {
            let words = damaged.words.clone();
            let (from, to) = words.unwrap_or_else(|| describe_range_by_numbers(&damaged.range));
            Rejection::Damaged { from, to }.into()
        }
        KvError::ViewEnded { .. } => {
            let message = format!("{error}; start again, and delete something or make room");
            Failure::not_applied(FailureKind::DiskLow, message).into()
        }
        KvError::Corrupt { .. } => Failure::not_applied(FailureKind::Corrupt, error.to_string()).into(),
        KvError::NoSpace { .. } => Failure::not_applied(
            FailureKind::DiskFull,
            format!(
                "the disk is full; nothing acknowledged is lost, and the store goes on once there is space: {error}"
            ),
        )
        .into(),
        KvError::Closed => Failure::not_applied(FailureKind::Closed, error.to_string()).into(),
        _ => stopped(error.to_string()),
    }
}

/// The kernel cannot go on.
pub fn from_halt(halt: &Halt) -> Error {
    match halt {
        Halt::Store(error) => from_kv(error),
        Halt::MachineMissing { .. } => cannot_open(halt.to_string()),
        Halt::MachinePanicked { .. } => Failure::not_applied(FailureKind::Halted, halt.to_string()).into(),
        other => Failure::not_applied(FailureKind::Corrupt, other.to_string()).into(),
    }
}

pub(crate) fn from_journal(error: &JournalError) -> Error {
    match error {
        JournalError::Deposed { .. }
        | JournalError::Unanswered { .. }
        | JournalError::TailLost { .. }
        | JournalError::OtherHistory { .. } => Failure::not_applied(FailureKind::NotOwner, error.to_string()).into(),
        JournalError::Damaged { .. } => Failure::not_applied(FailureKind::Corrupt, error.to_string()).into(),
        JournalError::Locked { .. } => Failure::not_applied(FailureKind::InUse, error.to_string()).into(),
        JournalError::NoSpace { .. } => Failure::not_applied(FailureKind::DiskLow, error.to_string()).into(),
        _ => stopped(error.to_string()),
    }
}

/// A disk failure, in the words of the layer below; a full disk is reported in our own words, because people can fix
/// it.
pub fn stopped(reason: String) -> Error {
    let full = ["No space left on device", "os error 28", "StorageFull"];
    match full.iter().any(|said| reason.contains(said)) {
        true => Failure::not_applied(
            FailureKind::DiskFull,
            "the disk is full: the store has stopped, and nothing acknowledged is lost; free space, then open it again",
        )
        .into(),
        false => Failure::not_applied(FailureKind::Stopped, reason).into(),
    }
}

pub(crate) fn from_full_queue(full: QueueFull) -> Error {
    let kind = if full == QueueFull::Closed { FailureKind::Closed } else { FailureKind::Busy };
    Failure::not_applied(kind, full.to_string()).into()
}

/// An entry could not be applied. Commands proposed with it are in the journal, and will be tried again.
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
         nothing more is written. This is a bug in this release: copy the directory and report it; then open the \
         directory with a release that fixes it, or restore a backup"
    );
    Failure::not_applied(FailureKind::Halted, message).into()
}

/// A command got an answer that it never produces. It may have been executed.
pub fn unexpected_answer(command: &str, answer: &impl Debug) -> Error {
    let message = format!("{command} was answered with {answer:?}; this is a bug: report it");
    Failure::unknown(FailureKind::Bug, message).into()
}

pub(crate) fn cannot_open(message: impl Into<String>) -> Error {
    Failure::not_applied(FailureKind::CannotOpen, message).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_whatever_the_layer_below_says() {
        let no_space = std::io::Error::from_raw_os_error(28);
        let journal = JournalError::Io { action: "write an entry", reason: no_space.to_string() };
        let poisoned = JournalError::Poisoned { first: journal.to_string() };
        let store = KvError::Io { action: "write a run", reason: format!("/data/store: {no_space}") };
        for error in [from_journal(&journal), from_journal(&poisoned), from_kv(&store)] {
            assert_eq!(error.code(), "SH-2021");
            let said = error.to_string();
            assert!(said.contains("the disk is full") && !said.contains("os error"), "{said}");
        }
        let refused = from_journal(&JournalError::NoSpace { reason: no_space.to_string() });
        assert_eq!((refused.code(), refused.retryable()), ("SH-2015", true), "the store goes on");
        let broken = JournalError::Io { action: "append", reason: "Input/output error (os error 5)".into() };
        assert_eq!(from_journal(&broken).code(), "SH-2003");
    }
}
