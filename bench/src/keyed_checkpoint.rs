//! A checkpoint of a large partition while its operator goes on committing: what commits notice of it, and what it takes in
//! memory; one of what has changed; and a restore with a replay, which must give the same state.
//!
//! Memory is the growth from right before to the highest, less that of the same commits alone: their overlay grows and shrinks, too.
//! Commits go on for a while before the first growth is measured, since the allocator gives back what the load took only bit by bit,
//! and only while it is used.
//! Commits are a function of their numbers, so those behind a checkpoint can be done again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bench::keyed_work::{VALUE_BYTES, key};
use bench::latency::histogram;
use bench::resources::{forget_resident_peak, resident_bytes, resident_peak_bytes};
use statehouse::keyed::{
    CheckpointChoice, CheckpointInfo, CheckpointOptions, Checkpoints, KeysRange, OwnedPartition, Partition,
};
use statehouse::records::ClaimOptions;
use statehouse::{Options, Statehouse, Value};
use testkit::arguments::Arguments;
use testkit::random::Random;
use testkit::report::Report;

/// Keys in a commit that loads.
const LOADED: u64 = 5_000;

/// Keys in any other.
const COMMITTED: u64 = 100;

/// The goal for memory, in MiB.
const MEMORY_MIB_MAX: i64 = 64;

/// An operator whose commits follow from their numbers.
struct Operator {
    partition: OwnedPartition,
    keys: u64,
    number: u64,
}

impl Operator {
    /// The commits that load come first.
    fn commit(&mut self) {
        self.number += 1;
        let (number, loading) = (self.number, self.keys.div_ceil(LOADED));
        let mut commit = self.partition.commit().advance("topic", number);
        if number <= loading {
            for place in (number - 1) * LOADED..self.keys.min(number * LOADED) {
                commit = commit.put(&key(place), value(number), number);
            }
        } else {
            let mut random = Random::new(number);
            for _ in 0..COMMITTED {
                commit = commit.put(&key(random.below(self.keys)), value(number), number);
            }
        }
        commit.run().expect("a commit");
    }

    fn commit_until(&mut self, over: impl Fn() -> bool) -> hdrhistogram::Histogram<u64> {
        let mut latencies = histogram();
        while !over() {
            let began = Instant::now();
            self.commit();
            latencies.saturating_record(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
        latencies
    }
}

fn value(number: u64) -> Vec<u8> {
    let mut value = vec![7; VALUE_BYTES];
    value[..8].copy_from_slice(&number.to_le_bytes());
    value
}

pub fn run(arguments: &Arguments) -> Report {
    let small = arguments.flag("small");
    let keys = arguments.number("keys", if small { 100_000 } else { 10_000_000 });
    let before = Duration::from_millis(arguments.number("milliseconds", if small { 300 } else { 15_000 }));
    let pace = arguments.number("mib-per-second", 0) << 20;
    let directory = tempfile::tempdir().expect("a directory");
    let house = Options::default().open(directory.path().join("house")).expect("a house");
    let checkpoints = directory.path().join("checkpoints");
    let checkpoints = Checkpoints::open(checkpoints.to_str().expect("text")).expect("a folder");
    let partition = house.keyed("large").partition(0);
    let lease = ClaimOptions::worker("bench").lease(Duration::from_secs(86_400));
    let owned = partition.acquire_by_force(&lease).expect("a partition");
    let mut operator = Operator { partition: owned, keys, number: 0 };
    let started = Instant::now();
    while operator.number < keys.div_ceil(LOADED) {
        operator.commit();
    }
    settle(&house);
    println!("{keys} keys loaded in {:.1} s", started.elapsed().as_secs_f64());
    let began = Instant::now();
    operator.commit_until(|| began.elapsed() > before);

    let (alone, of_commits) = growth_of(&house, || {
        let began = Instant::now();
        operator.commit_until(|| began.elapsed() > before)
    });
    let options = CheckpointOptions::default();
    let options = if pace > 0 { options.bytes_per_second(pace) } else { options };
    let ((during, full, took), of_checkpoint) =
        growth_of(&house, || beside(&partition, &mut operator, &checkpoints, &options));
    let (p99, p99_during) = (alone.value_at_quantile(0.99), during.value_at_quantile(0.99));
    println!(
        "p99 of {} commits {} us before, of {} during {took:.1} s of a checkpoint {} us; median {} and {} us",
        alone.len(),
        p99 / 1000,
        during.len(),
        p99_during / 1000,
        alone.value_at_quantile(0.5) / 1000,
        during.value_at_quantile(0.5) / 1000,
    );
    println!(
        "{} MiB in {took:.1} s; memory of commits alone: {of_commits}; with it: {of_checkpoint}",
        full.bytes >> 20
    );

    // One in a hundred keys changes.
    for _ in 0..keys.div_ceil(100 * COMMITTED) {
        operator.commit();
    }
    let started = Instant::now();
    let changed = operator.partition.checkpoint(&checkpoints, &options).expect("a checkpoint");
    println!("{} KiB of changes in {:.1} s", changed.bytes >> 10, started.elapsed().as_secs_f64());
    assert_eq!(changed.base, Some(full.number), "it says what has changed");
    for _ in 0..50 {
        operator.commit();
    }
    let (live, last) = (State::of(&partition), operator.number);
    let started = Instant::now();
    let (restored, of_restore) =
        growth_of(&house, || partition.restore(&checkpoints, &CheckpointChoice::latest(), &lease).expect("a restore"));
    let restored_s = started.elapsed().as_secs_f64();
    let number = restored.summary().expect("a summary").expect("a map").last_number;
    let mut operator = Operator { partition: restored, keys, number };
    assert!(number < last, "commits are left to replay");
    let at_checkpoint = State::of(&partition);
    while operator.number < last {
        operator.commit();
    }
    let replayed = State::of(&partition);
    println!("restored in {restored_s:.1} s, memory: {of_restore}; {} commits replayed", last - number);
    house.close().expect("close");

    let mut report = Report::new("keyed");
    let ratio = p99_during as f64 / p99.max(1) as f64;
    let goal = format!("p99 of commits beside a checkpoint of {keys} keys at most 3 times that before");
    report.add("checkpoints.p99", format!("{ratio:.2}x"), &goal, ratio <= 3.0);
    let goal = format!("at most {MEMORY_MIB_MAX} MiB more than the same commits alone");
    for (name, growth) in [("memory", of_checkpoint), ("restore-memory", of_restore)] {
        let more = growth.mib() - of_commits.mib();
        report.add(&format!("checkpoints.{name}"), format!("{more}MiB"), &goal, more <= MEMORY_MIB_MAX);
    }
    let share = changed.bytes as f64 * 100.0 / full.bytes as f64;
    report.add("checkpoints.changes", format!("{share:.2}%"), "1 % changed: at most 5 % of the bytes", share <= 5.0);
    let figure = format!("{}-keys-{}-positions-{}-replayed", replayed.keys, replayed.positions.len(), last - number);
    let goal = "restored and replayed, the same keys, values, versions and positions; before the replay, others";
    report.add("checkpoints.restored", figure, goal, replayed == live && at_checkpoint != live);
    report
}

/// What was resident right before something, and at most during it.
#[derive(Clone, Copy)]
struct Growth {
    before: u64,
    most: u64,
}

impl Growth {
    /// How much more it was.
    fn mib(self) -> i64 {
        let mib = |bytes: u64| i64::try_from(bytes >> 20).unwrap_or(i64::MAX);
        mib(self.most) - mib(self.before)
    }
}

impl std::fmt::Display for Growth {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} MiB before, at most {} MiB", self.before >> 20, self.most >> 20)
    }
}

