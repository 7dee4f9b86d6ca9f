//! The bounded walk: discards expired history, removes the remains of deleted branches and of empty queues, and fills new
//! indexes.
//!
//! The node looks for due cells in a view, at its own pace, and proposes steps that name them; nothing is journaled
//! while nothing is due. Each step checks again when it is applied, so an outdated step does nothing.
//!
//! Touches: cells, deleted branches, lanes of empty queues. Keeps: K3, K8 (a name is removed with its thing), R7, and K6
//! (a branch is forgotten only when it has no rows left).

mod branch;
mod find;

use kv::Staging;
use session::{Call, Halt, Pushes};

use crate::answer::Answer;
use crate::cells;
use crate::cells::floor;
use crate::cells::retention::trim_cell;
use crate::context::Applying;
use crate::keys::ThingId;
use crate::keys::queues::QueueId;
use crate::machine::Contracts;
use crate::records::erase::{forget_record, remove_lanes};
use crate::records::fill::fill;

pub use crate::command::trim_step::TrimStep;
pub use find::{find_due, unfilled};

/// Steps in one command.
pub const TRIM_STEPS_MAX: usize = 256;

pub(crate) fn apply(
    contracts: &mut Contracts,
    state: &mut Staging,
    call: &Call<'_>,
    pushes: &mut Pushes,
    steps: &[TrimStep],
) -> Result<Answer, Halt> {
    for step in steps {
        contracts.applying(state, call, pushes).savepoint();
        let done = apply_step(contracts, state, call, pushes, step);
        // What cannot be read stays as it is; the other steps do not need it.
        let _ = contracts.applying(state, call, pushes).undo_if_damaged(done)?;
    }
    Ok(Answer::Done { commit: call.commit, outcomes: Vec::new() })
}

fn apply_step(
    contracts: &mut Contracts,
    state: &mut Staging,
    call: &Call<'_>,
    pushes: &mut Pushes,
    step: &TrimStep,
) -> Result<(), Halt> {
    match step {
        TrimStep::Cell(cell) => {
            trim_one(&mut contracts.applying(state, call, pushes), &cell.id())?;
        }
        TrimStep::ForgetCell(cell) => {
            floor::forget(&mut contracts.applying(state, call, pushes).cells(), &cell.id())?;
        }
        TrimStep::ForgetRecord(record) => {
            forget_record(&mut contracts.applying(state, call, pushes), &record.id())?;
        }
        TrimStep::Records { bucket, space, branch } => {
            branch::erase_some(&mut contracts.applying(state, call, pushes), *bucket, *space, *branch)?;
        }
        TrimStep::Branch { space, branch } => {
            if branch::erase_rest(state, contracts.keys, &contracts.catalogue, *space, *branch)? {
                contracts.catalogue.forget_branch(&contracts.keys, state, *space, *branch);
            }
        }
        TrimStep::Lanes { space, branch, queue, bucket } => {
            let queue = QueueId { space: *space, branch: *branch, name: queue };
            remove_lanes(&mut contracts.applying(state, call, pushes), queue, *bucket)?;
        }
        TrimStep::FillIndexes { space, record_type } => {
            if fill(&mut contracts.applying(state, call, pushes), *space, *record_type)? {
                contracts.catalogue.finish_filling(&contracts.keys, state, *space, *record_type);
            }
        }
    }
    Ok(())
}

fn trim_one(applying: &mut Applying<'_>, cell: &ThingId<'_>) -> Result<(), Halt> {
    let Ok(space) = applying.catalogue.space(cell.space) else {
        return Ok(());
    };
    if space.live_branch(cell.branch).is_err() {
        return cells::erase::remove_some(applying.state, applying.keys, cell);
    }
    let context = applying.cell_context(space);
    trim_cell(&mut applying.cells(), &context, cell)?;
    Ok(())
}
