//! Messages: to another group, or to a broker, sent with the commit that causes them.
//!
//! A message waits in the index of work due by wall time, at its time or at the commit's. A transaction for a group is
//! applied by the tick that finds it, in one step with the removal of its row: exactly once, and in the order of (time,
//! command, position) for each source. A message for a broker moves to the rows waiting to be published; a timed one
//! when a tick finds it due. The node publishes those in order and then has them removed, so a broker may see one
//! again, with the same number.
//!
//! Touches: `DueWall` and `Publish` rows. Keeps: R6 (a message is delivered once, in order).

use contract::limits::MESSAGE_DEPTH_MAX;
use contract::records::sweep_message;
use contract::{RefusalReason, Rejection};
use kv::{DecodeError, KeyRange, Order, Reader, Staging, View, Writer};
use session::Halt;

use crate::catalogue::{Catalogue, Declared};
use crate::changes::{Noted, Reason, Subject};
use crate::command::{Body, Op, Send, Target};
use crate::folded::MessageCounts;
use crate::keys::Keys;
use crate::keys::ThingId;
use crate::keys::records::{Due, DueClock, read_due_suffix, read_publish_key};
use crate::machine::Applying;
use crate::place::Buckets;
use crate::transact::{self, within_limits};

const FORMAT: u8 = 1;

/// A message as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored<'bytes> {
    /// The space that sent it.
    pub space: u32,
    /// The branch.
    pub branch: u32,
    /// The group that sent it.
    pub source: &'bytes str,
    /// Its content.
    pub send: Send<'bytes>,
}

impl<'bytes> Stored<'bytes> {
    fn encode(&self, writer: &mut Writer) {
        writer.u8(FORMAT).u32(self.space).u32(self.branch).bytes(self.source.as_bytes());
        self.send.encode(writer);
    }

    /// Reads a message's row.
    pub fn decode(bytes: &'bytes [u8]) -> Result<Self, Halt> {
        let read = || {
            let mut reader = Reader::new(bytes);
            reader.format(FORMAT)?;
            let (space, branch, source) = (reader.u32()?, reader.u32()?, reader.text()?);
            let send = Send::decode(&mut reader)?;
            reader.end().map(|()| Self { space, branch, source, send })
        };
        read().map_err(|error: DecodeError| Halt::Undecodable { what: "a message", error })
    }
}

/// Sends a message. `source` is the sending group.
pub(crate) fn send(
    applying: &mut Applying<'_>,
    source: &ThingId<'_>,
    send: &Send<'_>,
) -> Result<Result<(), Rejection>, Halt> {
    let checked = check_message(applying.catalogue, send, 1);
    let checked = checked.and(check_waiting(applying)?);
    if checked.is_ok() {
        put(applying, source, send);
    }
    Ok(checked)
}

fn put(applying: &mut Applying<'_>, source: &ThingId<'_>, send: &Send<'_>) {
    let ordinal = applying.next_ordinal();
    let now_us = applying.call.stamp.wall_us;
    let commit = applying.call.commit;
    let stored =
        Stored { space: source.space, branch: source.branch, source: source.group.unwrap_or(source.name), send: *send };
    let after_us = send.after_us.unwrap_or(0);
    let publish_now = matches!(send.target, Target::Topic { .. }) && after_us == 0;
    let due_us = (!publish_now).then_some(now_us.saturating_add(after_us));
    put_waiting(applying, source.bucket, due_us, commit, ordinal, &stored);
}

