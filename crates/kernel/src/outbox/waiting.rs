//! Messages that wait, as a view has them.

use std::collections::BTreeMap;

use kv::{KeyRange, Order, View};
use session::Halt;

use super::{MessageState, Stored};
use crate::catalogue::Catalogue;
use crate::counts::{MessageCounts, decode_dead_letters, decode_messages};
use crate::keys::Keys;
use crate::keys::due::{Due, DueClock, read_due_suffix};
use crate::keys::messages::{read_outgoing_key, read_publish_key};
use crate::outbox::command::Target;

/// The number of waiting messages in a view.
pub fn waiting(view: &dyn View, keys: &Keys) -> Result<MessageCounts, Halt> {
    view.get(&keys.message_counts())?.map_or(Ok(MessageCounts::default()), |row| decode_messages(&row))
}

/// The numbers of dead letters in a view, by space; spaces without one are left out.
pub fn dead_letters_of_spaces(view: &dyn View, keys: &Keys) -> Result<BTreeMap<u32, u64>, Halt> {
    let mut counts = BTreeMap::new();
    for row in view.scan(&keys.dead_letters_of_spaces(), Order::Ascending) {
        let (key, row) = row?;
        let space = key.last_chunk().ok_or_else(|| Halt::Inconsistent("a foreign key among counts".into()))?;
        counts.insert(u32::from_be_bytes(*space), decode_dead_letters(&row)?);
    }
    Ok(counts)
}

/// A message that waits, with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingMessage {
    /// The group that sent it.
    pub source: String,
    /// The queue that it is for; none if it is for a group.
    pub topic: Option<String>,
    /// What it waits for.
    pub state: MessageState,
    /// The bucket of the group that sent it.
    pub bucket: u16,
    /// Its number in that bucket: the one that it got when it was sent, or when it was released.
    pub number: u64,
}

/// Waiting messages of all spaces, those to publish first, then those to other shards; at most `limit`. Examines at most `rows_max` rows of the due
/// index.
pub fn list_waiting(
    view: &dyn View,
    keys: &Keys,
    catalogue: &Catalogue,
    limit: usize,
    rows_max: usize,
) -> Result<Vec<WaitingMessage>, Halt> {
    let mut found = Vec::new();
    for state in [MessageState::Publish, MessageState::Outgoing] {
        for bucket in catalogue.buckets_here() {
            let (prefix, read): (_, fn(&[u8]) -> _) = match state {
                MessageState::Outgoing => (keys.outgoing_prefix(bucket), read_outgoing_key),
                _ => (keys.publish_prefix(bucket), read_publish_key),
            };
            for row in view.scan(&KeyRange::prefix(&prefix), Order::Ascending) {
                if found.len() == limit {
                    return Ok(found);
                }
                let (key, value) = row?;
                let place = read(&key).ok_or_else(|| Halt::Inconsistent("a foreign key among messages".into()))?;
                found.push(waiting_message(&value, state, place)?);
            }
        }
    }
    let mut looked_at = 0;
    for bucket in catalogue.buckets_here() {
        let prefix = keys.due_prefix(DueClock::Wall, bucket);
        for row in view.scan(&KeyRange::prefix(&prefix), Order::Ascending) {
            looked_at += 1;
            if found.len() == limit || looked_at > rows_max {
                return Ok(found);
            }
            let (key, value) = row?;
            if let Some((at_us, Due::Send { number })) = read_due_suffix(&key[prefix.len()..]) {
                found.push(waiting_message(&value, MessageState::Due(at_us), (bucket, number))?);
            }
        }
    }
    Ok(found)
}

fn waiting_message(row: &[u8], state: MessageState, (bucket, number): (u16, u64)) -> Result<WaitingMessage, Halt> {
    let stored = Stored::decode(row)?;
    let topic = match stored.send.target {
        Target::Topic { topic, .. } => Some(topic.to_owned()),
        Target::Transact(_) => None,
    };
    Ok(WaitingMessage { source: stored.source.to_owned(), topic, state, bucket, number })
}
