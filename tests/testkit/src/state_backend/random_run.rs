//! Thousands of updates beside a naive model that keeps every update it has seen and folds them anew for each question.

use std::collections::BTreeMap;

use contract::UpdateOutcome;
use contract::keyed::LogicalTime;

use super::{Tested, delete, get, passed, put};
use crate::random::Random;

const KEYS: [&str; 6] = ["a", "b", "b/c", "ü", "key with spaces", "0"];

/// The updates that were delivered, each once. An update of none deletes.
#[derive(Clone, Default)]
struct Naive {
    delivered: BTreeMap<(&'static str, LogicalTime), Option<i64>>,
    seal: Option<LogicalTime>,
}

impl Naive {
    fn newest(&self, key: &'static str) -> Option<(LogicalTime, Option<i64>)> {
        let all = (key, LogicalTime::default())..=(key, LogicalTime::new(u64::MAX, u64::MAX));
        self.delivered.range(all).next_back().map(|((_, version), value)| (*version, *value))
    }

    fn value(&self, key: &'static str) -> Option<(i64, LogicalTime)> {
        self.newest(key).and_then(|(version, value)| Some((value?, version)))
    }

    fn passed(&self, key: &'static str) -> Option<LogicalTime> {
        self.newest(key).map(|(version, _)| version).max(self.seal)
    }

    /// Delivers an update, and says whether it counts.
    fn deliver(&mut self, key: &'static str, version: LogicalTime, value: Option<i64>) -> bool {
        let counts = self.passed(key).is_none_or(|passed| version > passed);
        if counts {
            self.delivered.insert((key, version), value);
        }
        counts
    }
}

/// What a source sends for a version of a key: always the same, now and in a replay.
fn update_of(key: &str, version: LogicalTime) -> Option<i64> {
    let mut random = Random::new(version.epoch * 1_000 + version.round * 10 + key.len() as u64);
    (!random.one_in(5)).then(|| i64::try_from(random.below(1_000_000)).expect("it is small"))
}

/// Sends updates early, late and repeatedly; seals, takes snapshots, restores them, and moves keys.
pub(super) fn each_update_counts_once<B: Tested>(make: &impl Fn() -> B, updates: usize) {
    for seed in [1, 2] {
        println!("random run of a state backend, seed {seed}");
        run(make, &mut Random::new(seed), updates / 2);
    }
}

fn run<B: Tested>(make: &impl Fn() -> B, random: &mut Random, updates: usize) {
    let (mut backend, mut naive) = (make(), Naive::default());
    let mut checkpoint = (backend.snapshot().expect("snapshot"), naive.clone());
    for at in 0..updates as u64 {
        let key = random.pick(&KEYS);
        let round = (at / 8).saturating_sub(random.below(20));
        let version = LogicalTime::new(round / 64, round % 64);
        let value = update_of(key, version);
        let outcome = match value {
            Some(value) => put(&backend, key, value, version),
            None => delete(&backend, key, version),
        };
        let counts = naive.deliver(key, version, value);
        assert_eq!(outcome == UpdateOutcome::Applied, counts, "update {at}: {key} at {version} gave {outcome:?}");
        assert_ne!(outcome, UpdateOutcome::VersionConflict, "update {at}: the source is deterministic");
        assert_eq!((get(&backend, key), passed(&backend, key)), (naive.value(key), naive.passed(key)), "update {at}");
        match random.below(200) {
            0 => {
                backend.seal(LogicalTime::new(0, round.saturating_sub(10))).expect("seal");
                naive.seal = naive.seal.max(Some(LogicalTime::new(0, round.saturating_sub(10))));
            }
            1 | 2 => checkpoint = (backend.snapshot().expect("snapshot"), naive.clone()),
            // It goes back; then the source sends again what came since.
            3 => {
                backend.restore(&checkpoint.0).expect("restore");
                naive = checkpoint.1.clone();
            }
            // The shard moves: another backend goes on with its keys, and its seal.
            4 => {
                let mut next = make();
                let keys = KEYS.map(str::to_owned);
                for part in keys.chunks(2) {
                    next.restore_keys(&backend.snapshot_for_keys(part).expect("snapshot_for_keys"))
                        .expect("restore_keys");
                }
                if let Some(seal) = naive.seal {
                    next.seal(seal).expect("seal");
                }
                assert_eq!(next.snapshot().expect("snapshot"), backend.snapshot().expect("snapshot"), "update {at}");
                backend = next;
            }
            _ => {}
        }
    }
    for key in KEYS {
        assert_eq!(get(&backend, key), naive.value(key));
    }
}
