//! The fence of a transaction.

use contract::Rejection;
use session::Halt;

use super::state;
use super::write::open;
use crate::context::Applying;
use crate::transact::scope::Scope;

/// The attempt that a transaction belongs to must be the live one.
pub(super) fn check_fence(applying: &mut Applying<'_>, scope: &Scope<'_>) -> Result<Result<(), Rejection>, Halt> {
    // Left by an earlier transaction of the same tick, so it may be outdated.
    applying.fenced_row = None;
    let Some(fence) = scope.fence.filter(|_| !applying.fence_holds) else {
        return Ok(Ok(()));
    };
    #[cfg(feature = "canary")]
    if crate::canary::fences_are_skipped() {
        return Ok(Ok(()));
    }
    let record = match scope.thing(fence.record) {
        Ok(record) => record,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let opened = open(applying, &record)?;
    let row = opened.row()?;
    let checked = state::check_fence(&record, &row, applying.declared(&record, &row), fence.attempt);
    drop(row);
    applying.fenced_row = opened.into_bytes().map(|bytes| (applying.keys.record(&record), bytes));
    Ok(checked)
}
