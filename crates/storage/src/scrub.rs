//! Reads every block of every table and the manifest, a few at a time, and reports what does not verify.
//!
//! Touches: the manifest, if one of its copies must be written again. Never: fills the cache, or stops at damage.

use kv::KvError;

use crate::block::Kind;
use crate::failure::{Damage, Effect, Failure};
use crate::manifest::Manifest;
use crate::table::Table;
use crate::tree::TreeStore;

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
    /// Reads about `bytes_max` bytes of the tables from `from` on; none starts at the beginning, with the manifest.
    /// Tables are read in the order of their numbers, so tables that a merge writes meanwhile come last.
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
        let mut scrubbed = Scrubbed::default();
        if from.is_none() {
            self.scrub_manifest(&mut scrubbed)?;
        }
        let version = self.shared.newest().version();
        let (first_table, first_partition) = from.unwrap_or((0, 0));
        for (number, table) in version.tables().range(first_table..) {
            let first = if *number == first_table { first_partition } else { 0 };
            if first == 0 {
                scrub_top(table, &mut scrubbed)?;
            }
            let top = match table.top() {
                Ok(top) => top,
                // Reported above, or set apart.
                Err(Failure::Damaged(_)) => continue,
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

    fn scrub_manifest(&self, scrubbed: &mut Scrubbed) -> Result<(), KvError> {
        let damage = {
            // It is replaced under the lock only.
            let _writer = self.shared.lock();
            match Manifest::read(&self.shared.tables.files) {
                Ok(read) => read.damage,
                Err(KvError::Corrupt { .. }) => Some(Damage {
                    table: 0,
                    file: crate::manifest::MANIFEST_FILE.into(),
                    offset: 0,
                    reason: "the manifest does not verify",
                    keys: kv::KeyRange::all(),
                    effect: Effect::Healed,
                }),
                Err(other) => return Err(other),
            }
        };
        if let Some(damage) = damage {
            self.shared.tables.notice(&damage);
            self.write_manifest_again()?;
            scrubbed.damage.push(damage);
        }
        Ok(())
    }
}

/// Reads tail, facts and top index. What is in memory of them is used all the same.
fn scrub_top(table: &Table, scrubbed: &mut Scrubbed) -> Result<(), Failure> {
    match table.read_top() {
        Err(Failure::Damaged(damage)) => {
            let effect = if table.top().is_ok() { Effect::Healed } else { Effect::Lost };
            let damage = Damage { keys: table.keys(), effect, ..*damage };
            table.shared.notice(&damage);
            scrubbed.damage.push(damage);
            Ok(())
        }
        other => other.map(drop),
    }
}

fn scrub_partition(table: &Table, partition: usize, found: &mut Vec<Damage>) -> Result<(), Failure> {
    let keys = table.partition_keys(partition)?;
    let read = |kind, place| table.shared.read_block(table.number(), kind, place);
    let (filter, index) = (table.top()?[partition].filter, table.top()?[partition].index);
    for (kind, place) in [(Kind::Filter, filter), (Kind::Index, index)] {
        match read(kind, place) {
            Err(Failure::Damaged(damage)) => {
                table.notice_healed((*damage).clone(), partition);
                found.push(Damage { keys: keys.clone(), effect: Effect::Healed, ..*damage });
            }
            other => drop(other?),
        }
    }
    let mut note = |result: Result<(), Failure>| match result {
        Err(Failure::Damaged(damage)) => {
            found.push(*damage);
            Ok(())
        }
        other => other,
    };
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