/// Refuses one more message than may wait.
fn check_waiting(applying: &Applying<'_>) -> Result<Result<(), Rejection>, Halt> {
    let row = applying.state.get(&applying.keys.message_counts())?;
    let before = row.map_or(Ok(MessageCounts::default()), |row| decode_counts(&row))?;
    let waiting = before.total() + applying.folded.messages().total() + 1;
    let waiting = usize::try_from(waiting).map_err(|_| Halt::Inconsistent(format!("R6: {waiting} messages wait")))?;
    let max = applying.catalogue.limits.messages_waiting_max as usize;
    Ok(Rejection::check_limit("messages_waiting_max", max, waiting))
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

/// Puts a message among those that wait: for their time, or to be published.
pub(crate) fn put_waiting(
    applying: &mut Applying<'_>,
    bucket: u16,
    due_us: Option<u64>,
    commit: u64,
    ordinal: u32,
    stored: &Stored<'_>,
) {
    let mut writer = Writer::new();
    stored.encode(&mut writer);
    match due_us {
        None => {
            let key = applying.keys.publish(bucket, commit, ordinal);
            applying.state.put(key, writer.as_slice());
            applying.folded.count_messages(0, 1);
        }
        Some(due_us) => {
            applying.folded.count_messages(1, 0);
            let suffix = Keys::due_send_suffix(due_us, commit, ordinal);
            applying.change_due(DueClock::Wall, bucket, suffix, writer.as_slice(), true);
        }
    }
}

/// A message is due: applies its transaction, or lets it be published.
pub(crate) fn deliver(
    applying: &mut Applying<'_>,
    bucket: u16,
    at_us: u64,
    commit: u64,
    ordinal: u32,
) -> Result<(), Halt> {
    let suffix = Keys::due_send_suffix(at_us, commit, ordinal);
    let mut key = applying.keys.due_prefix(DueClock::Wall, bucket);
    key.extend_from_slice(&suffix);
    let row = applying.state.get(&key)?;
    let row = row.ok_or_else(|| Halt::Inconsistent("R6: a message that is due has no row".into()))?;
    applying.change_due(DueClock::Wall, bucket, suffix, b"", false);
    applying.folded.count_messages(-1, 0);
    let stored = Stored::decode(&row)?;
    match stored.send.target {
        Target::Topic { .. } => {
            // Behind everything that waits already, because it was not due when those were.
            let ordinal = applying.next_ordinal();
            let key = applying.keys.publish(bucket, applying.call.commit, ordinal);
            applying.state.put(key, &*row);
            applying.folded.count_messages(0, 1);
        }
        Target::Transact(body) => {
            let Body::Transact(transact) = Body::decode(body)? else {
                return Err(Halt::Inconsistent("a message is not a transaction".into()));
            };
            applying.savepoint();
            let refused = transact::try_transact(applying, &transact)?.is_err();
            if refused {
                applying.undo();
            }
            let reason = if refused { Reason::Refused } else { Reason::Delivered };
            let change = Noted {
                subject: Subject::Message,
                reason,
                space: stored.space,
                branch: stored.branch,
                group: None,
                name: stored.source,
                version: commit,
            };
            applying.folded.changes.note(applying.call.commit, &change);
        }
    }
    Ok(())
}

/// Why the sweeper sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sweep {
    Rescued,
    Exhausted,
}

/// Sends the message that a type asks for when a record is rescued or its attempts are used up. Nobody is there who could be
/// refused, so it is sent however many wait: one for an attempt of a record, and records are bounded.
pub(crate) fn sweep(
    applying: &mut Applying<'_>,
    record: &ThingId<'_>,
    declared: &Declared,
    sweep: Sweep,
    attempt: u64,
) {
    let (topic, reason) = match sweep {
        Sweep::Rescued => (&declared.definition.rescued_to, "rescued"),
        Sweep::Exhausted => (&declared.definition.exhausted_to, "exhausted"),
    };
    let Some(topic) = topic else {
        return;
    };
    let payload = sweep_message(record.group, record.name, attempt, reason);
    let message = Send { target: Target::Topic { topic, payload: payload.as_bytes() }, after_us: None };
    put(applying, record, &message);
}

/// Forgets published messages.
pub(crate) fn published(applying: &mut Applying<'_>, messages: &[(u16, u64, u32)]) -> Result<(), Halt> {
    for (bucket, commit, ordinal) in messages {
        let key = applying.keys.publish(*bucket, *commit, *ordinal);
        // Said twice, by a node that did not hear the first answer, it counts once.
        if applying.state.get(&key)?.is_some() {
            applying.state.delete(key);
            applying.folded.count_messages(0, -1);
        }
    }
    Ok(())
}