/// Does something in a house that has nothing left to write or to merge, and measures the memory meanwhile.
fn growth_of<T>(house: &Statehouse, does: impl FnOnce() -> T) -> (T, Growth) {
    settle(house);
    forget_resident_peak();
    let before = resident_bytes();
    let done = does();
    (done, Growth { before, most: resident_peak_bytes() })
}

/// Takes a checkpoint while the operator commits. Returns what commits took, the checkpoint, and its seconds.
fn beside(
    partition: &Partition,
    operator: &mut Operator,
    checkpoints: &Checkpoints,
    options: &CheckpointOptions,
) -> (hdrhistogram::Histogram<u64>, CheckpointInfo, f64) {
    let taking = partition.owned(operator.partition.epoch()).expect("owned");
    let over = AtomicBool::new(false);
    let started = Instant::now();
    let (during, full) = std::thread::scope(|scope| {
        let taker = scope.spawn(|| {
            let taken = taking.checkpoint(checkpoints, options);
            over.store(true, Ordering::Relaxed);
            taken.expect("a checkpoint")
        });
        let during = operator.commit_until(|| over.load(Ordering::Relaxed));
        (during, taker.join().expect("a checkpoint"))
    });
    (during, full, started.elapsed().as_secs_f64())
}

fn settle(house: &Statehouse) {
    house.flush().expect("flush");
    house.settle().expect("settle");
}

/// All that a partition holds: its keys with their values and versions in short, and the positions of its inputs.
#[derive(PartialEq, Eq)]
struct State {
    digest: u64,
    keys: u64,
    positions: Vec<(String, u64)>,
}

impl State {
    fn of(partition: &Partition) -> Self {
        let positions = partition.input_positions(None, 1_000).expect("positions");
        let positions = positions.into_iter().map(|(input, at)| (input, at.position)).collect();
        let (mut digest, mut keys, mut range) = (0_u64, 0, KeysRange::default().limit(1_000));
        loop {
            let page = partition.scan(&range).expect("keys");
            for (key, found) in &page.keys {
                let Value::Bytes(value) = &found.value else { panic!("a value that nobody has put") };
                let version = found.version.map_or(0, |version| version.round);
                for byte in key.iter().chain(value).chain(&version.to_le_bytes()) {
                    digest = (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
                }
                keys += 1;
            }
            match page.next_after {
                Some(after) => range = range.after(&after),
                None => return Self { digest, keys, positions },
            }
        }
    }
}
