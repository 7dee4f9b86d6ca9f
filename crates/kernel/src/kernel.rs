//! Applies entries one after the other: state and entry in, effects and answers out.
//!
//! Keeps: K1 (entries are applied once, in order), K4 (stamps never go back), K9 (a shard writes its own rows only). The effects of an entry, the applied row
//! and the running hash are one batch.

use std::sync::Arc;

use kv::{Batch, Staging, View, Writer};
use session::{ChangedSessions, Halt, SessionMachine, Stamp};
use xxhash_rust::xxh3::Xxh3;

use crate::LEVEL_OF_EPOCHS;
use crate::applied::Applied;
use crate::catalogue::Catalogue;
use crate::changes;
use crate::entry::{EntryHeader, EntryPlace};
use crate::keys::{GENERATION_BYTES, Keys};
use crate::machine::{Contracts, NextDue};
use crate::place::Buckets;
use crate::schedule::windows::{FreedThing, ReadyQueue};
use crate::sessions::brought::{Hosted, check_brought};
use crate::tally::Tally;

/// Applies entries to the state of a shard.
pub struct Kernel {
    applied: Applied,
    machine: SessionMachine<Contracts>,
}

/// The effects of applying an entry.
pub struct Effects {
    /// All changes, including the applied row.
    pub batch: Batch,
    /// The number of rows written by the commands, without those written once per entry.
    pub command_rows: usize,
    /// The reply to each command, in order.
    pub replies: Vec<Vec<u8>>,
    /// When the next thing will be due.
    pub next_due: NextDue,
    /// The queues of records that have become ready, one for each record.
    pub readied: Vec<ReadyQueue>,
    /// The things in no queue that have become free.
    pub freed: Vec<FreedThing>,
    /// Whether there may be something new to publish.
    pub publishes: bool,
    /// The sessions that changed.
    pub sessions: ChangedSessions,
    /// Totals, for metrics.
    pub tally: Tally,
}

impl Kernel {
    /// The first state of a shard.
    pub fn genesis(empty: Arc<dyn View>, keys: Keys, buckets: Buckets) -> Batch {
        let mut state = Staging::new(empty);
        Catalogue::genesis(buckets).write_all(&keys, &mut state);
        changes::begin(&mut state, &keys);
        state.put(keys.applied(), Applied::default().encode());
        state.into_batch()
    }

    /// The kernel at the state of a view; none if the shard has no state there.
    pub fn load(view: &dyn View, keys: Keys) -> Result<Option<Self>, Halt> {
        Self::load_with(view, keys, Hosted::new())
    }

    /// The same, with the machines that users brought.
    pub fn load_with(view: &dyn View, keys: Keys, hosted: Hosted) -> Result<Option<Self>, Halt> {
        let Some(applied) = view.get(&keys.applied())? else {
            return Ok(None);
        };
        let catalogue = Catalogue::load(view, &keys)?;
        check_brought(&catalogue, &hosted)?;
        let machine =
            SessionMachine::new(Contracts::new(catalogue, keys, hosted), keys.sessions(), keys.buckets().first());
        Ok(Some(Self { applied: Applied::decode(&applied)?, machine }))
    }

    /// The applied row.
    pub fn applied(&self) -> &Applied {
        &self.applied
    }

    /// The catalogue as it is now.
    pub fn catalogue(&self) -> &Catalogue {
        &self.machine.machine().catalogue
    }

    /// When the next thing is due. `view` must be the state that the last entry left.
    pub fn next_due(&mut self, view: Arc<dyn View>) -> Result<NextDue, Halt> {
        self.machine.machine_mut().next_due(&Staging::new(view))
    }

    /// Says whether some range of keys is set apart. If so, each command checks that what the entry writes for it at its
    /// end can be read; it would be too late then to refuse the command. And each claim meets damage by what is stored, not by
    /// what happens to be in memory.
    pub fn expect_damage(&mut self, expected: bool) {
        self.machine.machine_mut().expects_damage = expected;
    }

