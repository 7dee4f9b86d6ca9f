//! Damage that was found in stored bytes, in words.

use crate::error::from_kv;
use contract::Error;
use kernel::keys::readable::describe_range;
use storage::Effect;

use crate::shard::Shard;

/// Bytes that a scrub without pauses reads at a time.
const SCRUB_STEP_BYTES: u64 = 8 << 20;

/// Damage in the files of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundDamage {
    /// The file, within the store's folder.
    pub file: String,
    /// Where the damaged part starts.
    pub offset: u64,
    /// What is wrong with it.
    pub reason: &'static str,
    /// What becomes of it.
    pub effect: DamageEffect,
    /// The first thing that it may hold, or the last one before it: kind, name and space.
    pub from: String,
    /// The last one.
    pub to: String,
    /// The first entry that was applied without it, if it is set apart.
    pub from_entry: Option<u64>,
    /// Whether it was found while entries were replayed: commands from that entry on may have been acknowledged before,
    /// and have no effect now.
    pub in_replay: bool,
}

/// What damage means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamageEffect {
    /// The things in it cannot be read or changed. Everything else can.
    Lost,
    /// Nothing is lost: it was, or can be, made again from other bytes.
    Healed,
    /// Nothing is lost: the bytes are not used any more.
    Unused,
}

impl DamageEffect {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            DamageEffect::Lost => "lost",
            DamageEffect::Healed => "healed",
            DamageEffect::Unused => "unused",
        }
    }
}

impl Shard {
    /// Reads the whole store now, without a pause, to find damage. Returns the number of bytes read.
    pub fn scrub_now(&self) -> Result<u64, Error> {
        let (mut bytes, mut from) = (0, None);
        loop {
            let scrubbed = self.access.tree.scrub_some(from, SCRUB_STEP_BYTES).map_err(|error| from_kv(&error))?;
            bytes += scrubbed.bytes;
            from = scrubbed.next;
            if from.is_none() {
                return Ok(bytes);
            }
        }
    }

    /// Damage found so far, by reads, merges or the scrub, and what was set apart before.
    pub fn damage(&self) -> Result<Vec<FoundDamage>, Error> {
        let catalogue = self.access.catalogue();
        let apart = self.quarantine.list();
        let noticed = self.access.tree.noticed().into_iter();
        let found = noticed.map(|damage| {
            let (from, to) = match damage.table {
                0 => (String::new(), String::new()),
                _ => describe_range(&damage.keys, &catalogue),
            };
            let part = apart.iter().find(|part| (part.table, part.offset) == (damage.table, damage.offset));
            FoundDamage {
                file: damage.file,
                offset: damage.offset,
                reason: damage.reason,
                effect: match damage.effect {
                    Effect::Healed => DamageEffect::Healed,
                    Effect::Unused => DamageEffect::Unused,
                    _ => DamageEffect::Lost,
                },
                from,
                to,
                from_entry: part.map(|part| part.from_entry),
                in_replay: part.is_some_and(|part| part.in_replay),
            }
        });
        Ok(found.collect())
    }
}
