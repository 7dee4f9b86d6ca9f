//! Keyed state beside RocksDB: commits of 100 puts, durable when they return, by as many operators at once.
//!
//! RocksDB has its log, synced for each batch, which callers that arrive together share; it looks nothing up. Ours reads every key
//! that it puts, to apply what is newer alone, and keeps the position of the input. RocksDB with a read before each put, as whoever
//! builds that on it needs, is printed beside it.
//! Touches: two directories. Keeps: all in turns, each round in the other order, the median of each; a turn begins when neither has
//! anything left to flush or to merge. Never: shares a key between operators.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bench::keyed_work::{COMMIT_PUTS, Keys, Operator, VALUE_BYTES, key, operators, run as run_operators};
use rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, Options, WriteBatch, WriteOptions};
use statehouse::Statehouse;
use testkit::arguments::Arguments;
use testkit::random::Random;
use testkit::report::Report;

use crate::store::wait_until_quiet;

const OPERATORS: [u32; 3] = [1, 4, 16];

/// As our own store has.
const CACHE_BYTES_MAX: usize = 128 << 20;

/// Keys of a batch that loads.
const LOADED: u64 = 5_000;

/// Who is measured.
#[derive(Clone, Copy)]
enum Turn {
    Ours,
    Rocks,
    /// RocksDB with a read before each put.
    Reading,
}

const TURNS: [Turn; 3] = [Turn::Ours, Turn::Rocks, Turn::Reading];

/// Measures both, and compares them.
pub fn run(arguments: &Arguments) -> Report {
    let small = arguments.flag("small");
    let duration = Duration::from_millis(arguments.number("milliseconds", if small { 300 } else { 10_000 }));
    let rounds = arguments.number("rounds", 3);
    let most = OPERATORS[OPERATORS.len() - 1];
    let keys = arguments.number("keys", if small { 20_000 } else { 1_000_000 }) / u64::from(most);
    let directory = tempfile::tempdir().expect("a directory");
    let house = Statehouse::open(directory.path().join("house")).expect("a house");
    let mut ours = operators(&house, most);
    ours.iter_mut().for_each(|operator| operator.load(0..keys));
    let rocks = open(&directory.path().join("rocks"));
    (0..most).for_each(|operator| load(&rocks, operator, keys));

    let mut report = Report::new("keyed");
    for count in OPERATORS {
        let (mut of_ours, mut of_rocks, mut reading) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..rounds {
            // Whoever comes first has the disk that the last one left.
            let order = if round % 2 == 0 { TURNS } else { [TURNS[2], TURNS[1], TURNS[0]] };
            for turn in order {
                settle(&house, &rocks);
                match turn {
                    Turn::Ours => of_ours.push(measure_ours(&house, &mut ours[..count as usize], keys, duration)),
                    Turn::Rocks => of_rocks.push(measure_rocks(&rocks, count, keys, duration, false)),
                    Turn::Reading => reading.push(measure_rocks(&rocks, count, keys, duration, true)),
                }
            }
        }
        let (of_ours, of_rocks, reading) = (median(of_ours), median(of_rocks), median(reading));
        let ratio = of_ours / of_rocks;
        println!(
            "{count:>3} operators: {of_ours:>8.0} keys/s, RocksDB {of_rocks:>8.0}, reading before it puts {reading:>8.0}"
        );
        let figure = format!("{ratio:.2}x-{of_ours:.0}-keys/s");
        report.add(&format!("rocksdb.{count}"), figure, ">=1.0 of RocksDB, its log synced per batch", ratio >= 1.0);
    }
    report
}

/// Flushes what both have in memory, and waits until neither merges.
fn settle(house: &Statehouse, rocks: &DB) {
    house.flush().expect("flush");
    house.settle().expect("settle");
    rocks.flush().expect("a flush");
    wait_until_quiet(rocks).expect("it settles");
}

fn median(mut speeds: Vec<f64>) -> f64 {
    speeds.sort_by(f64::total_cmp);
    speeds[speeds.len() / 2]
}

fn measure_ours(house: &Statehouse, operators: &mut [Operator], keys: u64, duration: Duration) -> f64 {
    run_operators(house, operators, Keys::all(keys), duration).keys_per_second
}

fn open(path: &Path) -> DB {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_compression_type(DBCompressionType::Lz4);
    let mut tables = BlockBasedOptions::default();
    tables.set_block_cache(&Cache::new_lru_cache(CACHE_BYTES_MAX).expect("a cache"));
    tables.set_bloom_filter(10.0, false);
    options.set_block_based_table_factory(&tables);
    DB::open(&options, path).expect("a database")
}

/// The key of an operator's partition.
fn row_key(operator: u32, number: u64) -> [u8; 20] {
    let mut row = [0; 20];
    row[..4].copy_from_slice(&operator.to_be_bytes());
    row[4..].copy_from_slice(&key(number));
    row
}

fn load(rocks: &DB, operator: u32, keys: u64) {
    let mut next = 0;
    while next < keys {
        let upto = keys.min(next + LOADED);
        let mut batch = WriteBatch::default();
        (next..upto).for_each(|number| batch.put(row_key(operator, number), [1; VALUE_BYTES]));
        rocks.write(batch).expect("a batch");
        next = upto;
    }
}

fn measure_rocks(rocks: &DB, operators: u32, keys: u64, duration: Duration, reads: bool) -> f64 {
    let (stop, started) = (AtomicBool::new(false), Instant::now());
    let commits: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..operators)
            .map(|operator| {
                let stop = &stop;
                scope.spawn(move || {
                    let mut options = WriteOptions::default();
                    options.set_sync(true);
                    let (mut random, mut commits) = (Random::new(operator.into()), 0);
                    while !stop.load(Ordering::Relaxed) {
                        let mut batch = WriteBatch::default();
                        for _ in 0..COMMIT_PUTS {
                            let row = row_key(operator, random.below(keys));
                            if reads {
                                assert!(rocks.get_pinned(row).expect("a get").is_some(), "every key was loaded");
                            }
                            batch.put(row, [7; VALUE_BYTES]);
                        }
                        rocks.write_opt(batch, &options).expect("a batch");
                        commits += 1;
                    }
                    commits
                })
            })
            .collect();
        std::thread::sleep(duration);
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().expect("an operator")).sum()
    });
    (commits * COMMIT_PUTS as u64) as f64 / started.elapsed().as_secs_f64()
}
