//! Runs: append-only logs of events, with a projection in the same commit.
//!
//! - [`row`]: runs, events and steps as bytes.
//! - `append`: the one place that adds an event. `project`: its effect on the projection.
//! - `life`: closing, deleting and forking. `index`: runs by status, type and age.
//! - [`read`]: events and projections. [`list`]: lists.
//!
//! Keeps: L1 to L4 of `ARCHITECTURE.md`.

pub(crate) mod append;
pub(crate) mod index;
pub(crate) mod life;
pub mod list;
pub(crate) mod project;
pub mod read;
pub mod row;
#[cfg(test)]
mod tests;

use contract::Rejection;
use session::Halt;

use crate::answer::OpOutcome;
use crate::command::RunAct;
use crate::context::Applying;
use crate::keys::ThingId;

/// The outcome of an operation, or its rejection; or that the machine must halt.
type Outcome = Result<Result<OpOutcome, Rejection>, Halt>;

/// Does something to a run.
pub(crate) fn act(applying: &mut Applying<'_>, run: &ThingId<'_>, act: &RunAct<'_>) -> Outcome {
    match act {
        RunAct::Append(append) => append::append(applying, run, append),
        RunAct::Close => life::close(applying, run),
        RunAct::Delete => life::delete(applying, run),
        RunAct::Fork { from, at } => life::fork(applying, run, from, *at),
    }
}
