//! Held records that only their holders write: those of guarded types, and owners of groups.
//!
//! Keeps: O2 (while an attempt holds a record of a guarded type, nobody else writes it, unless forced) and O3 (an owner is
//! claimed, extended and released, and nothing else).

use contract::guards::OWNER_RECORD;
use contract::records::types::TIMEOUT_AT;
use contract::{RecordRejection, RefusalReason, Rejection, Value};
use session::Halt;

use super::command::RecordAct;
use super::row::Row;
use super::write::peek;
use crate::context::Applying;
use crate::contract::Holding;
use crate::keys::ThingId;
use crate::transact::guarded::unfenced;
use crate::transact::scope::Scope;

/// Refuses what only the holder of a record may do. What names its attempt shows by itself that it may.
pub(super) fn check(
    applying: &Applying<'_>,
    scope: &Scope<'_>,
    record: &ThingId<'_>,
    act: &RecordAct<'_>,
    fenced: bool,
) -> Result<Result<(), Rejection>, Halt> {
    let names_its_attempt = match act {
        RecordAct::Claim { .. } | RecordAct::Extend { .. } | RecordAct::Release { .. } => return Ok(Ok(())),
        RecordAct::Complete { .. } | RecordAct::Fail { .. } => true,
        RecordAct::Put { .. }
        | RecordAct::Patch { .. }
        | RecordAct::Swap { .. }
        | RecordAct::Increment { .. }
        | RecordAct::Delete
        | RecordAct::Touch { .. } => false,
    };
    if record.name == OWNER_RECORD {
        let what = format!("a write to record {:?}", record.name);
        return Ok(Err(Rejection::InvalidDeclaration { what, reason: RefusalReason::OwnerIsClaimed }));
    }
    if names_its_attempt || fenced || scope.force || !scope.of_space.types.any_guarded() {
        return Ok(Ok(()));
    }
    #[cfg(feature = "canary")]
    if crate::canary::fences_are_skipped() {
        return Ok(Ok(()));
    }
    let Some(bytes) = peek(applying, record)? else {
        return Ok(Ok(()));
    };
    let row = Row::decode(&bytes)?;
    let guarded = applying.declared(record, &row).is_some_and(|declared| declared.definition.guarded);
    let stands = row.numbers.exists_at(applying.call.stamp.wall_us) && row.numbers.is_held();
    if !guarded || !stands {
        return Ok(Ok(()));
    }
    Ok(Err(unfenced("record", record.name, holding(applying, record, &row)?)))
}

/// Who holds a record, and until when.
pub(super) fn holding(applying: &Applying<'_>, record: &ThingId<'_>, row: &Row<'_>) -> Result<Option<Holding>, Halt> {
    let until = applying.fields().value(record, row, applying.declared(record, row), TIMEOUT_AT)?;
    Ok(match until {
        Some(Value::Integer(ms)) if row.numbers.is_held() => {
            Some(Holding { holder: row.worker.map(str::to_owned), until_ms: u64::try_from(ms).unwrap_or_default() })
        }
        _ => None,
    })
}

/// A claim of a record that another attempt holds.
pub(super) fn already_held(applying: &Applying<'_>, record: &ThingId<'_>, row: &Row<'_>) -> Result<Rejection, Halt> {
    let (holder, until_ms) = match holding(applying, record, row)? {
        Some(Holding { holder, until_ms }) => (holder, until_ms),
        None => (None, 0),
    };
    let (record, attempt) = (record.name.to_owned(), row.numbers.attempt);
    Ok(Rejection::Record(RecordRejection::Held { record, attempt, holder, until_ms }))
}
