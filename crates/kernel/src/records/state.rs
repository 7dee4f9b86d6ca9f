//! Moves between states: which are allowed, and what each does to the record.
//!
//! Keeps: R3 (a record never leaves a terminal state) and R4 (a record is held by one attempt at a time, which started
//! with a claim).

use contract::records::types::{GONE, StateKind};
use contract::{RecordRejection, RefusalReason, Rejection};

use super::row::Row;
use crate::catalogue::Declared;
use crate::catalogue::types::micros;
use crate::context::Applying;
use crate::keys::ThingId;

/// How a state is about to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// A claim, or a swap of the state with an expected value.
    Claim,
    /// Any other write.
    Write,
}

/// Moves a record to a state, if that is allowed.
pub(crate) fn move_to(
    applying: &Applying<'_>,
    record: &ThingId<'_>,
    row: &mut Row<'_>,
    declared: &Declared,
    target: u8,
    by: By,
) -> Result<(), Rejection> {
    let from = declared.kind(row.numbers.state);
    let to = declared.kind(target);
    let refused = |reason| Err(wrong_state(record, row, declared, reason));
    if target == row.numbers.state {
        return Ok(());
    }
    match (from, to) {
        (StateKind::Terminal, _) => return refused(RefusalReason::Finished),
        (StateKind::Ready, StateKind::Held) if by != By::Claim => {
            return refused(RefusalReason::NotHeld);
        }
        (StateKind::Ready, StateKind::Terminal) if Some(target) == declared.completed() => {
            return refused(RefusalReason::NotHeldToComplete);
        }
        (StateKind::Ready, StateKind::Held) => hold(applying, row, declared, None),
        (StateKind::Held, StateKind::Held) => {}
        // A pause after a failure is not over because the record is moved.
        (StateKind::Ready, StateKind::Ready) if row.numbers.pauses_at(applying.call.stamp.wall_us) => {}
        (_, StateKind::Ready) => give_back(applying, row, 0),
        (_, StateKind::Terminal) => finish(applying, row, declared),
    }
    row.numbers.state = target;
    Ok(())
}

/// A refusal that names the state of a row.
pub(crate) fn wrong_state(
    record: &ThingId<'_>,
    row: &Row<'_>,
    declared: &Declared,
    reason: RefusalReason,
) -> Rejection {
    let state = declared.state_name(row.numbers.state).to_owned();
    Rejection::Record(RecordRejection::WrongState { record: record.name.to_owned(), state, reason })
}

/// Begins the next attempt. The state is set by the caller.
pub(crate) fn hold(applying: &Applying<'_>, row: &mut Row<'_>, declared: &Declared, lease_us: Option<u64>) {
    row.numbers.attempt = row.numbers.attempt.max(applying.attempts_above) + 1;
    row.numbers.ready_us = 0;
    row.numbers.waiting = false;
    row.numbers.holder_session = applying.session().unwrap_or_default();
    extend(applying, row, declared, lease_us);
}

/// Restarts the lease from now.
pub(crate) fn extend(applying: &Applying<'_>, row: &mut Row<'_>, declared: &Declared, lease_us: Option<u64>) {
    let lease_us = lease_us.unwrap_or_else(|| micros(declared.definition.lease)).max(1);
    row.numbers.lease_us = applying.call.stamp.cluster_us.saturating_add(lease_us);
}

/// Ends the attempt, or initialises the record: it can be claimed after a pause. The caller sets the state.
pub(crate) fn give_back(applying: &Applying<'_>, row: &mut Row<'_>, pause_us: u64) {
    row.numbers.lease_us = 0;
    row.numbers.holder_session = 0;
    row.worker = None;
    row.numbers.ready_us = applying.call.stamp.wall_us.saturating_add(pause_us);
    row.numbers.waiting = pause_us > 0;
}

/// Ends the attempt for good. The state is set by the caller.
fn finish(applying: &Applying<'_>, row: &mut Row<'_>, declared: &Declared) {
    row.numbers.lease_us = 0;
    row.numbers.holder_session = 0;
    row.numbers.ready_us = 0;
    row.numbers.waiting = false;
    if let Some(ttl) = declared.definition.terminal_ttl {
        row.numbers.expires_us = applying.call.stamp.wall_us.saturating_add(micros(ttl));
    }
}

/// Checks that an attempt is the live one.
pub(crate) fn check_fence(
    record: &ThingId<'_>,
    row: &Row<'_>,
    declared: Option<&Declared>,
    attempt: u64,
) -> Result<(), Rejection> {
    let numbers = row.numbers;
    if !numbers.deleted && numbers.is_held() && numbers.attempt == attempt {
        return Ok(());
    }
    let state = match declared {
        _ if numbers.deleted => GONE.to_owned(),
        Some(declared) => declared.state_name(numbers.state).to_owned(),
        None => "not of a type that can be claimed".to_owned(),
    };
    let holder = row.worker.filter(|_| numbers.is_held()).map(str::to_owned);
    Err(Rejection::Record(RecordRejection::Fenced {
        record: record.name.to_owned(),
        given: attempt,
        attempt: numbers.attempt,
        state,
        holder,
    }))
}
