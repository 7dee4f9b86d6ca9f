//! How many records of a queue are in each state: kept when they change, so that nobody has to count.
//!
//! Touches: the `Counts` rows of the shard, one for each queue and type: its number in each state.

use kv::{Reader, Staging, Writer};
use session::Halt;

use crate::folded::CountKey;
use crate::keys::Keys;

const FORMAT: u8 = 1;

/// Adds to a count.
pub(crate) fn add(state: &mut Staging, keys: &Keys, key: &CountKey, by: i64) -> Result<(), Halt> {
    let row_key = keys.counts(key.space, key.branch, &key.queue, key.record_type);
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
