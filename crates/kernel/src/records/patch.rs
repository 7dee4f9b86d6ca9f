//! Writes to a record's fields: put, patch, swap, increment.
//!
//! Touches: the record. A field that the store maintains for records of a type is not stored as a field: a write to the
//! state field is a move between states, one to `timeout_at` moves the lease.

use std::ops::RangeInclusive;

use contract::limits::WORKER_BYTES_MAX;
use contract::records::types::{CREATED_AT, StateKind, TIMEOUT_AT, UPDATED_AT, WORKER};
use contract::{RecordRejection, RefusalReason, Rejection, Value, WantedKind};
use session::Halt;

use super::fields::wrong_kind;
use super::row::{NO_STATE, Row};
use super::state::{By, give_back, move_to, wrong_state};
use super::write::{open, store, successor};
use crate::answer::OpOutcome;
use crate::catalogue::Declared;
use crate::catalogue::types::{OWNER_ID, micros};
use crate::changes::Reason;
use crate::context::Applying;
use crate::contract::Outcome;
use crate::keys::ThingId;
use crate::records::command::{FieldPatch, FieldValue, TtlArgument};
use crate::value::ValueRef;

/// The ends that a lease can have, in cluster time. 0 would be none.
const LEASES_US: RangeInclusive<i128> = 1..=u64::MAX as i128;

