//! An attempt on a record: claim, extend, release, complete, fail, and rescue.
//!
//! Touches: the record and its place in the schedule. Keeps: R2 and R4: only a claim starts an attempt, and only the
//! live attempt can end itself; from outside, a rescue ends it when its lease has expired.

use contract::guards::OWNER_RECORD;
use contract::records::types::StateKind;
use contract::{RecordRejection, RefusalReason, Rejection};
use kv::Writer;
use session::Halt;

use super::held::already_held;
use super::patch::{no_such_record, write_fields};
use super::row::Row;
use super::state::{By, check_fence, extend as extend_lease, give_back, hold, move_to, wrong_state};
use super::sweep::{Sweep, sweep};
use super::write::{open, peek, remove, store, successor};
use crate::LEVEL_OF_GUARDS;
use crate::answer::{ClaimedOutcome, OpOutcome};
use crate::catalogue::Declared;
use crate::catalogue::types::{OWNER_ID, micros};
use crate::changes::Reason;
use crate::context::Applying;
use crate::contract::Outcome;
use crate::keys::ThingId;
use crate::records::command::FieldPatch;

/// Takes a record for a worker. The owner of a group is there as soon as it is claimed, and a claim that is forced takes it
/// from whoever holds it.
pub(crate) fn claim(
    applying: &mut Applying<'_>,
    record: &ThingId<'_>,
    worker: &str,
    lease_us: Option<u64>,
    force: bool,
) -> Outcome {
    let opened = open(applying, record)?;
    let before = opened.row()?;
    let begins_to_own = record.name == OWNER_RECORD && before.numbers.deleted;
    if before.numbers.deleted && !begins_to_own {
        return Ok(Err(no_such_record(record)));
    }
    let mut after = successor(applying, &before);
    if begins_to_own {
        after.numbers.record_type = OWNER_ID;
        after.numbers.state = FIRST_STATE;
    }
    let Some(declared) = applying.declared(record, &after) else {
        return Ok(Err(Rejection::Record(RecordRejection::NoSuchType { name: record.name.to_owned() })));
    };
    let kind = declared.kind(after.numbers.state);
    let takes_over = force && declared.definition.never_ends();
    if kind == StateKind::Held && !takes_over && applying.catalogue.level >= LEVEL_OF_GUARDS {
        return Ok(Err(already_held(applying, record, &before)?));
    }
    let pausing = before.numbers.pauses_at(applying.call.stamp.wall_us);
    if (kind != StateKind::Ready && !takes_over) || pausing {
        let reason = if pausing { RefusalReason::Pausing } else { RefusalReason::NotReady };
        return Ok(Err(wrong_state(record, &before, declared, reason)));
    }
    hold(applying, &mut after, declared, lease_us);
    after.numbers.state = declared.held();
    after.worker = Some(worker).filter(|worker| !worker.is_empty());
    let outcome = claimed(applying, record, &after)?;
    applying.folded.changes.tally.claimed.push((record.space, after.numbers.record_type));
    store(applying, record, &before, after, Reason::Claimed)?;
    Ok(Ok(OpOutcome::Claimed(Box::new(outcome))))
}

/// The record as the worker gets it: its row, with large fields in their places.
fn claimed(applying: &Applying<'_>, record: &ThingId<'_>, row: &Row<'_>) -> Result<ClaimedOutcome, Halt> {
    let mut writer = Writer::with_capacity(256);
    applying.fields().encode_whole(record, row, &mut writer)?;
    let stamp = applying.call.stamp;
    Ok(ClaimedOutcome {
        name: record.name.to_owned(),
        group: record.group.map(str::to_owned),
        space: record.space,
        stamp,
        row: writer.finish(),
    })
}

