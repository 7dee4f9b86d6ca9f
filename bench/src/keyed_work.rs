//! Operators of keyed state at work: each owns a partition and commits puts, with its input position, over and over.
//!
//! Keeps: versions rise, so every put is applied; that is checked. Never: lets two operators share a partition.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use statehouse::Statehouse;
use statehouse::keyed::OwnedPartition;
use statehouse::records::ClaimOptions;
use testkit::random::Random;

use crate::latency::histogram;
use crate::resources::cpu_seconds;

/// Puts in a commit.
pub const COMMIT_PUTS: usize = 100;

/// Bytes of a value.
pub const VALUE_BYTES: usize = 100;

/// Puts in a commit that loads.
const LOADED_PUTS: u64 = 5_000;

/// Loading commits under way.
const LOADING_WINDOW: usize = 8;

/// A key: 16 bytes.
pub fn key(number: u64) -> [u8; 16] {
    let mut key = *b"key-000000000000";
    let digits = number.to_string();
    key[16 - digits.len()..].copy_from_slice(digits.as_bytes());
    key
}

/// Which keys are put and read.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    /// How many there are.
    pub all: u64,
    /// So many of them, spread over all, are used.
    pub used: u64,
}

impl Keys {
    /// All of them, each as often as any other.
    pub fn all(all: u64) -> Self {
        Self { all, used: all }
    }

    fn pick(self, random: &mut Random) -> [u8; 16] {
        let Self { all, used } = self;
        key(random.below(used) * (all / used))
    }
}

/// An operator with its partition.
pub struct Operator {
    partition: OwnedPartition,
    version: u64,
    random: Random,
}

/// The speed of some operators.
pub struct Committed {
    /// Keys that were put, a second, durably.
    pub keys_per_second: f64,
    /// The median of a commit, in µs.
    pub median_us: f64,
    /// CPU µs for each key.
    pub cpu_us: f64,
    /// Commits in one entry of the journal, on average.
    pub batch: f64,
}

/// Operators for the partitions from 0 on.
pub fn operators(house: &Statehouse, count: u32) -> Vec<Operator> {
    let operator = house.keyed("speed");
    let own = |number| {
        let options = ClaimOptions::worker("bench").lease(Duration::from_secs(86_400));
        let partition = operator.partition(number).acquire_by_force(&options).expect("a partition");
        Operator { partition, version: 1, random: Random::new(number.into()) }
    };
    (0..count).map(own).collect()
}

impl Operator {
    /// Puts the keys of a range, many in a commit.
    pub fn load(&mut self, keys: std::ops::Range<u64>) {
        let mut under_way = VecDeque::new();
        self.version += 1;
        let mut next = keys.start;
        while next < keys.end {
            let upto = keys.end.min(next + LOADED_PUTS);
            let version = self.version;
            let mut commit = self.partition.commit();
            for number in next..upto {
                commit = commit.put(&key(number), vec![1; VALUE_BYTES], version);
            }
            under_way.push_back(commit.run_later());
            if under_way.len() >= LOADING_WINDOW {
                under_way.pop_front().expect("one").wait().expect("a commit");
            }
            next = upto;
        }
        under_way.into_iter().for_each(|pending| drop(pending.wait().expect("a commit")));
    }

    /// Commits puts of random keys.
    pub fn commit(&mut self, keys: Keys) {
        self.version += 1;
        let Self { partition, version, random } = self;
        let mut commit = partition.commit().advance("topic", *version);
        let mut put = 0;
        while put < COMMIT_PUTS {
            commit = commit.put(&keys.pick(random), vec![7; VALUE_BYTES], *version);
            put += 1;
        }
        let committed = commit.run().expect("a commit");
        assert_eq!(committed.updated.count(), COMMIT_PUTS);
    }

    /// Reads a random key.
    pub fn get(&mut self, keys: Keys) {
        let found = self.partition.get(&keys.pick(&mut self.random)).expect("a view");
        assert!(found.is_some(), "every key was loaded");
    }
}

/// Lets each operator commit, over and over, for a while.
pub fn run(house: &Statehouse, operators: &mut [Operator], keys: Keys, duration: Duration) -> Committed {
    let before = house.status().expect("status");
    let (stop, cpu, started) = (AtomicBool::new(false), cpu_seconds(), Instant::now());
    let latencies = std::thread::scope(|scope| {
        let threads: Vec<_> = operators
            .iter_mut()
            .map(|operator| {
                let stop = &stop;
                scope.spawn(move || {
                    let mut latencies = histogram();
                    while !stop.load(Ordering::Relaxed) {
                        let began = Instant::now();
                        operator.commit(keys);
                        latencies.saturating_record(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
                    }
                    latencies
                })
            })
            .collect();
        std::thread::sleep(duration);
        stop.store(true, Ordering::Relaxed);
        let mut all = histogram();
        for thread in threads {
            all.add(thread.join().expect("an operator")).expect("the same bounds");
        }
        all
    });
    let (seconds, cpu) = (started.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let after = house.status().expect("status");
    let keys = (latencies.len() * COMMIT_PUTS as u64) as f64;
    Committed {
        keys_per_second: keys / seconds,
        median_us: latencies.value_at_quantile(0.5) as f64 / 1e3,
        cpu_us: cpu * 1e6 / keys.max(1.0),
        batch: latencies.len() as f64 / (after.applied_index - before.applied_index).max(1) as f64,
    }
}
