//! The audit: a run a month in the space of the store itself, whose events name each other.
//!
//! Touches: the run's rows, and the row that has how far the audit has come. Keeps: A1 (what is recorded is in the commit of what
//! it is about: neither is there without the other). The shard that owns the run's group records; on others there is nothing to do.

mod acts;
mod row;

use contract::Rejection;
use contract::access::audit::{AUDIT_KIND, AuditEvent, Decision, run_of};
use contract::catalogue::MAIN_BRANCH;
use session::Halt;

pub(crate) use acts::act_of;
pub use row::{decode_head, encode_head};

use crate::context::Applying;
use crate::runs::append::append;
use crate::runs::command::{Append, Duplicates, EventRef};

/// What is recorded: what was done, to what, and what became of it.
pub(crate) struct Recorded<'act> {
    pub(crate) act: &'act str,
    /// Names, as a JSON object.
    pub(crate) on: &'act str,
    pub(crate) decision: Decision,
}

/// Appends an event to the audit. If that is rejected, what it is about must not be done.
pub(crate) fn record(applying: &mut Applying<'_>, recorded: &Recorded<'_>) -> Result<Result<(), Rejection>, Halt> {
    let Some(space) = applying.catalogue.system_space() else {
        // Nobody was ever known here.
        return Ok(Ok(()));
    };
    let at_us = applying.call.stamp.wall_us;
    let main = applying.catalogue.space(space).and_then(|found| found.branch_named(MAIN_BRANCH));
    let name = run_of(at_us);
    let run = match main.and_then(|main| applying.catalogue.thing(space, main, None, &name)) {
        Ok(run) => run,
        Err(Rejection::NotHere { .. }) => return Ok(Ok(())),
        Err(rejection) => return Ok(Err(rejection)),
    };
    let key = applying.keys.audit_head();
    let mut head = applying.state.get(&key)?.map(|row| decode_head(&row)).transpose()?.unwrap_or_default();
    let Recorded { act, on, decision } = *recorded;
    let sender = applying.call.sender;
    let (principal, policy) =
        (sender.map(|sender| sender.principal), sender.map_or(0, |sender| sender.policy_revision));
    let data = head.add(at_us, &AuditEvent { principal, policy, act, on, decision });
    let number = head.number.to_string();
    let event = EventRef { event_type: act, data: &data, idempotency_key: &number, ..EventRef::EMPTY };
    let append_it = Append { expected_last: None, duplicates: Duplicates::Refuse, run_type: AUDIT_KIND, event };
    match append(applying, &run, &append_it)? {
        Ok(_) => {
            applying.state.put(key, encode_head(&head));
            Ok(Ok(()))
        }
        Err(rejection) => Ok(Err(rejection)),
    }
}

#[cfg(test)]
mod tests;