/// Does something to a record, if this attempt is the live one. `work` gets the row before, the row after with `fields`
/// written, and the record's type.
fn in_attempt(
    applying: &mut Applying<'_>,
    record: &ThingId<'_>,
    attempt: u64,
    fields: Option<&[FieldPatch<'_>]>,
    work: impl FnOnce(&mut Applying<'_>, &Row<'_>, Row<'_>, &Declared) -> Outcome,
) -> Outcome {
    let opened = open(applying, record)?;
    let before = opened.row()?;
    let declared = applying.declared(record, &before);
    if let Err(fenced) = check_fence(record, &before, declared, attempt) {
        return Ok(Err(fenced));
    }
    let Some(declared) = declared else {
        return Ok(Err(Rejection::Record(RecordRejection::NoSuchType { name: record.name.to_owned() })));
    };
    let mut after = successor(applying, &before);
    if let Some(fields) = fields {
        let fields = fields.iter().copied();
        if let Err(rejection) = write_fields(applying, record, &mut after, Some(declared), fields, By::Write) {
            return Ok(Err(rejection));
        }
    }
    work(applying, &before, after, declared)
}

/// Holds the record longer.
pub(crate) fn extend(
    applying: &mut Applying<'_>,
    record: &ThingId<'_>,
    attempt: u64,
    lease_us: Option<u64>,
) -> Outcome {
    in_attempt(applying, record, attempt, None, |applying, before, mut after, declared| {
        extend_lease(applying, &mut after, declared, lease_us);
        Ok(Ok(OpOutcome::Written(store(applying, record, before, after, Reason::Written)?)))
    })
}

/// Releases the record: it can be claimed at once, and the attempt does not count as failed.
pub(crate) fn release(applying: &mut Applying<'_>, record: &ThingId<'_>, attempt: u64) -> Outcome {
    in_attempt(applying, record, attempt, None, |applying, before, mut after, _| {
        give_back(applying, &mut after, 0);
        after.numbers.state = FIRST_STATE;
        Ok(Ok(OpOutcome::Written(store(applying, record, before, after, Reason::Released)?)))
    })
}

/// Releases a record of a shard that was just built: its attempt goes on in the shard before, if at all. Returns the bytes
/// of its row if it was held.
pub(super) fn release_imported(applying: &mut Applying<'_>, record: &ThingId<'_>) -> Result<Option<usize>, Halt> {
    let Some(bytes) = peek(applying, record)? else { return Ok(None) };
    let before = Row::decode(&bytes)?;
    // One that has expired is removed by the first tick, as if nobody had held it.
    let is_there = before.numbers.exists_at(applying.call.stamp.wall_us);
    if !is_there || !before.numbers.is_held() {
        return Ok(None);
    }
    let mut after = successor(applying, &before);
    give_back(applying, &mut after, 0);
    after.numbers.state = FIRST_STATE;
    store(applying, record, &before, after, Reason::Released)?;
    Ok(Some(bytes.len()))
}

/// The state of records that can be claimed: a type's first state is one.
const FIRST_STATE: u8 = 0;

/// Finishes the record.
pub(crate) fn complete(
    applying: &mut Applying<'_>,
    record: &ThingId<'_>,
    attempt: u64,
    fields: &[FieldPatch<'_>],
) -> Outcome {
    in_attempt(applying, record, attempt, Some(fields), |applying, before, mut after, declared| {
        let Some(completed) = declared.completed() else {
            return Ok(Err(wrong_state(record, before, declared, RefusalReason::NeverEnds)));
        };
        let is_held = declared.kind(after.numbers.state) == StateKind::Held;
        if !is_held && after.numbers.state != completed {
            // The state that the record has, and not the one that the refused operation would have given it.
            return Ok(Err(wrong_state(record, before, declared, RefusalReason::FieldsMoveIt)));
        }
        if let Err(rejection) = move_to(applying, record, &mut after, declared, completed, By::Write) {
            return Ok(Err(rejection));
        }
        Ok(Ok(OpOutcome::Written(store(applying, record, before, after, Reason::Finished)?)))
    })
}

/// Ends the attempt as failed: the record is tried again after a pause, or its budget is used up.
pub(crate) fn fail(
    applying: &mut Applying<'_>,
    record: &ThingId<'_>,
    attempt: u64,
    fields: &[FieldPatch<'_>],
) -> Outcome {
    in_attempt(applying, record, attempt, Some(fields), |applying, before, after, declared| {
        if declared.kind(after.numbers.state) == StateKind::Terminal {
            return Ok(Err(wrong_state(record, before, declared, RefusalReason::FailureFinishes)));
        }
        end_attempt(applying, record, before, after, declared, Reason::Failed)
    })
}

/// Ends an attempt from outside, because its lease or its session has ended.
pub(crate) fn rescue(
    applying: &mut Applying<'_>,
    record: &ThingId<'_>,
    before: &Row<'_>,
    reason: Reason,
) -> Result<(), Halt> {
    if before.numbers.expired_at(applying.call.stamp.wall_us) {
        // It does not exist any more. A rescue would tell of it, or bring it back as failed.
        return remove(applying, record, before, Reason::Expired).map(|_| ());
    }
    let declared = applying.declared(record, before);
    let declared = declared.ok_or_else(|| Halt::Inconsistent("a record without a type is held".into()))?;
    let after = successor(applying, before);
    let ended = end_attempt(applying, record, before, after, declared, reason)?;
    ended.map(|_| ()).map_err(|rejection| Halt::Inconsistent(format!("a rescue was refused: {rejection}")))
}

fn end_attempt(
    applying: &mut Applying<'_>,
    record: &ThingId<'_>,
    before: &Row<'_>,
    mut after: Row<'_>,
    declared: &Declared,
    reason: Reason,
) -> Outcome {
    after.numbers.failures = after.numbers.failures.saturating_add(1);
    let attempt = after.numbers.attempt;
    let spent = u64::from(after.numbers.failures) >= declared.definition.attempts_max;
    if let Some(failed) = declared.failed().filter(|_| spent) {
        if let Err(rejection) = move_to(applying, record, &mut after, declared, failed, By::Write) {
            return Ok(Err(rejection));
        }
        let version = store(applying, record, before, after, Reason::Exhausted)?;
        sweep(applying, record, declared, Sweep::Exhausted, attempt)?;
        return Ok(Ok(OpOutcome::Exhausted { version }));
    }
    let pause_us = micros(declared.definition.backoff.after(after.numbers.failures.into()));
    give_back(applying, &mut after, pause_us);
    after.numbers.state = FIRST_STATE;
    let version = store(applying, record, before, after, reason)?;
    if reason != Reason::Failed {
        sweep(applying, record, declared, Sweep::Rescued, attempt)?;
    }
    Ok(Ok(OpOutcome::Retried { version, pause_us }))
}
