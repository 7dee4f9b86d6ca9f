//! Sending: puts a message among those that wait, and takes out what was published.

use contract::limits::MESSAGE_DEPTH_MAX;
use contract::{RefusalReason, Rejection};
use kv::Writer;
use session::Halt;

use super::{MessageState, Stored};
use crate::catalogue::Catalogue;
use crate::command::{Body, Op};
use crate::context::Applying;
use crate::counts::{MessageCounts, decode_messages};
use crate::keys::due::DueClock;
use crate::keys::{Keys, ThingId};
use crate::outbox::command::{Send, Target};
use crate::transact::limits::within_limits;

/// Sends a message. `source` is the sending group.
pub(crate) fn send(
    applying: &mut Applying<'_>,
    source: &ThingId<'_>,
    send: &Send<'_>,
) -> Result<Result<(), Rejection>, Halt> {
    let checked = check_message(applying.catalogue, send, 1);
    let checked = checked.and(check_waiting(applying)?);
    if checked.is_ok() {
        put(applying, source, send)?;
    }
    Ok(checked)
}

pub(crate) fn put(applying: &mut Applying<'_>, source: &ThingId<'_>, send: &Send<'_>) -> Result<(), Halt> {
    let number = applying.next_number(source.bucket)?;
    let now_us = applying.call.stamp.wall_us;
    let stored =
        Stored { space: source.space, branch: source.branch, source: source.group.unwrap_or(source.name), send: *send };
    let after_us = send.after_us.unwrap_or(0);
    let state = match send.target {
        Target::Topic { .. } if after_us == 0 => MessageState::Publish,
        _ => MessageState::Due(now_us.saturating_add(after_us)),
    };
    put_waiting(applying, source.bucket, state, number, &stored);
    Ok(())
}

/// Refuses one more message than may wait. What a message sends was accepted with it: to refuse it at its delivery would lose it.
fn check_waiting(applying: &Applying<'_>) -> Result<Result<(), Rejection>, Halt> {
    if applying.delivers {
        return Ok(Ok(()));
    }
    let waiting = counted_before(applying)?.total() + applying.folded.messages().total() + 1;
    let waiting = usize::try_from(waiting).map_err(|_| Halt::Inconsistent(format!("R6: {waiting} messages wait")))?;
    let max = applying.catalogue.limits.messages_waiting_max as usize;
    Ok(Rejection::check_limit("messages_waiting_max", max, waiting))
}

/// The numbers of messages before this entry.
pub(super) fn counted_before(applying: &Applying<'_>) -> Result<MessageCounts, Halt> {
    let row = applying.state.get(&applying.keys.message_counts())?;
    row.map_or(Ok(MessageCounts::default()), |row| decode_messages(&row))
}

/// Refuses a message that could not be delivered, or that sends one: nobody would hear of it then.
fn check_message(catalogue: &Catalogue, send: &Send<'_>, depth: usize) -> Result<(), Rejection> {
    let Target::Transact(body) = send.target else {
        return Ok(());
    };
    Rejection::check_limit("message_depth_max", MESSAGE_DEPTH_MAX, depth)?;
    let Ok(Body::Transact(transact)) = Body::decode(body) else {
        let reason = RefusalReason::NoTransaction;
        return Err(Rejection::InvalidDeclaration { what: "a message".to_owned(), reason });
    };
    within_limits(catalogue, body.len(), &transact)?;
    for op in &transact.ops {
        if let Op::Send(inner) = op {
            check_message(catalogue, inner, depth + 1)?;
        }
    }
    Ok(())
}

/// Puts a message among those that wait.
pub(crate) fn put_waiting(
    applying: &mut Applying<'_>,
    bucket: u16,
    state: MessageState,
    number: u64,
    stored: &Stored<'_>,
) {
    let mut writer = Writer::new();
    stored.encode(&mut writer);
    applying.folded.count_messages(state, 1);
    match state {
        MessageState::Publish => applying.state.put(applying.keys.publish(bucket, number), writer.as_slice()),
        MessageState::Outgoing => applying.state.put(applying.keys.outgoing(bucket, number), writer.as_slice()),
        MessageState::Due(due_us) => {
            let suffix = Keys::due_send_suffix(due_us, number);
            applying.change_due(DueClock::Wall, bucket, suffix, writer.as_slice(), true);
        }
    }
}

/// Forgets published messages.
pub(crate) fn published(applying: &mut Applying<'_>, messages: &[(u16, u64)]) -> Result<(), Halt> {
    for (bucket, number) in messages {
        let key = applying.keys.publish(*bucket, *number);
        // Said twice, by a node that did not hear the first answer, it counts once.
        if applying.state.get(&key)?.is_some() {
            applying.state.delete(key);
            applying.folded.count_messages(MessageState::Publish, -1);
        }
    }
    Ok(())
}
