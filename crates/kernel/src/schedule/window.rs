//! The low end of an index, kept in memory: finds the next entry without walking over removed ones.
//!
//! An index starts with its bucket, so the next entry may be in any of many buckets; and a processed queue leaves the
//! tombstones of everything that was in it. A window holds the first entries of each bucket, and where they are not known
//! any further. It is only a cache: it answers what the rows say, and can be dropped at any time.
//!
//! Keeps: a bucket is known up to some end, or completely; exactly its known entries are in it. `heads` has for each
//! bucket its first entry, or its end if it has none.

use std::collections::{BTreeMap, BTreeSet};

use kv::{Key, KeyRange, Order, Staging, skip_set_apart};
use session::Halt;

/// Entries of a bucket read at a time: few at first, since most queues are short or seldom used, then more.
const CHUNK_FIRST: usize = 4;
const CHUNK_MAX: usize = 64;

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
    buckets: BTreeMap<u16, Known>,
    /// The first entry of each bucket that has one, or how far it is known: then the rest must be read first.
    heads: BTreeSet<(Entry, Head)>,
    /// Entries of all buckets.
    count: usize,
    chunk_max: usize,
    /// Whether entries that are damaged and set apart are left out, instead of being an error.
    skips_damage: bool,
}

/// What a head is. At the same place, unread entries come first: they may be anything after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Head {
    Unread,
    Entry,
}

/// The known part of a bucket.
struct Known {
    entries: BTreeSet<Key>,
    /// How far it is known; none if completely.
    through: Option<Key>,
    chunk: usize,
}

impl Default for Known {
    /// Nothing is there, and that is known.
    fn default() -> Self {
        Self { entries: BTreeSet::new(), through: None, chunk: CHUNK_FIRST }
    }
}

impl Known {
    fn head(&self, bucket: u16) -> Option<(Entry, Head)> {
        let entry = self.entries.first().map(|suffix| (suffix, Head::Entry));
        let (suffix, head) = entry.or_else(|| Some((self.through.as_ref()?, Head::Unread)))?;
        Some((Entry { suffix: suffix.clone(), bucket }, head))
    }
}

impl Window {
    /// Starts with these buckets, of which nothing is read and nothing is before the given suffix. All others are known
    /// to have nothing.
    pub(crate) fn begin(&mut self, buckets: impl Iterator<Item = (u16, Key)>) {
        let known = |through| Known { through: Some(through), ..Known::default() };
        self.buckets = buckets.map(|(bucket, through)| (bucket, known(through))).collect();
        self.heads = self.buckets.iter().filter_map(|(bucket, known)| known.head(*bucket)).collect();
        self.count = 0;
        self.chunk_max = (CHUNKS_ENTRIES / self.buckets.len().max(1)).clamp(1, CHUNK_MAX);
    }

    /// A window that leaves out entries that are damaged and set apart.
    pub(crate) fn skipping_damage() -> Self {
        Self { skips_damage: true, ..Self::default() }
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.chunk_max != 0
    }

    /// The number of entries in memory.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Does something to the known part of a bucket, and keeps `heads` in step.
    fn change<T>(&mut self, bucket: u16, change: impl FnOnce(&mut Known) -> T) -> T {
        let known = self.buckets.entry(bucket).or_default();
        let before = known.head(bucket);
        let changed = change(known);
        let after = known.head(bucket);
        if before != after {
            before.map(|head| self.heads.remove(&head));
            self.heads.extend(after);
        }
        changed
    }

    /// An entry was added to the index.
    pub(crate) fn insert(&mut self, entry: Entry) {
        if !self.has_begun() {
            return;
        }
        let known = self.buckets.entry(entry.bucket).or_default();
        if known.through.as_ref().is_some_and(|through| entry.suffix > *through) {
            return;
        }
        // Most entries come after the first one, which then stays the head.
        let is_new = match known.entries.first() {
            Some(first) if *first < entry.suffix => known.entries.insert(entry.suffix),
            _ => self.change(entry.bucket, |known| known.entries.insert(entry.suffix)),
        };
        self.count += usize::from(is_new);
        if self.count > ENTRIES_MAX {
            self.cut();
        }
    }