/// Replaces the record.
pub(crate) fn put(
    applying: &mut Applying<'_>,
    record: &ThingId<'_>,
    record_type: Option<&str>,
    ttl: TtlArgument,
    fields: &[FieldValue<'_>],
    fenced: bool,
) -> Outcome {
    let opened = open(applying, record)?;
    let before = opened.row()?;
    let declared = match type_for(applying, record, record_type) {
        Ok(declared) => declared,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let same_type = !before.numbers.deleted && before.numbers.record_type == declared.map_or(0, |found| found.id);
    if let Some(rejection) = refuse_to_replace(applying, record, &before, fenced, same_type) {
        return Ok(Err(rejection));
    }
    let mut after = successor(applying, &before);
    after.fields.clear();
    if !after.numbers.is_held() {
        // A name written by a caller is an ordinary field; the holder's name belongs to the store.
        after.worker = None;
    }
    if !same_type {
        assign_type(applying, &mut after, declared);
    }
    if let Err(rejection) = set_ttl(applying, &mut after, declared, ttl, !before.numbers.deleted) {
        return Ok(Err(rejection));
    }
    let patches = fields.iter().map(|(field, value)| (*field, Some(*value)));
    if let Err(rejection) = write_fields(applying, record, &mut after, declared, patches, By::Write) {
        return Ok(Err(rejection));
    }
    let reason = moved(applying, record, &before, &after);
    Ok(Ok(OpOutcome::Written(store(applying, record, &before, after, reason)?)))
}

/// Refuses to replace a record from outside while a worker holds it, or after it is finished.
fn refuse_to_replace(
    applying: &Applying<'_>,
    record: &ThingId<'_>,
    before: &Row<'_>,
    fenced: bool,
    same_type: bool,
) -> Option<Rejection> {
    let declared = applying.declared(record, before)?;
    let reason = match declared.kind(before.numbers.state) {
        _ if before.numbers.deleted => return None,
        StateKind::Ready => return None,
        StateKind::Held if fenced && same_type => return None,
        StateKind::Held if fenced => RefusalReason::HeldKeepsType,
        StateKind::Held => RefusalReason::HeldByWorker,
        StateKind::Terminal => RefusalReason::FinishedBeforePut,
    };
    Some(wrong_state(record, before, declared, reason))
}

/// Writes and removes fields.
pub(crate) fn patch(
    applying: &mut Applying<'_>,
    record: &ThingId<'_>,
    must_exist: bool,
    fields: &[FieldPatch<'_>],
) -> Outcome {
    let opened = open(applying, record)?;
    let before = opened.row()?;
    if before.numbers.deleted && must_exist {
        return Ok(Err(no_such_record(record)));
    }
    let mut after = successor(applying, &before);
    let declared = type_after(applying, record, &before, &mut after);
    if let Err(rejection) = write_fields(applying, record, &mut after, declared, fields.iter().copied(), By::Write) {
        return Ok(Err(rejection));
    }
    let reason = moved(applying, record, &before, &after);
    Ok(Ok(OpOutcome::Written(store(applying, record, &before, after, reason)?)))
}

/// Writes a field if it holds the expected value.
pub(crate) fn swap(
    applying: &mut Applying<'_>,
    record: &ThingId<'_>,
    field: &str,
    expected: Option<ValueRef<'_>>,
    new: Option<ValueRef<'_>>,
) -> Outcome {
    let opened = open(applying, record)?;
    let before = opened.row()?;
    let current = current(applying, record, &before, field)?;
    if current != expected.map(ValueRef::to_value) {
        let (record, field) = (record.name.to_owned(), field.to_owned());
        return Ok(Err(Rejection::Record(RecordRejection::FieldConflict { record, field, current })));
    }
    let mut after = successor(applying, &before);
    let declared = type_after(applying, record, &before, &mut after);
    let patches = std::iter::once((field, new));
    if let Err(rejection) = write_fields(applying, record, &mut after, declared, patches, By::Claim) {
        return Ok(Err(rejection));
    }
    let reason = moved(applying, record, &before, &after);
    Ok(Ok(OpOutcome::Written(store(applying, record, &before, after, reason)?)))
}

/// Adds to an integer field.
pub(crate) fn increment(applying: &mut Applying<'_>, record: &ThingId<'_>, field: &str, by: i64) -> Outcome {
    let opened = open(applying, record)?;
    let before = opened.row()?;
    let current = current(applying, record, &before, field)?;
    let current = match current {
        None => 0,
        Some(Value::Integer(integer)) => integer,
        Some(_) => return Ok(Err(wrong_kind(record, field, WantedKind::Integer))),
    };
    let mut after = successor(applying, &before);
    let declared = type_after(applying, record, &before, &mut after);
    let is_time = declared.is_some() && [CREATED_AT, UPDATED_AT].contains(&field);
    let is_lease = declared.is_some() && field == TIMEOUT_AT;
    // The store ignores such a write, so the sum would be lost.
    if is_time || is_lease && !after.numbers.is_held() {
        return Ok(Err(wrong_kind(record, field, WantedKind::Kept)));
    }
    let sum = current.checked_add(by);
    let Some(sum) = sum.filter(|sum| !is_lease || LEASES_US.contains(&lease_us(applying, *sum))) else {
        return Ok(Err(wrong_kind(record, field, WantedKind::Addable)));
    };
    let patches = std::iter::once((field, Some(ValueRef::Integer(sum))));
    if let Err(rejection) = write_fields(applying, record, &mut after, declared, patches, By::Write) {
        return Ok(Err(rejection));
    }
    let version = store(applying, record, &before, after, Reason::Written)?;
    Ok(Ok(OpOutcome::Counted { version, value: sum }))
}

/// The value of a field; a record that does not exist has none.
fn current(applying: &Applying<'_>, record: &ThingId<'_>, row: &Row<'_>, field: &str) -> Result<Option<Value>, Halt> {
    if row.numbers.deleted {
        return Ok(None);
    }
    applying.fields().value(record, row, applying.declared(record, row), field)
}

/// The type of a new record, or the one that it has.
fn type_after<'entry>(
    applying: &Applying<'entry>,
    record: &ThingId<'_>,
    before: &Row<'_>,
    after: &mut Row<'_>,
) -> Option<&'entry Declared> {
    if !before.numbers.deleted {
        return applying.declared(record, before);
    }
    let declared = type_for(applying, record, None).ok().flatten();
    assign_type(applying, after, declared);
    let persisted = set_ttl(applying, after, declared, TtlArgument::Persist, false);
    persisted.expect("only a record that ends with its session can be refused");
    declared
}

fn type_for<'entry>(
    applying: &Applying<'entry>,
    record: &ThingId<'_>,
    name: Option<&str>,
) -> Result<Option<&'entry Declared>, Rejection> {
    let catalogue = applying.catalogue;
    let types = &catalogue.space(record.space)?.types;
    match name {
        None => Ok(types.of_record(record.name)),
        Some(name) => match types.named(name) {
            Some(declared) if declared.id != OWNER_ID => Ok(Some(declared)),
            _ => Err(Rejection::Record(RecordRejection::NoSuchType { name: name.to_owned() })),
        },
    }
}

/// Turns the row into a new record of a type, in its first state.
fn assign_type(applying: &Applying<'_>, row: &mut Row<'_>, declared: Option<&Declared>) {
    row.numbers.record_type = declared.map_or(0, |declared| declared.id);
    row.numbers.lease_us = 0;
    row.numbers.holder_session = 0;
    row.numbers.failures = 0;
    row.numbers.ready_us = 0;
    row.numbers.waiting = false;
    row.worker = None;
    row.numbers.state = NO_STATE;
    if declared.is_some() {
        give_back(applying, row, 0);
        row.numbers.state = 0;
    }
}

