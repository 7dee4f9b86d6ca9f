//! Appenders that append at the same time, each to shards of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use journal::{Append, EntryLog, Position, ShardId};

use super::fight::{Known, append, append_last, check_chain};
use crate::random::Random;

/// Shards of an appender, with one entry each in a call.
const SHARDS_EACH: u64 = 3;
/// Of so many calls, one has an entry that is wanted behind another than the last.
const STALE_ONE_IN: u64 = 8;

/// How appending together went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Together {
    /// Entries that are in the log.
    pub entries: u64,
    /// Appends that were refused, as they had to be.
    pub refused: u64,
    /// Appends of which the log did not say whether they succeeded.
    pub unknown: u64,
}

/// What an appender knows of its entries, by shard.
type KnownEntries = BTreeMap<ShardId, BTreeMap<Vec<u8>, Known>>;

/// Lets `appenders` threads make `rounds` calls each, all at the same time, to empty shards: no two append to the same one.
/// Nobody is concerned by what the others do, or by what is refused to them. Afterwards each shard must be one chain
/// with every acknowledged entry once, in its place, and none that was refused.
///
/// # Panics
/// If the log breaks a duty.
pub fn append_together(log: &Arc<dyn EntryLog>, appenders: u64, rounds: u64, seed: u64) -> Together {
    let known: Vec<KnownEntries> = std::thread::scope(|scope| {
        let appender = |number: u64| {
            let random = Random::new(seed.wrapping_add(number));
            scope.spawn(move || append_rounds(&**log, number * SHARDS_EACH + 1, rounds, random))
        };
        let threads: Vec<_> = (0..appenders).map(appender).collect();
        threads.into_iter().map(|thread| thread.join().expect("an appender")).collect()
    });
    let mut together = Together::default();
    for (shard, mut known) in known.into_iter().flatten() {
        let count = |wanted: Known| known.values().filter(|one| **one == wanted).count() as u64;
        together.refused += count(Known::Refused);
        together.unknown += count(Known::Unknown);
        append_last(&**log, shard, &mut known);
        together.entries += check_chain(&**log, shard, &mut known);
        let lost = known.iter().find(|(_, one)| matches!(one, Known::Appended(_)));
        assert_eq!(lost, None, "J1: an acknowledged entry of shard {shard} is not in the log");
    }
    together
}

fn append_rounds(log: &dyn EntryLog, shard_first: ShardId, rounds: u64, mut random: Random) -> KnownEntries {
    let mut known: KnownEntries = (shard_first..shard_first + SHARDS_EACH).map(|id| (id, BTreeMap::new())).collect();
    for round in 0..rounds {
        let count = 1 + random.below(SHARDS_EACH);
        let stale = random.one_in(STALE_ONE_IN).then(|| shard_first + random.below(count));
        let contents: Vec<(ShardId, Position, Vec<u8>)> = (shard_first..shard_first + count)
            .map(|shard| {
                let mut after = log.ends(shard).expect("the ends of a shard").last;
                if stale == Some(shard) {
                    after.hash = !after.hash;
                }
                (shard, after, [shard.to_le_bytes(), round.to_le_bytes()].concat())
            })
            .collect();
        let appends: Vec<Append<'_>> =
            contents.iter().map(|(shard, after, payload)| append(*shard, *after, 1, payload)).collect();
        let answers = log.append_behind(&appends);
        assert_eq!(answers.len(), appends.len(), "each entry has its answer");
        for ((shard, after, payload), answer) in contents.into_iter().zip(answers) {
            let outcome = Known::from_answer(&answer);
            let known = known.entry(shard).or_default();
            match outcome {
                Known::Appended(position) => {
                    assert_ne!(stale, Some(shard), "J6: behind an entry that is not there");
                    assert_eq!(position.index, after.index + 1, "J6: behind the entry that was named");
                }
                // An entry whose answer was lost can arrive at any time.
                Known::Refused => {
                    let is_expected = stale == Some(shard) || known.values().any(|one| *one == Known::Unknown);
                    assert!(is_expected, "J6: shard {shard} behind its last entry {after}: {answer:?}");
                }
                Known::Unknown => {}
            }
            known.insert(payload, outcome);
        }
    }
    known
}
