//! Tracks which file holds each shard's oldest kept entry, to know when deleting files is worthwhile.
//!
//! Files are deleted whole and oldest first, and deleting starts new ones. It is therefore tried only when a whole file
//! has become free, and a shard that holds up the others by one old entry is found. Never: decides what may be deleted;
//! the engine below does. After a restart the positions here are guesses, and a wrong guess costs one more file.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use crate::frame::ShardId;

/// How many files a shard with a single entry may lag before that entry is moved.
const FILES_BEHIND_MAX: u64 = 2;

#[derive(Default)]
pub(crate) struct Kept {
    shards: BTreeMap<ShardId, Shard>,
}

struct Shard {
    last_index: u64,
    /// Entries up to here existed when the files were opened, so their positions are guesses.
    guessed_to: u64,
    /// Each file with entries, and the first of them; oldest first.
    places: VecDeque<Place>,
}

#[derive(Clone, Copy)]
struct Place {
    file: u64,
    first_index: u64,
}

impl Kept {
    /// Entries found when the files were opened, somewhere in `files`: taken to be spread evenly.
    pub(crate) fn recovered(&mut self, shard: ShardId, entries: RangeInclusive<u64>, files: RangeInclusive<u64>) {
        let (first, last) = entries.into_inner();
        let file_count = files.end() - files.start() + 1;
        let entry_count = last - first + 1;
        let place = |file: u64| {
            let share = u128::from(entry_count) * u128::from(file - files.start());
            let share = u64::try_from(share / u128::from(file_count)).unwrap_or(entry_count - 1);
            Place { file, first_index: first + share }
        };
        // A single entry is as likely in the oldest file as in any: the guess that deletes nothing.
        let file_last = if entry_count == 1 { *files.start() } else { *files.end() };
        let places = (*files.start()..=file_last).map(place).collect();
        self.shards.insert(shard, Shard { last_index: last, guessed_to: last, places });
    }

    /// Entries were written to `file`.
    pub(crate) fn appended(&mut self, shard: ShardId, file: u64, entries: RangeInclusive<u64>) {
        let (first_index, last_index) = entries.into_inner();
        let empty = || Shard { last_index, guessed_to: 0, places: VecDeque::new() };
        let shard = self.shards.entry(shard).or_insert_with(empty);
        shard.last_index = last_index;
        if shard.places.back().is_none_or(|place| place.file != file) {
            shard.places.push_back(Place { file, first_index });
        }
    }

    /// The entries before `first_kept` were discarded.
    pub(crate) fn cut(&mut self, shard: ShardId, first_kept: u64) {
        let Some(shard) = self.shards.get_mut(&shard) else {
            return;
        };
        while shard.places.get(1).is_some_and(|next| next.first_index <= first_kept) {
            shard.places.pop_front();
        }
        if let Some(oldest) = shard.places.front_mut() {
            oldest.first_index = oldest.first_index.max(first_kept);
        }
    }

    /// Whether there probably is a file to delete.
    pub(crate) fn should_delete(&self, oldest_file: u64) -> bool {
        let needed = self.shards.values().filter_map(Shard::oldest_file).min();
        needed.is_some_and(|needed| needed > oldest_file)
    }

    /// After deleting, `oldest_file` is the first: guesses that said otherwise were wrong.
    pub(crate) fn deleted(&mut self, oldest_file: u64) {
        for shard in self.shards.values_mut() {
            let guessed_to = shard.guessed_to;
            if let Some(oldest) = shard.places.front_mut()
                && (oldest.first_index <= guessed_to || oldest.file < oldest_file)
            {
                oldest.file = oldest_file;
            }
        }
    }

    /// A shard that keeps files alive only by its last entry, with the index of that entry.
    pub(crate) fn laggard(&self, active_file: u64) -> Option<(ShardId, u64)> {
        let rests = |shard: &Shard| shard.places.front().is_some_and(|oldest| oldest.first_index == shard.last_index);
        let busy = self.shards.values().filter(|shard| !rests(shard));
        let newest = busy.filter_map(Shard::oldest_file).min().unwrap_or(active_file);
        let mut resting = self.shards.iter().filter(|(_, shard)| rests(shard));
        let (shard, found) =
            resting.find(|(_, shard)| shard.oldest_file().is_some_and(|file| file + FILES_BEHIND_MAX <= newest))?;
        Some((*shard, found.last_index))
    }

    /// The last entry of `shard`, its only one, was written again, to `file`.
    pub(crate) fn moved(&mut self, shard: ShardId, file: u64) {
        if let Some(shard) = self.shards.get_mut(&shard) {
            shard.guessed_to = 0;
            shard.places = VecDeque::from([Place { file, first_index: shard.last_index }]);
        }
    }
}

impl Shard {
    fn oldest_file(&self) -> Option<u64> {
        self.places.front().map(|place| place.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deleting_is_tried_when_a_whole_file_is_free() {
        let mut kept = Kept::default();
        kept.appended(1, 1, 1..=10);
        kept.appended(1, 2, 11..=20);
        kept.cut(1, 10);
        assert!(!kept.should_delete(1), "file 1 holds entry 10");
        kept.cut(1, 11);
        assert!(kept.should_delete(1));
        kept.deleted(2);
        assert!(!kept.should_delete(2), "nothing changed since");
    }

    #[test]
    fn a_file_is_free_when_no_shard_needs_it() {
        let mut kept = Kept::default();
        kept.appended(1, 1, 1..=10);
        kept.appended(2, 1, 1..=1);
        kept.appended(1, 2, 11..=20);
        kept.appended(2, 2, 2..=2);
        kept.cut(1, 20);
        assert!(!kept.should_delete(1), "shard 2 still needs file 1");
        kept.cut(2, 2);
        assert!(kept.should_delete(1));
    }

    #[test]
    fn after_a_restart_giving_up_all_but_the_last_entry_tries_to_delete() {
        let mut kept = Kept::default();
        kept.recovered(1, 1..=1000, 3..=30);
        kept.cut(1, 1000);
        assert!(kept.should_delete(3));
        kept.deleted(17);
        assert!(!kept.should_delete(17), "the guess was corrected");
        assert_eq!(kept.laggard(30), Some((1, 1000)));
        kept.moved(1, 30);
        assert!(kept.should_delete(17));
    }

    #[test]
    fn a_shard_that_rests_on_an_old_entry_is_a_laggard_once_others_are_two_files_ahead() {
        let mut kept = Kept::default();
        kept.appended(1, 1, 1..=5);
        kept.appended(2, 1, 1..=5);
        kept.cut(1, 5);
        kept.appended(2, 2, 6..=9);
        kept.cut(2, 6);
        assert_eq!(kept.laggard(2), None);
        kept.appended(2, 3, 10..=12);
        kept.cut(2, 10);
        assert_eq!(kept.laggard(3), Some((1, 5)));
    }
}