    /// Whose keys.
    pub fn keys(&self) -> Keys {
        self.machine.machine().keys
    }

    /// Applies the entry at this place to the state of `view`, which must be the state after the previous entry.
    ///
    /// # Panics
    /// If the entry is not the next one.
    pub fn apply(&mut self, view: Arc<dyn View>, place: &EntryPlace, payload: &[u8]) -> Result<Effects, Halt> {
        let EntryPlace { index, term, history, hash: entry_hash } = *place;
        assert!(index == self.applied.index + 1, "K1: applied {} then {index}", self.applied.index);
        let (header, commands) = EntryHeader::decode(payload)?;
        let before = self.applied;
        let stamp = Stamp {
            wall_us: header.stamp.wall_us.max(before.stamp.wall_us + 1),
            cluster_us: header.stamp.cluster_us.max(before.stamp.cluster_us),
        };
        let mut state = Staging::new(view);
        let mut replies = Vec::with_capacity(commands.len());
        // Replies are assembled here, so that each is allocated once, at its final size.
        let mut reply = Writer::new();
        let mut commit = before.commit;
        let had_epochs = self.catalogue().level >= LEVEL_OF_EPOCHS;
        let mut after = before.in_history(history, had_epochs);
        self.machine.machine_mut().begin_entry(after.attempts_above());
        for command in commands {
            commit += 1;
            state.savepoint();
            reply.clear();
            let limits = self.catalogue().session_limits();
            self.machine.apply(&mut state, &limits, stamp, commit, command, &mut reply)?;
            replies.push(reply.as_slice().to_vec());
        }
        let command_rows = state.writes().len();
        let sessions = self.machine.finish_entry(&mut state);
        self.machine.machine_mut().finish_entry(&mut state, stamp, commit)?;
        self.check_owned(&state, index);
        let hash = hash_effects(before.hash, index, &state);
        if before.commit > 0 && !had_epochs && self.catalogue().level >= LEVEL_OF_EPOCHS {
            // Nobody has counted yet in how many histories these entries were.
            after.epoch += 1;
        }
        self.applied = Applied { index, term, history, entry_hash, commit, stamp, hash, ..after };
        assert!(stamp.wall_us > before.stamp.wall_us, "K4: {before:?} then {stamp:?}");
        state.put(self.keys().applied(), self.applied.encode());
        let next_due = self.machine.machine_mut().next_due(&state)?;
        let machine = self.machine.machine_mut();
        let publishes = std::mem::take(&mut machine.folded.publishes);
        let readied = std::mem::take(&mut machine.windows.readied);
        let freed = std::mem::take(&mut machine.windows.freed);
        let tally = std::mem::take(&mut machine.folded.changes.tally);
        let batch = state.into_batch();
        Ok(Effects { batch, command_rows, replies, next_due, readied, freed, publishes, sessions, tally })
    }
}

impl Kernel {
    fn check_owned(&self, state: &Staging, index: u64) {
        let keys = self.keys();
        for (key, _) in state.writes() {
            assert!(
                keys.owns(key),
                "K9: entry {index} writes the row {key:02x?}, and the shard owns buckets {}",
                keys.buckets()
            );
        }
    }
}

/// Continues the running hash over an entry's effects. Generations are left out: they differ between nodes.
fn hash_effects(before: u64, index: u64, state: &Staging) -> u64 {
    let mut hasher = Xxh3::with_seed(before);
    hasher.update(&index.to_le_bytes());
    for (key, value) in state.writes() {
        let key = &key[GENERATION_BYTES..];
        hasher.update(&(key.len() as u64).to_le_bytes());
        hasher.update(key);
        match value {
            None => hasher.update(&u64::MAX.to_le_bytes()),
            Some(value) => {
                hasher.update(&(value.len() as u64).to_le_bytes());
                hasher.update(value);
            }
        }
    }
    hasher.digest()
}

#[cfg(test)]
mod tests;
