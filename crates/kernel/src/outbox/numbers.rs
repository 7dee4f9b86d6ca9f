//! The numbers of messages: each bucket counts its own.
//!
//! A message gets a number when it is sent, which orders those that are due at the same time. One that was due later gets
//! another one when it is released, so numbers rise in the order in which messages leave their bucket: who takes them needs
//! to remember only the highest number of each bucket. Numbers belong to the bucket, not to the shard, so they go on
//! rising when the bucket moves to another shard. A number can be skipped, and none is given twice.
//!
//! Touches: the `MessageNumbers` row of a bucket, written once per entry and never deleted. Keeps: R6.

use std::collections::BTreeMap;

use kv::{DecodeError, Reader, Staging, Writer};
use session::Halt;

use crate::keys::Keys;

const FORMAT: u8 = 1;

/// The highest number that an import accepts: from there on, no bucket comes to the end of its numbers.
pub(crate) const IMPORTED_MAX: u64 = u64::MAX / 2;

/// The last numbers of the buckets from which the entry at hand sends.
#[derive(Default)]
pub(crate) struct MessageNumbers {
    buckets: BTreeMap<u16, Last>,
    /// The last numbers as they were, of each change since the savepoint.
    before: Vec<(u16, u64)>,
}

struct Last {
    /// As its row says.
    stored: u64,
    given: u64,
}

impl MessageNumbers {
    /// Sets the point to which [`undo`](Self::undo) returns.
    pub(crate) fn savepoint(&mut self) {
        self.before.clear();
    }

    /// Takes back the numbers given since the savepoint.
    pub(crate) fn undo(&mut self) {
        for (bucket, before) in self.before.drain(..).rev() {
            if let Some(last) = self.buckets.get_mut(&bucket) {
                last.given = before;
            }
        }
    }

    /// Gives the next number of a bucket.
    pub(crate) fn next(&mut self, state: &Staging, keys: &Keys, bucket: u16) -> Result<u64, Halt> {
        let last = self.last(state, keys, bucket)?;
        let before = last.given;
        last.given =
            before.checked_add(1).ok_or_else(|| Halt::Inconsistent("R6: a bucket has no more numbers".into()))?;
        let next = last.given;
        self.before.push((bucket, before));
        Ok(next)
    }

    /// Notes that a number of a bucket was given elsewhere.
    pub(crate) fn raise(&mut self, state: &Staging, keys: &Keys, bucket: u16, number: u64) -> Result<(), Halt> {
        let last = self.last(state, keys, bucket)?;
        let before = last.given;
        last.given = before.max(number);
        self.before.push((bucket, before));
        Ok(())
    }

    fn last(&mut self, state: &Staging, keys: &Keys, bucket: u16) -> Result<&mut Last, Halt> {
        use std::collections::btree_map::Entry;
        Ok(match self.buckets.entry(bucket) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let row = keys.get_either(&keys.message_numbers(bucket), |key| state.get(key))?;
                let stored = row.map_or(Ok(0), |row| decode(&row))?;
                unknown.insert(Last { stored, given: stored })
            }
        })
    }

    /// Writes the rows at the end of an entry.
    pub(crate) fn write(&mut self, state: &mut Staging, keys: &Keys) {
        self.before.clear();
        for (bucket, last) in std::mem::take(&mut self.buckets) {
            if last.given != last.stored {
                state.put_encoded(keys.message_numbers(bucket), |writer| encode(writer, last.given));
            }
        }
    }
}

/// Writes the row of a number.
pub(crate) fn encode(writer: &mut Writer, number: u64) {
    writer.u8(FORMAT).u64(number);
}

/// Reads the row of a number.
pub fn decode(row: &[u8]) -> Result<u64, Halt> {
    let read = || {
        let mut reader = Reader::new(row);
        reader.format(FORMAT)?;
        let number = reader.u64()?;
        reader.end().map(|()| number)
    };
    read().map_err(|error: DecodeError| Halt::Undecodable { what: "the number of a message", error })
}

#[cfg(test)]
mod tests {
    use kv::{MemoryStore, Store};

    use super::*;
    use crate::BucketRange;

    /// Part of the stored format; `docs/formats/records.md`.
    #[test]
    fn golden_numbers() {
        let mut writer = Writer::new();
        encode(&mut writer, 258);
        assert_eq!(writer.as_slice(), [1, 2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(decode(writer.as_slice()).expect("a number"), 258);
        assert!(decode(&writer.as_slice()[..8]).is_err() && decode(&[2; 9]).is_err());
    }

    #[test]
    fn numbers_that_were_taken_back_are_given_again_and_an_entry_writes_one_row() {
        let store = MemoryStore::new();
        let (mut numbers, keys) = (MessageNumbers::default(), Keys::new(1, BucketRange::ALL));
        let mut state = Staging::new(store.view().expect("a view"));
        let mut next = |bucket| numbers.next(&state, &keys, bucket).expect("a number");
        assert_eq!([next(3), next(3), next(4)], [1, 2, 1]);
        numbers.savepoint();
        assert_eq!([3, 3, 4, 5].map(|bucket| numbers.next(&state, &keys, bucket).expect("a number")), [3, 4, 2, 1]);
        numbers.undo();
        assert_eq!([3, 4].map(|bucket| numbers.next(&state, &keys, bucket).expect("a number")), [3, 2]);
        numbers.write(&mut state, &keys);
        let rows: Vec<_> = [3, 4, 5].map(|bucket| state.get(&keys.message_numbers(bucket)).expect("read")).into();
        let last: Vec<_> = rows.into_iter().map(|row| row.map(|row| decode(&row).expect("a number"))).collect();
        assert_eq!(last, [Some(3), Some(2), None], "a bucket that has sent nothing has no row");
        numbers.raise(&state, &keys, 3, 9).expect("raised");
        numbers.raise(&state, &keys, 3, 7).expect("raised");
        assert_eq!(numbers.next(&state, &keys, 3).expect("a number"), 10);
    }
}
