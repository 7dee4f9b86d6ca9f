//! Where the entries of a shard are: a few places in the files, from which the batches are walked.
//!
//! Keeps: at least one place for each segment with entries, and another every [`PLACE_BYTES`], so memory grows with the
//! bytes of the files and not with the number of entries. Never: reads a file.

use std::collections::VecDeque;

use crate::log::Position;
use crate::watermark::Mark;

/// A segment has a place of a shard about every so many bytes.
const PLACE_BYTES: u64 = 256 << 10;

/// How many segments a shard with a single entry may lag before that entry is moved.
pub(crate) const SEGMENTS_BEHIND_MAX: u64 = 2;

/// A batch of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchPlace {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) first_index: u64,
}

/// The kept entries of a shard, or where its first entry is going to follow.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShardIndex {
    pub(crate) first_index: u64,
    pub(crate) last_index: u64,
    pub(crate) last_hash: u64,
    /// The history of its entries; none if nobody has said yet.
    pub(crate) history: Option<u64>,
    /// Oldest first; empty if there are no entries yet.
    places: VecDeque<BatchPlace>,
}

impl ShardIndex {
    /// A shard without entries, whose first one will be behind `at` in a history.
    pub(crate) fn starting_after(at: Position, history: u64) -> Self {
        Self { last_index: at.index, last_hash: at.hash, history: Some(history), ..Self::default() }
    }

    /// The last entry, or what the first one will be behind.
    pub(crate) fn last(&self) -> Position {
        Position { index: self.last_index, hash: self.last_hash }
    }

    pub(crate) fn has_entries(&self) -> bool {
        !self.places.is_empty()
    }

    pub(crate) fn mark(&self) -> Option<Mark> {
        self.has_entries().then_some(Mark { first_kept: self.first_index, last: self.last_index })
    }

    /// A batch with entries up to `last_index` is at `place`. It either continues the shard or holds its last entry
    /// once more.
    pub(crate) fn add(&mut self, place: BatchPlace, last_index: u64) {
        let moved = self.has_entries() && place.first_index == self.last_index;
        if !self.has_entries() {
            self.first_index = place.first_index;
        }
        let is_far = |last: &BatchPlace| last.segment != place.segment || place.offset - last.offset >= PLACE_BYTES;
        if moved || self.places.back().is_none_or(is_far) {
            self.places.push_back(place);
        }
        self.last_index = last_index;
        if moved {
            self.forget_unneeded();
        }
    }

    /// Whether a batch that begins with this entry fits here.
    pub(crate) fn follows(&self, first_index: u64, entries: u32) -> bool {
        !self.has_entries() || first_index == self.last_index + 1 || (first_index == self.last_index && entries == 1)
    }

    /// The place to walk from to find an entry.
    pub(crate) fn find(&self, index: u64) -> Option<BatchPlace> {
        let after = self.places.partition_point(|place| place.first_index <= index);
        after.checked_sub(1).map(|position| self.places[position])
    }

    /// Forgets the entries before `first_kept`.
    pub(crate) fn cut(&mut self, first_kept: u64) {
        self.first_index = self.first_index.max(first_kept.min(self.last_index));
        self.forget_unneeded();
    }

    fn forget_unneeded(&mut self) {
        while self.places.get(1).is_some_and(|next| next.first_index <= self.first_index) {
            self.places.pop_front();
        }
    }

    /// The oldest place that is needed.
    pub(crate) fn oldest(&self) -> Option<BatchPlace> {
        self.places.front().copied()
    }

    /// The first kept entry is in this batch, which is at or after the oldest place and before the next one.
    pub(crate) fn set_oldest(&mut self, place: BatchPlace) {
        if let Some(oldest) = self.places.front_mut() {
            *oldest = place;
        }
    }

    /// Whether only the last entry is kept.
    pub(crate) fn rests(&self) -> bool {
        self.has_entries() && self.first_index == self.last_index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(segment: u64, offset: u64, first_index: u64) -> BatchPlace {
        BatchPlace { segment, offset, first_index }
    }

    #[test]
    fn a_segment_is_free_when_all_its_entries_are_given_up() {
        let mut index = ShardIndex::default();
        index.add(place(1, 24, 1), 10);
        index.add(place(2, 24, 11), 20);
        index.cut(10);
        assert_eq!(index.oldest(), Some(place(1, 24, 1)), "segment 1 holds entry 10");
        index.cut(11);
        assert_eq!(index.oldest(), Some(place(2, 24, 11)));
        index.cut(5);
        assert_eq!(index.first_index, 11, "a cut never brings entries back");
        index.cut(1000);
        assert_eq!((index.first_index, index.rests()), (20, true));
    }

    #[test]
    fn places_are_as_far_apart_as_they_may_be() {
        let mut index = ShardIndex::default();
        for number in 0..5000 {
            index.add(place(1, 24 + number * 1000, number + 1), number + 1);
        }
        assert_eq!(index.places.len(), 20);
        let found = index.find(2000).expect("it is there");
        assert!(found.first_index <= 2000 && 2000 - found.first_index < 263, "{found:?}");
        assert_eq!(ShardIndex::default().find(1), None);
    }

    #[test]
    fn an_entry_that_was_moved_is_found_where_it_went() {
        let mut index = ShardIndex::default();
        index.add(place(1, 24, 1), 2);
        index.cut(2);
        assert!(index.follows(3, 7) && index.follows(2, 1) && !index.follows(2, 2) && !index.follows(4, 1));
        index.add(place(9, 500, 2), 2);
        assert_eq!((index.oldest(), index.find(2)), (Some(place(9, 500, 2)), Some(place(9, 500, 2))));
        index.add(place(9, 600, 3), 3);
        assert_eq!((index.first_index, index.last_index), (2, 3));
    }

    /// Power was lost after an entry was moved and before anybody knew that those before it were given up.
    #[test]
    fn a_moved_entry_does_not_hide_those_before_it() {
        let mut index = ShardIndex::default();
        index.add(place(1, 24, 1), 2);
        index.add(place(9, 500, 2), 2);
        assert_eq!((index.find(1), index.find(2)), (Some(place(1, 24, 1)), Some(place(9, 500, 2))));
    }
}
