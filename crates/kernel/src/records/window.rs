//! The low end of an index, kept in memory: finds the next entry without walking over removed ones.
//!
//! An index starts with its bucket, so the next entry may be in any of many buckets; and a processed queue leaves the
//! tombstones of everything that was in it. A window holds the first entries of all buckets together. It is only a
//! cache: it answers what the rows say, and can be dropped at any time.
//!
//! Keeps: a bucket is known up to some end, or completely; exactly its known entries are in `entries`.

use std::collections::{BTreeMap, BTreeSet};

use kv::{Key, KeyRange, Order, Staging};
use session::Halt;

/// Entries of a bucket read at a time, unless there are very many buckets.
const CHUNK_ENTRIES: usize = 64;

/// With very many buckets, fewer entries of each are read at a time; this is the total.
const CHUNKS_ENTRIES: usize = 4_096;

/// A window is cut when it holds more entries than this.
const ENTRIES_MAX: usize = 8_192;

/// An entry of an index: its key after the index's prefix, and its bucket. Sorts in reading order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) suffix: Key,
    pub(crate) bucket: u16,
}

/// The first entries of an index, across all buckets.
#[derive(Default)]
pub(crate) struct Window {
    entries: BTreeSet<Entry>,
    /// How far the buckets are known that are not known completely.
    through: BTreeMap<u16, Key>,
    /// The same, the lowest end first.
    ends: BTreeSet<Entry>,
    /// Entries of a bucket that are read at a time.
    chunk: usize,
}

impl Window {
    /// Starts with these buckets unread. All others are known to have nothing.
    pub(crate) fn begin(&mut self, buckets: impl Iterator<Item = u16>) {
        self.through = buckets.map(|bucket| (bucket, Key::default())).collect();
        self.ends = self.through.keys().map(|bucket| Entry { suffix: Key::default(), bucket: *bucket }).collect();
        self.chunk = (CHUNKS_ENTRIES / self.through.len().max(1)).clamp(1, CHUNK_ENTRIES);
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.chunk != 0
    }

    /// An entry was added to the index.
    pub(crate) fn insert(&mut self, entry: Entry) {
        let is_known = self.through.get(&entry.bucket).is_none_or(|end| entry.suffix <= *end);
        if is_known && self.has_begun() {
            self.entries.insert(entry);
            if self.entries.len() > ENTRIES_MAX {
                self.cut();
            }
        }
    }

    /// An entry was removed from the index.
    pub(crate) fn remove(&mut self, entry: &Entry) {
        self.entries.remove(entry);
    }

    /// Forgets the upper half.
    fn cut(&mut self) {
        let mut forgotten = BTreeSet::new();
        let mut boundary = Key::default();
        // The same queue may stand at the same place in several buckets: these are forgotten together.
        while let Some(last) = self.entries.last()
            && (self.entries.len() > ENTRIES_MAX / 2 || last.suffix == boundary)
        {
            let entry = self.entries.pop_last().expect("it was just looked at");
            forgotten.insert(entry.bucket);
            boundary = entry.suffix;
        }
        let known = self.entries.last().map(|last| last.suffix.clone()).unwrap_or_default();
        for bucket in forgotten {
            let end = self.through.entry(bucket).or_insert_with(|| known.clone());
            if *end > known {
                end.clone_from(&known);
            }
        }
        self.ends = self.through.iter().map(|(bucket, end)| Entry { suffix: end.clone(), bucket: *bucket }).collect();
    }

    /// The first entry. `range` returns the index's keys in a bucket; their first `prefix_bytes` are its prefix.
    pub(crate) fn first(
        &mut self,
        state: &Staging,
        range: impl Fn(u16) -> (KeyRange, usize),
    ) -> Result<Option<&Entry>, Halt> {
        // Unknown entries are after the lowest end. One bucket is read at a time, so that nobody waits long.
        while let Some(end) = self.ends.first()
            && self.entries.first().is_none_or(|first| first > end)
        {
            let end = end.clone();
            self.read_on(state, range(end.bucket), &end)?;
        }
        Ok(self.entries.first())
    }

    /// Reads what follows the known part of a bucket.
    fn read_on(&mut self, state: &Staging, (range, prefix_bytes): (KeyRange, usize), end: &Entry) -> Result<(), Halt> {
        let bucket = end.bucket;
        let mut start = range.start[..prefix_bytes].to_vec();
        start.extend_from_slice(&end.suffix);
        let range = KeyRange { start: start.max(range.start), end: range.end };
        let mut read: Vec<Entry> = Vec::new();
        for row in state.scan(&range, Order::Ascending) {
            let entry = Entry { suffix: Key::from(&row?.0[prefix_bytes..]), bucket };
            if entry > *end {
                read.push(entry);
            }
            if read.len() == self.chunk {
                break;
            }
        }
        self.ends.remove(end);
        match read.last() {
            Some(last) if read.len() == self.chunk => {
                self.through.insert(bucket, last.suffix.clone());
                self.ends.insert(Entry { suffix: last.suffix.clone(), bucket });
            }
            _ => {
                self.through.remove(&bucket);
            }
        }
        self.entries.extend(read);
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
        let mut window = Window::default();
        window.begin(0..BUCKETS);
        let mut taken = Vec::new();
        while let Some(first) = window.first(&state, range).expect("no fault").cloned() {
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
        let mut window = Window::default();
        window.begin(0..BUCKETS);
        assert_eq!(window.first(&state, range).expect("no fault"), None);
        let count = u32::try_from(ENTRIES_MAX).expect("small") + 100;
        for number in (0..count).rev() {
            state.put(key(1, number), b"".as_slice());
            window.insert(entry(1, number));
        }
        assert!(!window.ends.is_empty(), "it was cut");
        for number in 0..count {
            let first = window.first(&state, range).expect("no fault").cloned().expect("one more");
            assert_eq!(first, entry(1, number));
            state.delete(key(1, number));
            window.remove(&first);
        }
        assert_eq!(window.first(&state, range).expect("no fault"), None);
    }

    /// A queue below may stand at the same place in every bucket, and the cut may fall right there.
    #[test]
    fn a_cut_between_equal_entries_of_two_buckets_loses_none() {
        let store = MemoryStore::new();
        let mut state = Staging::new(store.view().expect("a view") as Arc<_>);
        let mut window = Window::default();
        window.begin(0..BUCKETS);
        assert_eq!(window.first(&state, range).expect("no fault"), None);
        let count = u32::try_from(ENTRIES_MAX).expect("small") / 3;
        for number in 0..count {
            for bucket in 0..BUCKETS {
                state.put(key(bucket, number), b"".as_slice());
                window.insert(entry(bucket, number));
            }
        }
        assert!(!window.ends.is_empty(), "it was cut");
        for number in 0..count {
            for bucket in 0..BUCKETS {
                let first = window.first(&state, range).expect("no fault").cloned().expect("one more");
                assert_eq!(first, entry(bucket, number));
                state.delete(key(bucket, number));
                window.remove(&first);
            }
        }
        assert_eq!(window.first(&state, range).expect("no fault"), None);
    }
}