pub(crate) fn set_ttl(
    applying: &Applying<'_>,
    row: &mut Row<'_>,
    declared: Option<&Declared>,
    ttl: TtlArgument,
    existed: bool,
) -> Result<(), Rejection> {
    let by_type = || declared.and_then(|declared| declared.definition.default_ttl).map(micros);
    let (ttl_us, life_session) = match ttl {
        TtlArgument::Keep if existed => return Ok(()),
        TtlArgument::After(us) => (Some(us), 0),
        TtlArgument::Keep | TtlArgument::Persist => (by_type(), 0),
        TtlArgument::WithSession => match applying.session() {
            Some(session) => (None, session),
            None => {
                let what = "a record that ends with its session".to_owned();
                return Err(Rejection::InvalidDeclaration { what, reason: RefusalReason::NoSession });
            }
        },
    };
    row.numbers.expires_us = ttl_us.map_or(0, |us| applying.call.stamp.wall_us.saturating_add(us).max(1));
    row.numbers.life_session = life_session;
    Ok(())
}

/// Writes fields into a row, including maintained ones.
pub(crate) fn write_fields<'row>(
    applying: &Applying<'_>,
    record: &ThingId<'_>,
    row: &mut Row<'row>,
    declared: Option<&Declared>,
    patches: impl Iterator<Item = FieldPatch<'row>>,
    by: By,
) -> Result<(), Rejection> {
    let version = row.numbers.version;
    for (field, value) in patches {
        match declared {
            Some(declared) if write_kept(applying, record, row, declared, field, value, by)? => {}
            _ => row.set(field, value, version),
        }
    }
    let limits = applying.catalogue.limits;
    Rejection::check_limit("record_fields_max", limits.record_fields_max as usize, row.fields.len())?;
    let bytes = row.fields.iter().map(|field| field.name.len() + field.content.len()).sum();
    Rejection::check_limit("record_bytes_max", limits.record_bytes_max as usize, bytes)
}

/// Writes a maintained field; false if it is an ordinary one.
fn write_kept<'row>(
    applying: &Applying<'_>,
    record: &ThingId<'_>,
    row: &mut Row<'row>,
    declared: &Declared,
    field: &str,
    value: Option<ValueRef<'row>>,
    by: By,
) -> Result<bool, Rejection> {
    if field == declared.definition.state_field {
        let Some(ValueRef::Text(name)) = value else {
            return Err(wrong_kind(record, field, WantedKind::State));
        };
        let Some(state) = declared.state_number(name) else {
            return Err(wrong_kind(record, field, WantedKind::OwnState));
        };
        move_to(applying, record, row, declared, state, by)?;
        return Ok(true);
    }
    match (field, value) {
        (CREATED_AT | UPDATED_AT, _) => {}
        (TIMEOUT_AT, Some(ValueRef::Integer(ms))) => move_lease(applying, row, ms),
        (TIMEOUT_AT, None) => {}
        (TIMEOUT_AT, Some(_)) => return Err(wrong_kind(record, field, WantedKind::Milliseconds)),
        (WORKER, Some(ValueRef::Text(worker))) => {
            Rejection::check_limit("worker_bytes_max", WORKER_BYTES_MAX, worker.len())?;
            row.worker = Some(worker).filter(|worker| !worker.is_empty());
        }
        (WORKER, None) => row.worker = None,
        (WORKER, Some(_)) => return Err(wrong_kind(record, field, WantedKind::Worker)),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Moves the end of a lease to a wall time; leases themselves count in cluster time.
fn move_lease(applying: &Applying<'_>, row: &mut Row<'_>, until_ms: i64) {
    if !row.numbers.is_held() {
        return;
    }
    let until_us = lease_us(applying, until_ms).clamp(*LEASES_US.start(), *LEASES_US.end());
    row.numbers.lease_us = u64::try_from(until_us).expect("it was clamped");
}

/// The cluster time that a wall time is taken for.
fn lease_us(applying: &Applying<'_>, until_ms: i64) -> i128 {
    let stamp = applying.call.stamp;
    let left_us = i128::from(until_ms) * 1_000 - i128::from(stamp.wall_us);
    i128::from(stamp.cluster_us) + left_us
}

/// The reason of a write in the change feed.
fn moved(applying: &Applying<'_>, record: &ThingId<'_>, before: &Row<'_>, after: &Row<'_>) -> Reason {
    let kind = |row: &Row<'_>| applying.declared(record, row).map(|declared| declared.kind(row.numbers.state));
    let kind_before = kind(before).filter(|_| !before.numbers.deleted);
    let Some(kind_after) = kind(after) else {
        return Reason::Written;
    };
    match kind_after {
        StateKind::Held if kind_before == Some(StateKind::Ready) => Reason::Claimed,
        StateKind::Ready if kind_before == Some(StateKind::Held) => Reason::Released,
        StateKind::Terminal if kind_before != Some(StateKind::Terminal) => Reason::Finished,
        _ => Reason::Written,
    }
}

pub(crate) fn no_such_record(record: &ThingId<'_>) -> Rejection {
    Rejection::Record(RecordRejection::NoSuchRecord { record: record.name.to_owned() })
}
