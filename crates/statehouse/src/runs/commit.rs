//! Runs in a commit: an appended event, and its conditions.

use contract::runs::AppendResult;
use contract::{Error, names};
use kernel::{Duplicates, Guard, Op, OpOutcome, RunGuard};

use node::error::unexpected_answer;

use super::{AppendOptions, NewEvent, append_act, check_run_type};
use crate::commit::{Commit, OwnGuard, OwnOp};

pub(super) enum OwnRunGuard {
    LastIs(String, u64),
}

impl OwnGuard for OwnRunGuard {
    fn check(&self) -> Result<(), Error> {
        let Self::LastIs(run, _) = self;
        Ok(names::check_run(run)?)
    }

    fn guard(&self) -> Guard<'_> {
        let Self::LastIs(run, sequence) = self;
        Guard::Run(RunGuard::LastIs(run, *sequence))
    }
}

pub(super) struct OwnAppend {
    pub(super) run: String,
    pub(super) event: NewEvent,
    pub(super) options: AppendOptions,
}

impl OwnOp for OwnAppend {
    fn check(&self) -> Result<(), Error> {
        names::check_run(&self.run)?;
        self.event.check()?;
        Ok(check_run_type(&self.options.run_type)?)
    }

    fn op(&self) -> Op<'_> {
        let options = &self.options;
        Op::Run(&self.run, append_act(&self.event, options.expected_last, Duplicates::Refuse, &options.run_type))
    }
}

/// The result of an operation on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunDone {
    /// The event is in the run.
    Appended(AppendResult),
}

impl RunDone {
    /// A run has a last sequence and no version.
    pub fn version(&self) -> Option<u64> {
        None
    }
}

/// The result of an operation, if only runs have such results.
pub(crate) fn done(outcome: &OpOutcome) -> Option<RunDone> {
    appended(outcome).map(RunDone::Appended)
}

fn appended(outcome: &OpOutcome) -> Option<AppendResult> {
    match *outcome {
        OpOutcome::Appended { seq, idempotent, payload_mismatch } => {
            Some(AppendResult { run_seq: seq, idempotent, persisted: !idempotent, payload_mismatch })
        }
        _ => None,
    }
}

/// The result of an append.
pub(super) fn append_result(outcome: &OpOutcome) -> Result<AppendResult, Error> {
    appended(outcome).ok_or_else(|| unexpected_answer("an append", outcome))
}

impl Commit {
    /// Appends an event to a run of this group; with [`AppendOptions::expecting`], only if the run is at that sequence.
    /// A read model written in the same commit is therefore never behind, and never ahead. If the event is already
    /// there, the whole commit is refused as `KeyReused`: it was done before, and is not done a second time.
    pub fn append(self, run: &str, event: &NewEvent, options: AppendOptions) -> Self {
        self.with_op(OwnAppend { run: run.to_owned(), event: event.clone(), options })
    }

    /// Only if the last event of the run has this sequence; 0 expects that there was never such a run. A deleted run is
    /// refused, whatever is expected.
    pub fn if_run_last(self, run: &str, sequence: u64) -> Self {
        self.with_guard(OwnRunGuard::LastIs(run.to_owned(), sequence))
    }
}
