//! Runs in a transaction: operations on them, and conditions on them.

use contract::access::{Area, Verb};
use statehouse::Commit;
use statehouse::runs::{AppendOptions, RunDone};
use wire::contracts::Done;
use wire::runs::{RunAppend, RunGuard, RunOperation};
use wire::transactions::WrittenOperation;

use super::event_of;
use crate::access::Needs;
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

/// Collects what an operation on a run of a group needs. The answer does not show what is stored, and an event is only ever added: an
/// expected sequence makes it no other verb.
pub(in crate::api) fn operation_needs<'request>(
    operation: &'request RunOperation,
    group: &'request str,
    needs: &mut Needs<'request>,
) {
    let RunOperation::Append(RunAppend { run, event: _, expect: _, run_type: _ }) = operation;
    needs.thing(Verb::Append, Area::Run, Some(group), run);
}

/// Collects what the condition on a run of a group needs.
pub(in crate::api) fn guard_needs<'request>(
    guard: &'request RunGuard,
    group: &'request str,
    needs: &mut Needs<'request>,
) {
    let RunGuard { run, last: _ } = guard;
    if let Some(run) = run {
        needs.thing(Verb::Read, Area::Run, Some(group), run);
    }
}
