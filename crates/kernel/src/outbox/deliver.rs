//! Delivering: what is due is applied in its group, waits for another shard, or may be published.

use contract::Rejection;
use kv::DamagedRange;
use session::Halt;

use super::{MessageState, Stored, dead_letters};
use crate::LEVEL_OF_DEAD_LETTERS;
use crate::changes::{Noted, Reason, Subject};
use crate::command::{Body, Transact};
use crate::context::Applying;
use crate::damage;
use crate::keys::Keys;
use crate::keys::due::DueClock;
use crate::outbox::command::Target;
use crate::outbox::send::put_waiting;
use crate::transact::{self, Transacted};

/// A message is due: applies its transaction, or releases it to whoever takes it from here.
pub(crate) fn deliver(applying: &mut Applying<'_>, bucket: u16, at_us: u64, number: u64) -> Result<(), Halt> {
    let suffix = Keys::due_send_suffix(at_us, number);
    let mut key = applying.keys.due_prefix(DueClock::Wall, bucket);
    key.extend_from_slice(&suffix);
    let row = applying.state.get(&key)?;
    let row = row.ok_or_else(|| Halt::Inconsistent("R6: a message that is due has no row".into()))?;
    applying.change_due(DueClock::Wall, bucket, suffix, b"", false);
    applying.folded.count_messages(MessageState::Due(at_us), -1);
    let stored = Stored::decode(&row)?;
    let state = match stored.send.target {
        Target::Transact(body) => {
            let Body::Transact(transact) = Body::decode(body)? else {
                return Err(Halt::Inconsistent("a message is not a transaction".into()));
            };
            if !matches!(transact::bucket_here(applying.catalogue, &transact), Err(Rejection::NotHere { .. })) {
                return execute_due(applying, &stored, number, &transact);
            }
            MessageState::Outgoing
        }
        Target::Topic { .. } => MessageState::Publish,
    };
    // Behind everything that was released already, because it was not due when those were.
    let number = applying.next_number(bucket)?;
    put_waiting(applying, bucket, state, number, &stored);
    Ok(())
}

/// A message that is due needs something damaged: it no longer waits, and becomes a dead letter if it can itself be read. One
/// that was delivered before the damage was met is left alone.
pub(crate) fn give_up(
    applying: &mut Applying<'_>,
    bucket: u16,
    at_us: u64,
    number: u64,
    damaged: &DamagedRange,
) -> Result<(), Halt> {
    let mut key = applying.keys.due_prefix(DueClock::Wall, bucket);
    key.extend_from_slice(&Keys::due_send_suffix(at_us, number));
    let row = match applying.state.get(&key).map_err(Halt::from) {
        Err(halt) if halt.set_apart().is_none() => return Err(halt),
        Ok(None) => return Ok(()),
        read => read.ok().flatten(),
    };
    applying.folded.count_messages(MessageState::Due(at_us), -1);
    let Some(row) = row else { return Ok(()) };
    let stored = Stored::decode(&row)?;
    let Target::Transact(body) = stored.send.target else { return Ok(()) };
    let Body::Transact(transact) = Body::decode(body)? else { return Ok(()) };
    keep_damaged(applying, &stored, number, &transact, damaged)
}

/// Keeps a message that needs something damaged as a dead letter.
fn keep_damaged(
    applying: &mut Applying<'_>,
    message: &Stored<'_>,
    number: u64,
    transact: &Transact<'_>,
    damaged: &DamagedRange,
) -> Result<(), Halt> {
    if applying.catalogue.level < LEVEL_OF_DEAD_LETTERS {
        // It was gone without a word.
        return Ok(());
    }
    let refusal = damage::refusal(damaged, applying.catalogue);
    let reason = match dead_letters::keep(applying, message, number, transact, refusal) {
        // Where it would be kept is damaged, too.
        Err(halt) if halt.set_apart().is_some() => Reason::Lost,
        reason => reason?,
    };
    note(applying, message, number, reason);
    Ok(())
}

/// [`execute`], for a message that nobody sends again: it becomes a dead letter too if it needs something damaged. Here, and not where
/// the whole step is undone: executing has a savepoint of its own, behind the removal of what was due.
fn execute_due(
    applying: &mut Applying<'_>,
    message: &Stored<'_>,
    number: u64,
    transact: &Transact<'_>,
) -> Result<(), Halt> {
    let executed = execute(applying, message, number, transact);
    match applying.undo_if_damaged(executed)? {
        Ok(()) => Ok(()),
        Err(damaged) => keep_damaged(applying, message, number, transact, &damaged),
    }
}

/// Applies the transaction of a message, or nothing of it if it is refused: then it becomes a dead letter. Either way the message
/// was delivered.
pub(super) fn execute(
    applying: &mut Applying<'_>,
    message: &Stored<'_>,
    number: u64,
    transact: &Transact<'_>,
) -> Result<(), Halt> {
    applying.savepoint();
    let reason = match attempt(applying, message, transact)? {
        Ok(_) => Reason::Delivered,
        Err(refusal) => {
            applying.undo();
            dead_letters::keep(applying, message, number, transact, refusal)?
        }
    };
    note(applying, message, number, reason);
    Ok(())
}

/// Applies the transaction of a message, perhaps in part: who calls undoes it if it is refused.
pub(super) fn attempt(
    applying: &mut Applying<'_>,
    message: &Stored<'_>,
    transact: &Transact<'_>,
) -> Result<Result<Transacted, Rejection>, Halt> {
    applying.delivers = true;
    applying.from_its_own_group = (message.space, message.branch) == (transact.space, transact.branch)
        && transact::group_of(transact) == Some(message.source);
    // How long it may be was checked when it was sent.
    let tried = transact::try_transact(applying, transact, 0);
    (applying.delivers, applying.from_its_own_group) = (false, false);
    tried
}

/// Notes in the change feed what became of a message.
pub(super) fn note(applying: &mut Applying<'_>, message: &Stored<'_>, number: u64, reason: Reason) {
    let change = Noted {
        subject: Subject::Message,
        reason,
        space: message.space,
        branch: message.branch,
        group: None,
        name: message.source,
        version: number,
    };
    applying.folded.changes.note(applying.call.commit, &change);
}
