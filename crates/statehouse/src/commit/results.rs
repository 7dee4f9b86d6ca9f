//! The results of a commit's operations.

use std::time::Duration;

use contract::runs::AppendResult;
use contract::{Error, Written};
use kernel::{Answer, OpOutcome};

use node::error::unexpected_answer;

/// A committed transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Committed {
    /// Its commit number; for one that wrote nothing, that of the view it read.
    pub commit: u64,
}

/// The result of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Done {
    /// The cell or record was written, or deleted, and has this version.
    Written {
        /// The version.
        version: u64,
    },
    /// The cell already existed, at this version, and was left unchanged.
    Existing {
        /// The version.
        version: u64,
    },
    /// There was nothing to delete.
    Nothing,
    /// The field was counted.
    Counted {
        /// The record's version.
        version: u64,
        /// The new value of the field.
        value: i64,
    },
    /// The attempt failed, and the record will be tried again.
    Retried {
        /// The record's version.
        version: u64,
        /// After this pause.
        pause: Duration,
    },
    /// The attempt failed, and the record's attempts are used up.
    Exhausted {
        /// The record's version.
        version: u64,
    },
    /// The event is in the run.
    Appended(AppendResult),
    /// The message or the push is on its way.
    Sent,
}

/// The commit.
pub(crate) fn committed(answer: Answer) -> Result<Committed, Error> {
    match answer {
        Answer::Done { commit, .. } => Ok(Committed { commit }),
        Answer::Rejected(rejection) => Err(rejection.into()),
    }
}

pub(super) fn each(answer: Answer) -> Result<(Committed, Vec<Done>), Error> {
    match answer {
        Answer::Done { commit, outcomes } => {
            let done: Result<_, Error> = outcomes.into_iter().map(done).collect();
            Ok((Committed { commit }, done?))
        }
        Answer::Rejected(rejection) => Err(rejection.into()),
    }
}

fn done(outcome: OpOutcome) -> Result<Done, Error> {
    Ok(match outcome {
        OpOutcome::Written(version) => Done::Written { version },
        OpOutcome::Existing(version) => Done::Existing { version },
        OpOutcome::Nothing => Done::Nothing,
        OpOutcome::Counted { version, value } => Done::Counted { version, value },
        appended @ OpOutcome::Appended { .. } => Done::Appended(append_result(appended)?),
        OpOutcome::Retried { version, pause_us } => Done::Retried { version, pause: Duration::from_micros(pause_us) },
        OpOutcome::Exhausted { version } => Done::Exhausted { version },
        OpOutcome::Sent => Done::Sent,
        other => return Err(unexpected_answer("an operation of a commit", &other)),
    })
}

/// The commit and the outcome of the only operation.
pub(crate) fn outcome(answer: Answer) -> Result<(u64, OpOutcome), Error> {
    match answer {
        Answer::Rejected(rejection) => Err(rejection.into()),
        Answer::Done { commit, outcomes } => Ok((commit, only(outcomes)?)),
    }
}

/// The outcome of the only operation.
pub(crate) fn only(mut outcomes: Vec<OpOutcome>) -> Result<OpOutcome, Error> {
    match (outcomes.pop(), outcomes.is_empty()) {
        (Some(outcome), true) => Ok(outcome),
        other => Err(unexpected_answer("one operation", &other)),
    }
}

/// What an append has done.
pub(crate) fn append_result(outcome: OpOutcome) -> Result<AppendResult, Error> {
    match outcome {
        OpOutcome::Appended { seq, idempotent, payload_mismatch } => {
            Ok(AppendResult { run_seq: seq, idempotent, persisted: !idempotent, payload_mismatch })
        }
        other => Err(unexpected_answer("an append", &other)),
    }
}

/// The commit and the version of what the only operation wrote.
pub(crate) fn written(answer: Answer) -> Result<Written, Error> {
    match outcome(answer)? {
        (commit, OpOutcome::Written(version)) => Ok(Written { version, commit }),
        other => Err(unexpected_answer("a write", &other)),
    }
}
