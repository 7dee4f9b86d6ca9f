//! Runs in a transaction: operations on them, and conditions on them.

use statehouse::Commit;
use statehouse::runs::{AppendOptions, RunDone};
use wire::contracts::Done;
use wire::runs::{RunGuard, RunOperation};
use wire::transactions::WrittenOperation;

use super::event_of;
use crate::api::Refusal;
use crate::api::transactions::{CommitBuilder, Parts};

/// Adds an operation on a run to a commit. Returns the operations of the commit that it became.
pub(in crate::api) fn add_operation(
    builder: &mut CommitBuilder<'_>,
    operation: RunOperation,
) -> Result<Parts, Refusal> {
    let RunOperation::Append(of) = operation;
    let event = event_of(&of.run, &of.event.0, None)?;
    let mut options = AppendOptions::run_type(of.run_type.unwrap_or_default());
    if let Some(last) = of.expect {
        options = options.expecting(last);
    }
    builder.change(|commit| commit.append(&of.run, &event, options));
    Ok(Parts::ONE)
}

/// Shows a result that only operations on runs have.
pub(in crate::api) fn done(done: &RunDone) -> Done {
    match done {
        RunDone::Appended(result) => Done::Appended((*result).into()),
        other => Done::Written(WrittenOperation::at(other.version().unwrap_or_default())),
    }
}

/// Adds the condition on a run.
pub(in crate::api) fn add_guard(commit: Commit, guard: RunGuard) -> Commit {
    let RunGuard { run, last } = guard;
    match (run, last) {
        (Some(run), Some(last)) => commit.if_run_last(&run, last),
        _ => commit,
    }
}
