//! Records: named sets of fields that workers claim, move and finish.
//!
//! - [`row`]: a record as bytes. [`fields`]: the values of its fields. [`index`], [`counts`]: lookups without a scan.
//! - `write`: the one place that writes a record, with everything that follows from it.
//! - `state`: which moves between states are allowed. `patch`, `attempt`: the operations. `guard`: the conditions.
//! - [`queue`], [`lanes`]: ready records by queue; `lane_rows` writes them. `fill`: indexes that were declared later.
//! - `claims`: the next records of a queue. [`get`], [`scan`], [`oldest`]: reading.
//!
//! Keeps: R1 to R6 of `ARCHITECTURE.md`.

pub(crate) mod attempt;
pub mod claims;
pub mod counts;
pub mod fields;
pub(crate) mod fill;
pub mod get;
pub(crate) mod guard;
pub mod index;
pub(crate) mod lane_rows;
pub mod lanes;
pub mod oldest;
pub(crate) mod patch;
pub mod queue;
pub mod row;
pub mod scan;
pub(crate) mod state;
#[cfg(test)]
mod tests;
pub(crate) mod write;

use contract::Rejection;
use session::Halt;

use crate::answer::OpOutcome;
use crate::changes::Reason;
use crate::command::{RecordAct, TtlArgument};
use crate::context::Applying;
use crate::keys::ThingId;
use patch::no_such_record;

/// The outcome of an operation, or its rejection; or that the machine must halt.
type Outcome = Result<Result<OpOutcome, Rejection>, Halt>;

/// Applies an operation to a record. `fenced` means that the transaction belongs to the live attempt of this record.
pub(crate) fn act(applying: &mut Applying<'_>, record: &ThingId<'_>, act: &RecordAct<'_>, fenced: bool) -> Outcome {
    match act {
        RecordAct::Put { record_type, ttl, fields } => patch::put(applying, record, *record_type, *ttl, fields, fenced),
        RecordAct::Patch { must_exist, fields } => patch::patch(applying, record, *must_exist, fields),
        RecordAct::Swap { field, expected, new } => patch::swap(applying, record, field, *expected, *new),
        RecordAct::Increment { field, by } => patch::increment(applying, record, field, *by),
        RecordAct::Delete => delete(applying, record),
        RecordAct::Touch { ttl } => touch(applying, record, *ttl),
        RecordAct::Claim { worker, lease_us } => attempt::claim(applying, record, worker, *lease_us),
        RecordAct::Extend { attempt, lease_us } => attempt::extend(applying, record, *attempt, *lease_us),
        RecordAct::Release { attempt } => attempt::release(applying, record, *attempt),
        RecordAct::Complete { attempt, fields } => attempt::complete(applying, record, *attempt, fields),
        RecordAct::Fail { attempt, fields } => attempt::fail(applying, record, *attempt, fields),
    }
}

fn delete(applying: &mut Applying<'_>, record: &ThingId<'_>) -> Outcome {
    let opened = write::open(applying, record)?;
    let before = opened.row()?;
    if before.numbers.deleted {
        return Ok(Ok(OpOutcome::Nothing));
    }
    Ok(Ok(OpOutcome::Written(write::remove(applying, record, &before, Reason::Deleted)?)))
}

/// Sets the time to live of the record. `Persist` here means forever, whatever its type says.
fn touch(applying: &mut Applying<'_>, record: &ThingId<'_>, ttl: TtlArgument) -> Outcome {
    let opened = write::open(applying, record)?;
    let before = opened.row()?;
    if before.numbers.deleted {
        return Ok(Err(no_such_record(record)));
    }
    let mut after = write::successor(applying, &before);
    if let Err(rejection) = patch::set_ttl(applying, &mut after, None, ttl, true) {
        return Ok(Err(rejection));
    }
    Ok(Ok(OpOutcome::Written(write::store(applying, record, &before, after, Reason::Written)?)))
}
