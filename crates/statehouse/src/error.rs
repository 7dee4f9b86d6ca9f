//! Turns what the layers below say into the one error that users see.

use std::fmt::Debug;

use contract::{Error, Failure, FailureKind};
use journal::{JournalError, QueueFull};
use kv::KvError;
use session::Halt;

pub(crate) fn from_kv(error: &KvError) -> Error {
    match error {
        KvError::Corrupt { .. } => Failure::not_applied(FailureKind::Corrupt, error.to_string()).into(),
        KvError::Closed => Failure::not_applied(FailureKind::Closed, error.to_string()).into(),
        _ => stopped(error.to_string()),
    }
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
    match error {
        JournalError::Damaged { .. } => Failure::not_applied(FailureKind::Corrupt, error.to_string()).into(),
        JournalError::Locked { .. } => Failure::not_applied(FailureKind::InUse, error.to_string()).into(),
        _ => stopped(error.to_string()),
    }
}

/// What a disk did. The layers below say it in their own words; one that is full is said in ours, since it is the one that people can help.
pub(crate) fn stopped(reason: String) -> Error {
    let full = ["nospace", "No space left on device", "os error 28", "StorageFull"];
    match full.iter().any(|said| reason.contains(said)) {
        true => Failure::not_applied(
            FailureKind::DiskFull,
            "the disk is full: the store has stopped, and nothing that was acknowledged is lost; make room, then open it again",
        )
        .into(),
        false => Failure::not_applied(FailureKind::Stopped, reason).into(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_whatever_the_layer_below_says() {
        let engine = "TryAgain(\"Failed to write logbatch, exceed MAX_WRITE_ATTEMPT: (2), err: I/O Error: nospace\")";
        let journal = JournalError::Io { action: "append", reason: engine.into() };
        let poisoned = JournalError::Poisoned { first: journal.to_string() };
        let no_space = std::io::Error::from_raw_os_error(28);
        let store = KvError::Io { action: "write a run", reason: format!("/data/store: {no_space}") };
        for error in [from_journal(&journal), from_journal(&poisoned), from_kv(&store)] {
            assert_eq!(error.code(), "SH-2021");
            let said = error.to_string();
            assert!(said.contains("the disk is full") && !said.contains("MAX_WRITE_ATTEMPT"), "{said}");
        }
        let broken = JournalError::Io { action: "append", reason: "Input/output error (os error 5)".into() };
        assert_eq!(from_journal(&broken).code(), "SH-2003");
    }
}
