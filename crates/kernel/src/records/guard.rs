//! Guards on records: conditions checked before a transaction is applied. An expired record does not exist.
//!
//! Touches: nothing.

use contract::{RecordRejection, Rejection};
use session::Halt;

use super::command::RecordGuard;
use super::row::Row;
use super::write::{peek, read_floor};
use crate::command::act::Condition;
use crate::context::Applying;
use crate::transact::scope::Scope;
use crate::value::ValueRef;

/// Checks a guard.
pub(crate) fn check(
    applying: &Applying<'_>,
    scope: &Scope<'_>,
    guard: &RecordGuard<'_>,
) -> Result<Result<(), Rejection>, Halt> {
    let name = guard.name().unwrap_or_default();
    let record = match scope.thing(name) {
        Ok(record) => record,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let bytes = peek(applying, &record)?;
    let row = bytes.as_deref().map(Row::decode).transpose()?;
    let wall_us = applying.call.stamp.wall_us;
    let live = row.as_ref().filter(|row| row.numbers.exists_at(wall_us));
    let declared = live.and_then(|row| applying.declared(&record, row));
    let holds = match guard {
        RecordGuard::Absent(_) => live.is_none(),
        RecordGuard::Exists(_) => live.is_some(),
        RecordGuard::VersionIs(_, version) => live.is_some_and(|row| row.numbers.version == *version),
        RecordGuard::FieldIs(_, field, wanted) => {
            let current = match live {
                None => None,
                Some(row) => applying.fields().value(&record, row, declared, field)?,
            };
            if current != wanted.map(ValueRef::to_value) {
                let (record, field) = (name.to_owned(), (*field).to_owned());
                return Ok(Err(Rejection::Record(RecordRejection::FieldConflict { record, field, current })));
            }
            true
        }
        RecordGuard::StateIn(_, states) => match (live, declared) {
            (Some(row), Some(declared)) => states.contains(&declared.state_name(row.numbers.state)),
            _ => false,
        },
        RecordGuard::AttemptIs(_, attempt) => live.is_some_and(|row| row.numbers.attempt == *attempt),
        RecordGuard::UnchangedSince(_, commit) => {
            // An expired record has changed since, even if the expiry is not committed yet.
            match &row {
                Some(row) => row.numbers.commit <= *commit && !row.numbers.expired_at(wall_us),
                // One that was deleted since, and forgotten, may have been this one.
                None => read_floor(applying, record.bucket)?.commit <= *commit,
            }
        }
    };
    let current = live.map(|row| row.numbers.version);
    Ok(if holds {
        Ok(())
    } else {
        Err(Rejection::Record(RecordRejection::Conflict { record: name.to_owned(), current }))
    })
}
