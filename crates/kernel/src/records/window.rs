//! The low end of an index, kept in memory: what is next is known without walking over what is gone.
//!
//! An index begins with its bucket, so what is next stands in any of many buckets; and behind a queue that was worked
//! off lie the tombstones of everything that was in it. A window holds the first entries of all buckets together. It is
//! a memory only: what it answers is what the rows say, and it can be forgotten at any time.
//!
//! Keeps: every entry up to `known_through` is in `entries`, and nothing else is.

use std::collections::BTreeSet;

use kv::{Key, KeyRange, Order, Staging};
use session::Halt;

/// Entries of each bucket that are read at a time.
const CHUNK_ENTRIES: usize = 32;

/// A window is cut when it holds more entries than this.
const ENTRIES_MAX: usize = 8_192;

/// An entry of an index: its key behind the index's prefix, and its bucket. Sorts as readers meet them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) suffix: Key,
    pub(crate) bucket: u16,
}

/// See the module.
pub(crate) struct Window {
    entries: BTreeSet<Entry>,
    /// None: every entry is here.
    known_through: Option<Entry>,
}

impl Window {
    /// Nothing is known yet.
    pub(crate) fn new() -> Self {
        Self { entries: BTreeSet::new(), known_through: Some(Entry { suffix: Key::default(), bucket: 0 }) }
    }

    /// An entry was added to the index.
    pub(crate) fn insert(&mut self, entry: Entry) {
        if self.known_through.as_ref().is_some_and(|known| entry > *known) {
            return;
        }
        self.entries.insert(entry);
        if self.entries.len() > ENTRIES_MAX {
            while self.entries.len() > ENTRIES_MAX / 2 {
                self.entries.pop_last();
            }
            self.known_through = self.entries.last().cloned();
        }
    }

    /// An entry was removed from the index.
    pub(crate) fn remove(&mut self, entry: &Entry) {
        self.entries.remove(entry);
    }

    /// The first entry. `range` gives the index's keys in a bucket, of which the first `prefix_bytes` are its prefix.
    pub(crate) fn first(
        &mut self,
        state: &Staging,
        buckets: u16,
        range: impl Fn(u16) -> (KeyRange, usize),
    ) -> Result<Option<&Entry>, Halt> {
        while self.entries.is_empty() {
            let Some(known) = self.known_through.take() else {
                return Ok(None);
            };
            self.read_on(state, buckets, &range, &known)?;
        }
        Ok(self.entries.first())
    }

    /// Reads what comes behind `known`.
    fn read_on(
        &mut self,
        state: &Staging,
        buckets: u16,
        range: &impl Fn(u16) -> (KeyRange, usize),
        known: &Entry,
    ) -> Result<(), Halt> {
        let mut known_through: Option<Entry> = None;
        for bucket in 0..buckets {
            let (range, prefix_bytes) = range(bucket);
            // From the known suffix on: an entry with the same suffix may stand in a later bucket.
            let mut start = range.start[..prefix_bytes].to_vec();
            start.extend_from_slice(&known.suffix);
            let range = KeyRange { start: start.max(range.start), end: range.end };
            let mut read = 0;
            for row in state.scan(&range, Order::Ascending) {
                let entry = Entry { suffix: Key::from(&row?.0[prefix_bytes..]), bucket };
                if entry <= *known {
                    continue;
                }
                read += 1;
                if read == CHUNK_ENTRIES {
                    if known_through.as_ref().is_none_or(|through| entry < *through) {
                        known_through = Some(entry.clone());
                    }
                    self.entries.insert(entry);
                    break;
                }
                self.entries.insert(entry);
            }
        }
        if let Some(through) = &known_through {
            let mut beyond = self.entries.split_off(through);
            if let Some(last_known) = beyond.take(through) {
                self.entries.insert(last_known);
            }
        }
        self.known_through = known_through;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kv::{Batch, MemoryStore, Store};

    use super::*;

    const BUCKETS: u16 = 4;

    fn key(bucket: u16, number: u32) -> Vec<u8> {
        [&[bucket.to_be_bytes()[1]][..], &number.to_be_bytes()].concat()
    }

    fn range(bucket: u16) -> (KeyRange, usize) {
        (KeyRange::prefix(&key(bucket, 0)[..1]), 1)
    }

    fn entry(bucket: u16, number: u32) -> Entry {
        Entry { suffix: Key::from(number.to_be_bytes()), bucket }
    }

    /// Takes everything through a window while more comes in, and compares with the order of the keys.
    #[test]
    fn entries_come_in_order_whatever_is_added_meanwhile() {
        let store = MemoryStore::new();
        let mut batch = Batch::new();
        for number in 0..1_000_u32 {
            // Bucket 3 is nearly empty, bucket 0 has most.
            let bucket = if number == 500 { 3 } else { u16::try_from(number % 7).expect("small") % 3 };
            batch = batch.put(key(bucket, number * 2), b"".as_slice());
        }
        store.commit(batch).expect("commit");
        let mut state = Staging::new(store.view().expect("a view") as Arc<_>);
        let mut window = Window::new();
        let mut taken = Vec::new();
        while let Some(first) = window.first(&state, BUCKETS, range).expect("no fault").cloned() {
            let number = u32::from_be_bytes(first.suffix.as_slice().try_into().expect("four bytes"));
            taken.push(number);
            state.delete(key(first.bucket, number));
            window.remove(&first);
            // Every tenth one adds another, close behind or far away.
            if number % 20 == 0 && number < 1_900 {
                for added in [number + 1, number + 611] {
                    state.put(key(2, added), b"".as_slice());
                    window.insert(entry(2, added));
                }
            }
        }
        let mut sorted = taken.clone();
        sorted.sort_unstable();
        assert_eq!(taken, sorted);
        assert_eq!(taken.len(), 1_000 + 2 * 95);
    }

    #[test]
    fn a_window_that_grew_too_long_is_cut_and_read_again() {
        let store = MemoryStore::new();
        let mut state = Staging::new(store.view().expect("a view") as Arc<_>);
        let mut window = Window::new();
        assert_eq!(window.first(&state, BUCKETS, range).expect("no fault"), None);
        let count = u32::try_from(ENTRIES_MAX).expect("small") + 100;
        for number in (0..count).rev() {
            state.put(key(1, number), b"".as_slice());
            window.insert(entry(1, number));
        }
        assert!(window.known_through.is_some(), "it was cut");
        for number in 0..count {
            let first = window.first(&state, BUCKETS, range).expect("no fault").cloned().expect("one more");
            assert_eq!(first, entry(1, number));
            state.delete(key(1, number));
            window.remove(&first);
        }
        assert_eq!(window.first(&state, BUCKETS, range).expect("no fault"), None);
    }
}
