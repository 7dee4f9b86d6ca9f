//! Everything that readers see of a partition.

use statehouse::Value;
use statehouse::keyed::{InputPosition, KeyedValue, KeysRange, LogicalTime, MapSummary, Partition, Policy};

use super::text;

/// A partition as it is read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct State {
    keys: Vec<(Vec<u8>, KeyedValue)>,
    positions: Vec<(String, InputPosition)>,
    summary: Option<MapSummary>,
}

/// The same without the commits that have written it, which a restore replaces.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Content<'state> {
    keys: Vec<(&'state [u8], &'state Value, Option<LogicalTime>)>,
    positions: Vec<(&'state str, u64)>,
    /// Its numbers of keys and deleted keys, its policy, its last number, its seal.
    numbers: Option<(u64, u64, Policy, u64, Option<LogicalTime>)>,
}

impl State {
    pub(super) fn of(partition: &Partition) -> Result<Self, String> {
        let (mut keys, mut range) = (Vec::new(), KeysRange::default().limit(1_000));
        loop {
            let page = partition.scan(&range).map_err(text)?;
            keys.extend(page.keys);
            match page.next_after {
                Some(after) => range = range.after(&after),
                None => break,
            }
        }
        let positions = partition.input_positions(None, 100).map_err(text)?;
        Ok(Self { keys, positions, summary: partition.summary().map_err(text)? })
    }

    pub(super) fn content(&self) -> Content<'_> {
        let keys = self.keys.iter().map(|(key, found)| (key.as_slice(), &found.value, found.version)).collect();
        let positions = self.positions.iter().map(|(input, at)| (input.as_str(), at.position)).collect();
        let numbers = self.summary.map(|map| (map.keys, map.deleted, map.policy, map.last_number, map.seal));
        Content { keys, positions, numbers }
    }
}
