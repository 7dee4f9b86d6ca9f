//! Why a call on a run is refused.

use std::borrow::Cow;

use crate::facts::{Class, Facts, Members, members};

/// A deterministic "no" about a run. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunRejection {
    /// The event is invalid in every store.
    #[error("invalid event: {what}: {reason} [SH-3001]")]
    InvalidEvent {
        /// The member.
        what: Cow<'static, str>,
        /// What is wrong with the member.
        reason: Cow<'static, str>,
    },
    /// There is no such run.
    #[error("there is no run {run:?} [SH-3002]")]
    NoSuchRun {
        /// Its name.
        run: String,
    },
    /// The run is not at the expected sequence.
    #[error("run {run:?} is at sequence {last}, not at {expected} [SH-3003]")]
    SequenceConflict {
        /// The run.
        run: String,
        /// The expected sequence.
        expected: u64,
        /// Its last sequence.
        last: u64,
    },
    /// The key or the id was used before, and the append asked to be refused in that case; or the id is that which the store
    /// gives to an event to come.
    #[error("this idempotency key or id belongs to event {seq} of run {run:?} [SH-3004]")]
    KeyReused {
        /// The run.
        run: String,
        /// The sequence of the event that has it, or will have it.
        seq: u64,
    },
    /// The run is closed to further events.
    #[error("run {run:?} is closed at sequence {last} [SH-3005]")]
    Closed {
        /// The run.
        run: String,
        /// Its last sequence.
        last: u64,
    },
    /// The run was deleted. Its name is never reused.
    #[error("run {run:?} was deleted at sequence {last}; its name is never reused [SH-3006]")]
    Archived {
        /// The run.
        run: String,
        /// Its last sequence.
        last: u64,
    },
}

impl RunRejection {
    /// The code of a run that does not exist.
    pub const NO_SUCH_THING: Option<&'static str> = Some("SH-3002");

    /// What everybody must know of it.
    pub fn facts(&self) -> Facts {
        match self {
            Self::InvalidEvent { .. } => Facts::of("SH-3001", Class::Invalid),
            Self::NoSuchRun { .. } => Facts::of("SH-3002", Class::NotFound),
            Self::SequenceConflict { .. } => Facts::retryable("SH-3003", Class::Conflict),
            Self::KeyReused { .. } => Facts::of("SH-3004", Class::Unprocessable),
            Self::Closed { .. } => Facts::of("SH-3005", Class::Conflict),
            Self::Archived { .. } => Facts::of("SH-3006", Class::Gone),
        }
    }

    /// What a caller needs next, as members of JSON.
    pub fn members(&self) -> Members {
        match self {
            Self::InvalidEvent { what, reason } => members!["what" => what, "reason" => reason],
            Self::NoSuchRun { run } => members!["run" => run],
            Self::SequenceConflict { run, expected, last } => {
                members!["run" => run, "expected" => expected, "last" => last]
            }
            Self::KeyReused { run, seq } => members!["run" => run, "seq" => seq],
            Self::Closed { run, last } | Self::Archived { run, last } => members!["run" => run, "last" => last],
        }
    }
}
