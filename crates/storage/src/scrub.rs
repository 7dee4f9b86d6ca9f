//! Reads every block of every table, a few at a time, and reports what does not verify.
//!
//! Touches: nothing. Never: fills the cache, or stops at damage.

use crate::block::Kind;
use crate::failure::{Damage, Failure};
use crate::table::Table;
use crate::tree::TreeStore;
use kv::KvError;

/// What a part of a scrub has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scrubbed {
    /// The bytes that were read.
    pub bytes: u64,
    /// Every damaged part among them.
    pub damage: Vec<Damage>,
    /// Where to go on: the table and the partition. None when everything was read.
    pub next: Option<(u64, usize)>,
}

impl TreeStore {
    /// Reads about `bytes_max` bytes of the tables from `from` on; none starts at the beginning. Tables are read in the
    /// order of their numbers, so tables that a merge writes meanwhile come last.
    ///
    /// ```
    /// # use statehouse_storage::{Options, TreeStore};
    /// # let directory = tempfile::tempdir()?;
    /// # let store = TreeStore::create(&directory.path().join("store"), &Options::default())?;
    /// let mut scrubbed = store.scrub_some(None, 1 << 20)?;
    /// while scrubbed.next.is_some() {
    ///     scrubbed = store.scrub_some(scrubbed.next, 1 << 20)?;
    /// }
    /// assert!(scrubbed.damage.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scrub_some(&self, from: Option<(u64, usize)>, bytes_max: u64) -> Result<Scrubbed, KvError> {
        let version = self.shared.newest().version();
        let (first_table, first_partition) = from.unwrap_or((0, 0));
        let mut scrubbed = Scrubbed::default();
        for (number, table) in version.tables().range(first_table..) {
            let first = if *number == first_table { first_partition } else { 0 };
            let top = match table.top() {
                Ok(top) => top,
                Err(Failure::Damaged(damage)) => {
                    scrubbed.damage.push(*damage);
                    continue;
                }
                Err(other) => return Err(other.into()),
            };
            for (partition, entry) in top.iter().enumerate().skip(first) {
                if scrubbed.bytes >= bytes_max {
                    scrubbed.next = Some((*number, partition));
                    return Ok(scrubbed);
                }
                scrubbed.bytes += entry.index.offset + u64::from(entry.index.bytes) - entry.data_offset;
                scrub_partition(table, partition, &mut scrubbed.damage)?;
            }
        }
        Ok(scrubbed)
    }
}

fn scrub_partition(table: &Table, partition: usize, found: &mut Vec<Damage>) -> Result<(), Failure> {
    let mut note = |result: Result<(), Failure>| match result {
        Err(Failure::Damaged(damage)) => {
            found.push(*damage);
            Ok(())
        }
        other => other,
    };
    let filter = table.top()?[partition].filter;
    note(table.shared.read_block(table.number(), Kind::Filter, filter).map(drop))?;
    let read = |kind, place| table.shared.read_block(table.number(), kind, place);
    let mut blocks = Vec::new();
    let mut list_blocks = || {
        let mut index = table.index(partition, read)?;
        table.rows_result(filter.offset, index.first())?;
        while index.is_at_row() {
            blocks.push(index.key().to_vec());
            table.rows_result(filter.offset, index.next())?;
        }
        Ok(())
    };
    note(list_blocks())?;
    for last_key in blocks {
        let mut index = table.index(partition, read)?;
        table.rows_result(filter.offset, index.seek(&last_key))?;
        note(table.data(partition, &mut index, read).map(drop))?;
    }
    Ok(())
}