    /// An entry was removed from the index.
    pub(crate) fn remove(&mut self, entry: &Entry) {
        if self.buckets.contains_key(&entry.bucket) {
            let was_there = self.change(entry.bucket, |known| known.entries.remove(&entry.suffix));
            self.count -= usize::from(was_there);
        }
    }

    /// Forgets the upper half of every bucket.
    fn cut(&mut self) {
        for known in self.buckets.values_mut() {
            for _ in 0..known.entries.len() / 2 {
                known.entries.pop_last();
                self.count -= 1;
                known.through = Some(known.entries.last().cloned().unwrap_or_default());
            }
        }
        self.heads = self.buckets.iter().filter_map(|(bucket, known)| known.head(*bucket)).collect();
    }

    /// The first entry. `range` returns the index's keys in a bucket; their first `prefix_bytes` are its prefix.
    pub(crate) fn first(
        &mut self,
        state: &Staging,
        range: impl Fn(u16) -> (KeyRange, usize),
    ) -> Result<Option<&Entry>, Halt> {
        // One bucket is read at a time, so that nobody waits long.
        while let Some((Entry { bucket, .. }, Head::Unread)) = self.heads.first() {
            let bucket = *bucket;
            self.read_on(state, range(bucket), bucket)?;
        }
        Ok(self.heads.first().map(|(entry, _)| entry))
    }

    /// The first entry of a bucket.
    pub(crate) fn first_in(
        &mut self,
        state: &Staging,
        bucket: u16,
        range: impl Fn(u16) -> (KeyRange, usize),
    ) -> Result<Option<&Key>, Halt> {
        let is_unread = |window: &Self| {
            window.buckets.get(&bucket).is_some_and(|known| known.entries.is_empty() && known.through.is_some())
        };
        while is_unread(self) {
            self.read_on(state, range(bucket), bucket)?;
        }
        Ok(self.buckets.get(&bucket).and_then(|known| known.entries.first()))
    }

    /// Reads what follows the known part of a bucket.
    fn read_on(&mut self, state: &Staging, (range, prefix_bytes): (KeyRange, usize), bucket: u16) -> Result<(), Halt> {
        let Some(Known { through: Some(through), chunk, .. }) = self.buckets.get(&bucket) else {
            return Ok(());
        };
        let (through, chunk) = (through.clone(), (*chunk).min(self.chunk_max));
        let mut start = range.start[..prefix_bytes].to_vec();
        start.extend_from_slice(&through);
        let range = KeyRange { start: start.max(range.start), end: range.end };
        let mut read: Vec<Key> = Vec::with_capacity(chunk);
        let rows = state.scan(&range, Order::Ascending);
        for row in if self.skips_damage { skip_set_apart(rows) } else { rows } {
            let suffix = Key::from(&row?.0[prefix_bytes..]);
            if suffix > through {
                read.push(suffix);
            }
            if read.len() == chunk {
                break;
            }
        }
        self.count += read.len();
        self.change(bucket, |known| {
            known.through = read.last().filter(|_| read.len() == chunk).cloned();
            known.chunk = (known.chunk * 4).min(CHUNK_MAX);
            known.entries.extend(read);
        });
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
        window.begin((0..BUCKETS).map(|bucket| (bucket, Key::default())));
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
        window.begin((0..BUCKETS).map(|bucket| (bucket, Key::default())));
        assert_eq!(window.first(&state, range).expect("no fault"), None);
        let count = u32::try_from(ENTRIES_MAX).expect("small") + 100;
        for number in (0..count).rev() {
            state.put(key(1, number), b"".as_slice());
            window.insert(entry(1, number));
        }
        assert!(window.len() <= ENTRIES_MAX, "it was cut");
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
        window.begin((0..BUCKETS).map(|bucket| (bucket, Key::default())));
        assert_eq!(window.first(&state, range).expect("no fault"), None);
        let count = u32::try_from(ENTRIES_MAX).expect("small") / 3;
        for number in 0..count {
            for bucket in 0..BUCKETS {
                state.put(key(bucket, number), b"".as_slice());
                window.insert(entry(bucket, number));
            }
        }
        assert!(window.len() <= ENTRIES_MAX, "it was cut");
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
