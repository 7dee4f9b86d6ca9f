//! What the journal has promised so far, and whether an opened journal keeps it.
//!
//! Checks J1 (what was acknowledged is there), J2 (each entry is the one that was appended, and the
//! chain holds) and J3 (nothing durable is dropped) after every image.

use std::collections::BTreeMap;
use std::sync::Arc;

use journal::{Disk, EntryLog, SegmentFiles, ShardId};

use super::operation::Note;

/// How much is read at a time.
const READ_BYTES: usize = 1 << 20;

/// The journal's promises at one moment.
#[derive(Clone, Default)]
pub(crate) struct Promises {
    /// Whether the journal was ever opened or created to the end.
    pub(crate) created: bool,
    pub(crate) shards: BTreeMap<ShardId, Shard>,
    /// Entries of one batch that is being appended: all of them are there, or none is.
    together: Vec<(ShardId, u64)>,
}

#[derive(Clone, Default)]
pub(crate) struct Shard {
    /// Where the shard began.
    pub(crate) started_after: u64,
    /// The last entry that was acknowledged, or shown by a journal that was opened.
    pub(crate) acknowledged: u64,
    /// The last entry that may be there: one that was being appended.
    pub(crate) attempted: u64,
    /// Entries before this were given up.
    pub(crate) cut: u64,
    /// Everything that was ever appended and not replaced since.
    payloads: BTreeMap<u64, Arc<Vec<u8>>>,
}

impl Shard {
    /// The first entry that must be there, if any must.
    fn first_needed(&self) -> u64 {
        self.cut.max(self.started_after + 1)
    }
}

impl Promises {
    /// The promises for shards that begin behind the given entries.
    pub(crate) fn new(shards: &[(ShardId, u64)]) -> Self {
        let shard = |started_after| Shard {
            started_after,
            acknowledged: started_after,
            attempted: started_after,
            ..Shard::default()
        };
        let shards = shards.iter().map(|(id, started_after)| (*id, shard(*started_after)));
        Self { created: false, shards: shards.collect(), together: Vec::new() }
    }

    pub(crate) fn note(&mut self, note: &Note) {
        match note {
            Note::Opening | Note::Closing => {}
            Note::Opened { shards } => {
                self.together.clear();
                self.created = true;
                for (id, last) in shards {
                    let shard = self.shard(*id);
                    shard.acknowledged = *last;
                    shard.attempted = *last;
                    shard.payloads.retain(|index, _| index <= last);
                }
            }
            Note::Appending { shard, first_index, payloads } => {
                let shard = self.shard(*shard);
                for (index, payload) in (*first_index..).zip(payloads.iter()) {
                    shard.payloads.insert(index, Arc::new(payload.clone()));
                    shard.attempted = index;
                }
            }
            Note::Appended { shard, last_index } => self.shard(*shard).acknowledged = *last_index,
            Note::AppendingTogether { entries, is_one_batch } => {
                for (shard, index, payload) in entries {
                    let shard = self.shard(*shard);
                    shard.payloads.insert(*index, payload.clone());
                    shard.attempted = *index;
                }
                let one_batch = entries.iter().filter(|_| *is_one_batch);
                self.together = one_batch.map(|(shard, index, _)| (*shard, *index)).collect();
            }
            Note::AppendedTogether { entries } => {
                for (shard, index) in entries {
                    self.shard(*shard).acknowledged = *index;
                }
                self.together.clear();
            }
            Note::Cutting { shard, first_kept } => {
                let shard = self.shard(*shard);
                shard.cut = shard.cut.max((*first_kept).min(shard.acknowledged));
            }
        }
    }

    fn shard(&mut self, id: ShardId) -> &mut Shard {
        self.shards.get_mut(&id).expect("a shard of the workload")
    }

    /// Compares an opened journal with what was promised; says what is broken.
    pub(crate) fn check(&self, files: &SegmentFiles<impl Disk>) -> Result<(), String> {
        let mut entry_count = 0;
        for (id, shard) in &self.shards {
            let said = |what: String| format!("shard {id}: {what}");
            entry_count += shard.check(*id, files).map_err(said)?;
        }
        let is_there = |(id, index): &&(ShardId, u64)| files.last_index(*id).is_some_and(|last| last >= *index);
        let there = self.together.iter().filter(is_there).count();
        if there != 0 && there != self.together.len() {
            return Err(format!("of a batch, {there} entries are there: {:?}", self.together));
        }
        let verified = files.verify().map_err(|error| format!("verify: {error}"))?;
        if verified.entries != entry_count {
            return Err(format!("{} entries, but {entry_count} in known shards", verified.entries));
        }
        Ok(())
    }

    /// The last entry of each shard that has one, as an opened journal shows it.
    pub(crate) fn seen(&self, files: &SegmentFiles<impl Disk>) -> Vec<(ShardId, u64)> {
        let last = |(id, shard): (&ShardId, &Shard)| (*id, files.last_index(*id).unwrap_or(shard.started_after));
        self.shards.iter().map(last).collect()
    }
}

impl Shard {
    fn check(&self, id: ShardId, files: &SegmentFiles<impl Disk>) -> Result<u64, String> {
        let last = files.last_index(id).unwrap_or(self.started_after);
        if last < self.acknowledged {
            return Err(format!("lost: entry {} was acknowledged, the last is {last}", self.acknowledged));
        }
        if last > self.attempted {
            return Err(format!("entry {last} was never appended, {} was the last", self.attempted));
        }
        let Some(first) = files.first_index(id) else {
            return Ok(0);
        };
        if first > self.first_needed() {
            return Err(format!("lost: the first entry is {first}, needed is {}", self.first_needed()));
        }
        let mut next = first;
        while next <= last {
            let read = files.read(id, next, READ_BYTES);
            for (entry, _) in read.map_err(|error| format!("lost: entry {next}: {error}"))? {
                let expected = self.payloads.get(&next);
                if entry.index != next || expected.is_none_or(|payload| **payload != entry.payload) {
                    return Err(format!("entry {next} is not the one that was appended"));
                }
                next += 1;
            }
        }
        Ok(last + 1 - first)
    }
}
