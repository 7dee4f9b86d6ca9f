//! Numbers that are maintained as things change, so that nothing has to be counted: records and runs in each state, and
//! messages that wait.
//!
//! Touches: the `Counts`, `RunCounts` and `MessageCounts` rows of the shard.

use kv::{Key, Reader, Staging, Writer};
use session::Halt;

use crate::contracts::with_contracts;
use crate::keys::Keys;

const FORMAT: u8 = 1;

/// A contract whose things are counted, or are not.
pub(crate) trait Counting {
    /// The row of a count; none if its things are not counted.
    fn count_row(_keys: &Keys, _count: &CountKey) -> Option<Key> {
        None
    }

    /// The queue that counts what a queue counts too.
    fn counted_above(_queue: &str) -> Option<&str> {
        None
    }
}

macro_rules! counting {
    ($($folder:ident: $contract:ident { $kind:ident, $act:ident, $guard:ident, $item:ident, $trim:ident })*) => {
        /// The contract whose things are counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[expect(dead_code, reason = "cells are not counted")]
        pub(crate) enum CountOf {
            $($contract,)*
        }

        /// The row of a count.
        pub(crate) fn row_key(keys: &Keys, count: &CountKey) -> Key {
            let key = match count.of {
                $(CountOf::$contract => crate::$folder::contract::$contract::count_row(keys, count),)*
            };
            key.expect("only what has a row is counted")
        }

        /// The queue that counts what a queue counts too.
        fn above(of: CountOf, queue: &str) -> Option<&str> {
            match of {
                $(CountOf::$contract => crate::$folder::contract::$contract::counted_above(queue),)*
            }
        }
    };
}

with_contracts!(counting);

/// Which count: of the things of a queue, of one type, in one state. The kind of a run takes the place of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Counted<Name> {
    pub(crate) of: CountOf,
    pub(crate) space: u32,
    pub(crate) branch: u32,
    pub(crate) queue: Name,
    pub(crate) record_type: u32,
    pub(crate) state: u8,
}

/// A count whose queue's name is its own.
pub(crate) type CountKey = Counted<String>;

impl CountKey {
    pub(crate) fn is(&self, other: &Counted<&str>) -> bool {
        let numbers = (self.of, self.space, self.branch, self.record_type, self.state);
        numbers == (other.of, other.space, other.branch, other.record_type, other.state) && self.queue == other.queue
    }

    /// Visits the counts of the queues above: a queue counts what is in the queues below it too.
    pub(crate) fn for_each_above(&self, mut visit: impl FnMut(CountKey)) {
        let mut higher = above(self.of, &self.queue);
        while let Some(queue) = higher {
            visit(CountKey { queue: queue.to_owned(), ..*self });
            higher = above(self.of, queue);
        }
    }
}

/// The number of waiting messages: for their time or their group, and to be published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// For their time, or to be applied in a group.
    pub due: i64,
    /// To be published.
    pub publish: i64,
}

impl MessageCounts {
    /// All that wait.
    pub(crate) fn total(self) -> i64 {
        self.due + self.publish
    }
}

/// Adds to a count.
pub(crate) fn add(state: &mut Staging, keys: &Keys, key: &CountKey, by: i64) -> Result<(), Halt> {
    let row_key = row_key(keys, key);
    let mut counts = match state.get(&row_key)? {
        None => Vec::new(),
        Some(row) => decode(&row)?,
    };
    let place = usize::from(key.state);
    if counts.len() <= place {
        counts.resize(place + 1, 0);
    }
    let count = counts[place].checked_add_signed(by);
    counts[place] = count.ok_or_else(|| Halt::Inconsistent(format!("a count below zero: {key:?} by {by}")))?;
    if counts.iter().all(|count| *count == 0) {
        state.delete(row_key);
    } else {
        state.put_encoded(row_key, |writer| encode(writer, &counts));
    }
    Ok(())
}

fn encode(writer: &mut Writer, counts: &[u64]) {
    writer.u8(FORMAT);
    for count in counts {
        writer.u64(*count);
    }
}

/// The number in each state, by the state's number in its type; states beyond the last have none.
pub fn decode(row: &[u8]) -> Result<Vec<u64>, Halt> {
    let read = || {
        let mut reader = Reader::new(row);
        reader.format(FORMAT)?;
        let mut counts = Vec::new();
        while !reader.rest().is_empty() {
            counts.push(reader.u64()?);
        }
        Ok(counts)
    };
    read().map_err(|error| Halt::Undecodable { what: "a row of counts", error })
}

/// Adds to the number of messages that wait.
pub(crate) fn add_messages(state: &mut Staging, keys: &Keys, by: MessageCounts) -> Result<(), Halt> {
    if by == MessageCounts::default() {
        return Ok(());
    }
    let key = keys.message_counts();
    let row = state.get(&key)?;
    let before = row.map_or(Ok(MessageCounts::default()), |row| decode_messages(&row))?;
    let after = MessageCounts { due: before.due + by.due, publish: before.publish + by.publish };
    if after.due < 0 || after.publish < 0 {
        return Err(Halt::Inconsistent(format!("R6: {before:?} messages wait, and {by:?} more")));
    }
    state.put_encoded(key, |writer| {
        writer.u8(FORMAT).i64(after.due).i64(after.publish);
    });
    Ok(())
}

pub(crate) fn decode_messages(row: &[u8]) -> Result<MessageCounts, Halt> {
    let read = || {
        let mut reader = Reader::new(row);
        reader.format(FORMAT)?;
        let counts = MessageCounts { due: reader.i64()?, publish: reader.i64()? };
        reader.end().map(|()| counts)
    };
    read().map_err(|error| Halt::Undecodable { what: "the number of messages", error })
}
