//! The bounded walk: discards expired history, removes the remains of deleted branches and of empty queues, and fills new
//! indexes.
//!
//! The node looks for what is due in a view, at its own pace, and proposes steps that name them; nothing is journaled
//! while nothing is due. Each step checks again when it is applied, so an outdated step does nothing.
//!
//! Touches: what the contracts say of their things, and deleted branches. Keeps: K3, K8 (a name is removed with its thing), R7, and K6
//! (a branch is forgotten only when it has no rows left).

mod branch;
mod find;
pub(crate) mod finding;

use kv::Staging;
use session::{Call, Halt, Pushes};

use crate::answer::Answer;
use crate::contract::Contract;
use crate::contracts::with_contracts;
use crate::machine::Contracts;

pub use crate::command::trim_step::{TRIM_STEPS_MAX, TrimStep};
pub use find::{find_due, find_in_catalogue};

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

macro_rules! dispatch {
    ($($folder:ident: $contract:ident { $kind:ident, $act:ident, $guard:ident, $item:ident, $trim:ident })*) => {
        fn apply_step(
            contracts: &mut Contracts,
            state: &mut Staging,
            call: &Call<'_>,
            pushes: &mut Pushes,
            step: &TrimStep,
        ) -> Result<(), Halt> {
            match step {
                $(TrimStep::$kind(step) => {
                    let mut applying = contracts.applying(state, call, pushes);
                    if let Some(filled) = crate::$folder::contract::$contract::trim(&mut applying, step)? {
                        contracts.catalogue.finish_filling(&contracts.keys, state, filled);
                    }
                })*
                TrimStep::Erase { bucket, space, branch } => {
                    branch::erase_some(&mut contracts.applying(state, call, pushes), *bucket, *space, *branch)?;
                }
                TrimStep::Branch { space, branch } => {
                    if branch::erase_rest(&mut contracts.applying(state, call, pushes), *space, *branch)? {
                        contracts.catalogue.forget_branch(&contracts.keys, state, *space, *branch);
                    }
                }
            }
            Ok(())
        }
    };
}

with_contracts!(dispatch);
