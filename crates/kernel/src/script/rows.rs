//! The number of rows by kind, to see that nothing is left behind.

use kv::{Key, KeyRange, Order};

use super::Stage;
use crate::keys::cells::read_cell_key;
use crate::keys::due::DueClock;
use crate::keys::names::is_name_in_group;
use crate::keys::{GENERATION_BYTES, Kind};
use crate::records::queue::ALL_QUEUES;

impl Stage {
    /// How many rows cells have: newest versions and older ones.
    pub(super) fn rows(&self) -> String {
        let keys = self.all_keys();
        let heads = keys.iter().filter(|key| read_cell_key(key).is_some()).count();
        let names = count_kind(&keys, Kind::CellHead, is_name_in_group);
        let all = count_kind(&keys, Kind::CellHead, |_| true);
        assert_eq!(heads + names, all, "a row among cells is a cell or a name");
        let known: usize =
            self.branches().map(|(space, branch)| self.rows_of_branch(Kind::CellHead, space, branch)).sum();
        assert_eq!(known, all, "a cell stands in a branch that is known");
        let names = if names > 0 { format!(", {names} names") } else { String::new() };
        format!("{heads} cells, {} old versions{names}", count_kind(&keys, Kind::CellOld, |_| true))
    }

    /// How many rows records have, of each kind that there is. A deleted record has a row, too.
    pub(super) fn rows_of_records(&self) -> String {
        let (found, keys) = (self.all_keys(), self.kernel.keys());
        let all = |kind| count_kind(&found, kind, |_| true);
        let buckets = 0..self.kernel.catalogue().buckets.count();
        let due = |clock| {
            let ranges = buckets.clone().map(|bucket| KeyRange::prefix(&keys.due_prefix(clock, bucket)));
            ranges.map(|range| self.count(&range)).sum::<usize>()
        };
        let names = count_kind(&found, Kind::Record, is_name_in_group);
        let counts = self.branches().map(|(space, branch)| keys.counts_from_queue(space, branch, ALL_QUEUES));
        show_numbers(&[
            ("records", all(Kind::Record) - names),
            ("names", names),
            ("large fields", all(Kind::RecordField)),
            ("ready", all(Kind::Ready)),
            ("lanes", self.count(&keys.all_lanes())),
            ("due by wall", due(DueClock::Wall)),
            ("due by cluster", due(DueClock::Cluster)),
            ("indexed", all(Kind::FieldIndex)),
            ("counts", counts.map(|range| self.count(&range)).sum()),
            ("floors", all(Kind::RecordFloor)),
        ])
    }

    /// How many rows runs have, of each kind that there is. A deleted run has a head, too.
    pub(super) fn rows_of_runs(&self) -> String {
        let found = self.all_keys();
        let all = |kind| count_kind(&found, kind, |_| true);
        let names = count_kind(&found, Kind::Run, is_name_in_group);
        show_numbers(&[
            ("heads", all(Kind::Run) - names),
            ("names", names),
            ("events", all(Kind::RunEvent)),
            ("keys", all(Kind::RunKey)),
            ("ids", all(Kind::RunEventId)),
            ("steps", all(Kind::RunStep)),
            ("listed", all(Kind::RunIndex)),
        ])
    }

    /// How many rows maps have, of each kind that there is. A deleted map has a head for a while.
    pub(super) fn rows_of_maps(&self) -> String {
        let found = self.all_keys();
        let all = |kind| count_kind(&found, kind, |_| true);
        let names = count_kind(&found, Kind::KeyedMap, is_name_in_group);
        show_numbers(&[
            ("heads", all(Kind::KeyedMap) - names),
            ("names", names),
            ("keys", all(Kind::KeyedEntry)),
            ("positions", all(Kind::KeyedPosition)),
            ("deleted", all(Kind::KeyedDeleted)),
            ("gone", all(Kind::KeyedGone)),
            ("answers", all(Kind::KeyedAnswer)),
            ("waiting", all(Kind::KeyedWaiting)),
        ])
    }

    fn all_keys(&self) -> Vec<Key> {
        self.view().scan(&self.kernel.keys().all(), Order::Ascending).map(|row| row.unwrap().0).collect()
    }

    fn count(&self, range: &KeyRange) -> usize {
        self.view().scan(range, Order::Ascending).count()
    }

    fn rows_of_branch(&self, kind: Kind, space: u32, branch: u32) -> usize {
        let buckets = 0..self.kernel.catalogue().buckets.count();
        let ranges = buckets.map(|bucket| self.kernel.keys().rows_of_branch(kind, bucket, space, branch));
        ranges.map(|range| self.count(&range)).sum()
    }

    /// All branches of all spaces, those included that were deleted and still have rows.
    fn branches(&self) -> impl Iterator<Item = (u32, u32)> {
        let spaces = self.kernel.catalogue().spaces();
        spaces.flat_map(|(space, found)| found.branches().map(move |(branch, _)| (space, branch)))
    }
}

fn count_kind(keys: &[Key], kind: Kind, counts: impl Fn(&[u8]) -> bool) -> usize {
    keys.iter().filter(|key| key[GENERATION_BYTES + 2] == kind as u8 && is_in_bucket(key) && counts(key)).count()
}

/// Rows of the shard itself have the highest number in place of a bucket.
fn is_in_bucket(key: &[u8]) -> bool {
    key[GENERATION_BYTES..GENERATION_BYTES + 2] != [0xff, 0xff]
}

fn show_numbers(numbers: &[(&str, usize)]) -> String {
    let shown = numbers.iter().filter(|(_, number)| *number > 0).map(|(what, number)| format!("{number} {what}"));
    super::words::joined(shown.collect())
}