/// Adds to the number of messages that wait.
pub(crate) fn add_counts(state: &mut Staging, keys: &Keys, by: MessageCounts) -> Result<(), Halt> {
    if by == MessageCounts::default() {
        return Ok(());
    }
    let key = keys.message_counts();
    let row = state.get(&key)?;
    let before = row.map_or(Ok(MessageCounts::default()), |row| decode_counts(&row))?;
    let after = MessageCounts { due: before.due + by.due, publish: before.publish + by.publish };
    if after.due < 0 || after.publish < 0 {
        return Err(Halt::Inconsistent(format!("R6: {before:?} messages wait, and {by:?} more")));
    }
    state.put_encoded(key, |writer| {
        writer.u8(FORMAT).i64(after.due).i64(after.publish);
    });
    Ok(())
}

/// The number of waiting messages in a view.
pub fn waiting(view: &dyn View, keys: &Keys) -> Result<MessageCounts, Halt> {
    view.get(&keys.message_counts())?.map_or(Ok(MessageCounts::default()), |row| decode_counts(&row))
}

fn decode_counts(row: &[u8]) -> Result<MessageCounts, Halt> {
    let read = || {
        let mut reader = Reader::new(row);
        reader.format(FORMAT)?;
        let counts = MessageCounts { due: reader.i64()?, publish: reader.i64()? };
        reader.end().map(|()| counts)
    };
    read().map_err(|error| Halt::Undecodable { what: "the number of messages", error })
}

/// A message that waits, with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingMessage {
    /// The group that sent it.
    pub source: String,
    /// The queue that it is for; none if it is for a group.
    pub topic: Option<String>,
    /// When it is due, wall µs; none if it waits to be published.
    pub due_us: Option<u64>,
    /// The command that sent it, or that released it when it was due.
    pub commit: u64,
    /// Its place among that command's messages.
    pub ordinal: u32,
}

/// Waiting messages of all spaces, those to publish first; at most `limit`. Examines at most `rows_max` rows of the due
/// index.
pub fn list_waiting(
    view: &dyn View,
    keys: &Keys,
    buckets: Buckets,
    limit: usize,
    rows_max: usize,
) -> Result<Vec<WaitingMessage>, Halt> {
    let mut found = Vec::new();
    for bucket in 0..buckets.count() {
        for row in view.scan(&KeyRange::prefix(&keys.publish_prefix(bucket)), Order::Ascending) {
            if found.len() == limit {
                return Ok(found);
            }
            let (key, value) = row?;
            let place = read_publish_key(&key).ok_or_else(|| Halt::Inconsistent("a foreign key to publish".into()))?;
            found.push(waiting_message(&value, None, place.1, place.2)?);
        }
    }
    let mut looked_at = 0;
    for bucket in 0..buckets.count() {
        let prefix = keys.due_prefix(DueClock::Wall, bucket);
        for row in view.scan(&KeyRange::prefix(&prefix), Order::Ascending) {
            looked_at += 1;
            if found.len() == limit || looked_at > rows_max {
                return Ok(found);
            }
            let (key, value) = row?;
            if let Some((at_us, Due::Send { commit, ordinal })) = read_due_suffix(&key[prefix.len()..]) {
                found.push(waiting_message(&value, Some(at_us), commit, ordinal)?);
            }
        }
    }
    Ok(found)
}

fn waiting_message(row: &[u8], due_us: Option<u64>, commit: u64, ordinal: u32) -> Result<WaitingMessage, Halt> {
    let stored = Stored::decode(row)?;
    let topic = match stored.send.target {
        Target::Topic { topic, .. } => Some(topic.to_owned()),
        Target::Transact(_) => None,
    };
    Ok(WaitingMessage { source: stored.source.to_owned(), topic, due_us, commit, ordinal })
}
