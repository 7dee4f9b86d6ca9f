//! Guards on records: conditions checked before a transaction is applied. An expired record does not exist.
//!
//! Touches: nothing.

use contract::Rejection;
use session::Halt;

use super::row::Row;
use super::write::{peek, read_floor};
use crate::cells::guard::Place;
use crate::command::Guard;
use crate::context::Applying;

/// Checks a guard on a record; none if it is about something else.
pub(crate) fn check(
    applying: &Applying<'_>,
    place: &Place<'_>,
    guard: &Guard<'_>,
) -> Result<Option<Result<(), Rejection>>, Halt> {
    let name = match guard {
        Guard::RecordAbsent(name)
        | Guard::RecordExists(name)
        | Guard::RecordVersionIs(name, _)
        | Guard::RecordFieldIs(name, _, _)
        | Guard::RecordStateIn(name, _)
        | Guard::RecordAttemptIs(name, _)
        | Guard::RecordUnchangedSince(name, _) => name,
        _ => return Ok(None),
    };
    let record = match place.thing(name) {
        Ok(record) => record,
        Err(rejection) => return Ok(Some(Err(rejection))),
    };
    let bytes = peek(applying, &record)?;
    let row = bytes.as_deref().map(Row::decode).transpose()?;
    let wall_us = applying.call.stamp.wall_us;
    let live = row.as_ref().filter(|row| row.numbers.exists_at(wall_us));
    let declared = live.and_then(|row| applying.declared(&record, row));
    let value = |field: &str| match live {
        None => Ok(None),
        Some(row) => applying.fields().value(&record, row, declared, field),
    };
    if let Guard::RecordFieldIs(_, field, wanted) = guard {
        let current = value(field)?;
        let (record, field) = ((*name).to_owned(), (*field).to_owned());
        let holds = current == wanted.map(crate::ValueRef::to_value);
        return Ok(Some(if holds { Ok(()) } else { Err(Rejection::FieldConflict { record, field, current }) }));
    }
    let holds = match guard {
        Guard::RecordAbsent(_) => live.is_none(),
        Guard::RecordExists(_) => live.is_some(),
        Guard::RecordVersionIs(_, version) => live.is_some_and(|row| row.numbers.version == *version),
        Guard::RecordStateIn(_, states) => match (live, declared) {
            (Some(row), Some(declared)) => states.contains(&declared.state_name(row.numbers.state)),
            _ => false,
        },
        Guard::RecordAttemptIs(_, attempt) => live.is_some_and(|row| row.numbers.attempt == *attempt),
        Guard::RecordUnchangedSince(_, commit) => {
            // An expired record has changed since, even if the expiry is not committed yet.
            match &row {
                Some(row) => row.numbers.commit <= *commit && !row.numbers.expired_at(wall_us),
                // One that was deleted since, and forgotten, may have been this one.
                None => read_floor(applying, record.bucket)?.commit <= *commit,
            }
        }
        _ => unreachable!("guards on records are listed above"),
    };
    let current = live.map(|row| row.numbers.version);
    Ok(Some(if holds { Ok(()) } else { Err(Rejection::RecordConflict { record: (*name).to_owned(), current }) }))
}
