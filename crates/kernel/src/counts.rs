//! Numbers that are maintained as things change, so that nothing has to be counted: records and runs in each state, and
//! messages that wait.
//!
//! Touches: the `Counts`, `RunCounts` and `MessageCounts` rows of the shard.

use kv::{DecodeError, Key, Reader, Staging, Writer};
use session::Halt;

use crate::contracts::with_contracts;
use crate::keys::Keys;
use crate::outbox::MessageState;

const FORMAT: u8 = 1;
const MESSAGES_FORMAT: u8 = 2;
/// With dead letters.
const DEAD_LETTERS_FORMAT: u8 = 3;

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

/// The number of waiting messages, by what they wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// For their time, or to be applied in a group.
    pub due: i64,
    /// To be published.
    pub publish: i64,
    /// For the shard of their group, which is another one.
    pub outgoing: i64,
    /// For somebody who sends them again: their group refused them.
    pub dead: i64,
}

impl MessageCounts {
    /// All that wait to be delivered.
    pub(crate) fn total(self) -> i64 {
        self.due + self.publish + self.outgoing
    }

    /// Each of them, with the word for what they wait for.
    pub fn by_word(mut self) -> [(&'static str, u64); 3] {
        let states = [MessageState::Due(0), MessageState::Publish, MessageState::Outgoing];
        states.map(|state| (state.word(), u64::try_from(*self.of_mut(state)).unwrap_or(0)))
    }

    /// Those that wait as this one does.
    pub(crate) fn of_mut(&mut self, state: MessageState) -> &mut i64 {
        match state {
            MessageState::Due(_) => &mut self.due,
            MessageState::Publish => &mut self.publish,
            MessageState::Outgoing => &mut self.outgoing,
        }
    }

    fn plus(self, by: Self) -> Self {
        Self {
            due: self.due + by.due,
            publish: self.publish + by.publish,
            outgoing: self.outgoing + by.outgoing,
            dead: self.dead + by.dead,
        }
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
    let row = match state.get(&key).map_err(Halt::from) {
        // Whatever waits goes on without being counted; who would send more is refused.
        Err(halt) if halt.set_apart().is_some() => return Ok(()),
        read => read?,
    };
    let before = row.map_or(Ok(MessageCounts::default()), |row| decode_messages(&row))?;
    let after = before.plus(by);
    if [after.due, after.publish, after.outgoing, after.dead].iter().any(|count| *count < 0) {
        return Err(Halt::Inconsistent(format!("R6: {before:?} messages wait, and {by:?} more")));
    }
    state.put_encoded(key, |writer| encode_messages(writer, after));
    Ok(())
}

/// Adds to the number of dead letters of a space.
pub(crate) fn add_dead_letters(state: &mut Staging, keys: &Keys, space: u32, by: i64) -> Result<(), Halt> {
    if by == 0 {
        return Ok(());
    }
    let key = keys.dead_letters_of_space(space);
    let row = match state.get(&key).map_err(Halt::from) {
        // They go on without being counted, as messages do.
        Err(halt) if halt.set_apart().is_some() => return Ok(()),
        read => read?,
    };
    let before = row.map_or(Ok(0), |row| decode_dead_letters(&row))?;
    match before.checked_add_signed(by) {
        Some(0) => state.delete(key),
        Some(after) => {
            state.put_encoded(key, |writer| encode(writer, &[after]));
        }
        None => return Err(Halt::Inconsistent(format!("R6: space {space} has {before} dead letters, and {by} more"))),
    }
    Ok(())
}

/// Reads the number of dead letters of a space.
pub(crate) fn decode_dead_letters(row: &[u8]) -> Result<u64, Halt> {
    let mut reader = Reader::new(row);
    let read = reader.format(FORMAT).and_then(|()| reader.u64()).and_then(|count| reader.end().map(|()| count));
    read.map_err(|error| Halt::Undecodable { what: "the number of dead letters", error })
}

pub(crate) fn encode_messages(writer: &mut Writer, counts: MessageCounts) {
    let MessageCounts { due, publish, outgoing, dead } = counts;
    // Without dead letters, as it was before there were any.
    writer.u8(if dead == 0 { MESSAGES_FORMAT } else { DEAD_LETTERS_FORMAT }).i64(due).i64(publish).i64(outgoing);
    if dead != 0 {
        writer.i64(dead);
    }
}

pub(crate) fn decode_messages(row: &[u8]) -> Result<MessageCounts, Halt> {
    let read = || {
        let mut reader = Reader::new(row);
        let has_dead = match reader.u8()? {
            MESSAGES_FORMAT => false,
            DEAD_LETTERS_FORMAT => true,
            _ => return Err(DecodeError { what: "an unknown format" }),
        };
        let (due, publish, outgoing) = (reader.i64()?, reader.i64()?, reader.i64()?);
        let counts = MessageCounts { due, publish, outgoing, dead: if has_dead { reader.i64()? } else { 0 } };
        reader.end().map(|()| counts)
    };
    read().map_err(|error| Halt::Undecodable { what: "the number of messages", error })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Part of the stored format; `docs/formats/records.md`.
    #[test]
    fn golden_number_of_messages() {
        let numbers = [[1, 0, 0, 0, 0, 0, 0, 0], [2, 1, 0, 0, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0, 0, 0]].concat();
        for (dead, bytes) in
            [(0, [&[2][..], &numbers].concat()), (4, [&[3][..], &numbers, &[4, 0, 0, 0, 0, 0, 0, 0]].concat())]
        {
            let counts = MessageCounts { due: 1, publish: 258, outgoing: 3, dead };
            let mut writer = Writer::new();
            encode_messages(&mut writer, counts);
            assert_eq!(writer.as_slice(), bytes);
            assert_eq!(decode_messages(writer.as_slice()).expect("counts"), counts);
        }
        assert!(decode_messages(&[1; 17]).is_err(), "an earlier format is refused");
        let mut of_space = Writer::new();
        encode(&mut of_space, &[258]);
        assert_eq!(of_space.as_slice(), [1, 2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(decode_dead_letters(of_space.as_slice()).expect("a count"), 258);
    }
}
