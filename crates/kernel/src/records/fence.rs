//! The fences of a command: the attempts that it belongs to must be live.

use contract::Rejection;
use session::Halt;

use super::state;
use super::write::open;
use crate::context::Applying;
use crate::transact::scope::Scope;

/// The attempts that a command belongs to must be the live ones.
pub(super) fn check_fences(applying: &mut Applying<'_>, scope: &Scope<'_>) -> Result<Result<(), Rejection>, Halt> {
    // Left by an earlier transaction of the same tick, so it may be outdated.
    applying.fenced_row = None;
    if applying.fence_holds {
        return Ok(Ok(()));
    }
    #[cfg(feature = "canary")]
    if crate::canary::fences_are_skipped() {
        return Ok(Ok(()));
    }
    for fence in scope.fences {
        let record = match scope.thing(fence.record) {
            Ok(record) => record,
            Err(rejection) => return Ok(Err(rejection)),
        };
        let opened = open(applying, &record)?;
        let row = opened.row()?;
        let checked = state::check_fence(&record, &row, applying.declared(&record, &row), fence.attempt);
        drop(row);
        if let Err(rejection) = checked {
            return Ok(Err(rejection));
        }
        // For an operation on the record. Of several, the last is kept.
        applying.fenced_row = opened.into_bytes().map(|bytes| (applying.keys.record(&record), bytes));
    }
    Ok(Ok(()))
}
