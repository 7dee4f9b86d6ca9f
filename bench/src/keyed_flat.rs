//! Puts and gets among few and among many keys of one partition: what they cost, and what they take in memory.
//!
//! Twice: of as many keys as a cache holds, spread over all, as the keys of a stream are that come again; and of any key, each as
//! often as any other, where most reads are of blocks that no cache holds.

use std::time::{Duration, Instant};

use bench::keyed_work::{Keys, Operator, operators, run as run_operators};
use bench::resources::{directory_bytes, forget_resident_peak, resident_bytes, resident_peak_bytes};
use statehouse::{Options, Statehouse};
use testkit::arguments::Arguments;
use testkit::report::Report;

/// Keys that are loaded before the memory is looked at again.
const LOADED: u64 = 500_000;

/// Keys that come again and again.
const FREQUENT: u64 = 10_000;

/// What a put and a get take, in µs.
struct Cost {
    put: f64,
    get: f64,
}

/// What it takes among so many keys.
struct Measured {
    frequent: Cost,
    any: Cost,
    /// The most that was resident meanwhile.
    resident: u64,
}

pub fn run(arguments: &Arguments) -> Report {
    let small = arguments.flag("small");
    let few = arguments.number("few", if small { 20_000 } else { 1_000_000 });
    let many = arguments.number("many", if small { 60_000 } else { 20_000_000 });
    let duration = Duration::from_millis(arguments.number("milliseconds", if small { 200 } else { 15_000 }));
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("house");
    let house = Options::default().open(&path).expect("a house");
    let mut operator = operators(&house, 1);
    load(&house, &mut operator[0], 0..few);
    let before = measure(&house, &mut operator, few, duration);
    load(&house, &mut operator[0], few..many);
    let after = measure(&house, &mut operator, many, duration);
    println!("{} MiB on disk", directory_bytes(&path) >> 20);
    drop(operator);
    house.close().expect("close");

    let mut report = Report::new("keyed");
    let mut within = |what: &str, before: f64, after: f64, most: f64| {
        let ratio = after / before.max(0.001);
        let goal = format!("{many} keys within {most} times of {few}");
        report.add(&format!("flat.{what}"), format!("{ratio:.2}x"), &goal, ratio <= most);
    };
    within("put", before.frequent.put, after.frequent.put, 1.5);
    within("get", before.frequent.get, after.frequent.get, 1.5);
    within("put-any", before.any.put, after.any.put, 1.5);
    within("get-any", before.any.get, after.any.get, 1.5);
    within("memory", before.resident as f64, after.resident as f64, 1.2);
    report
}

fn load(house: &Statehouse, operator: &mut Operator, keys: std::ops::Range<u64>) {
    let started = Instant::now();
    let mut next = keys.start;
    while next < keys.end {
        let upto = keys.end.min(next + LOADED);
        operator.load(next..upto);
        next = upto;
    }
    house.flush().expect("flush");
    house.settle().expect("settle");
    let (count, seconds) = (keys.end - keys.start, started.elapsed().as_secs_f64());
    println!("{count} keys loaded in {seconds:.1} s, resident {} MiB", resident_bytes() >> 20);
}

fn measure(house: &Statehouse, operators: &mut [Operator], all: u64, duration: Duration) -> Measured {
    forget_resident_peak();
    let frequent = cost(house, operators, Keys { all, used: FREQUENT.min(all) }, duration);
    let any = cost(house, operators, Keys::all(all), duration);
    let resident = resident_peak_bytes();
    println!("{all} keys: at most {} MiB resident", resident >> 20);
    Measured { frequent, any, resident }
}

fn cost(house: &Statehouse, operators: &mut [Operator], keys: Keys, duration: Duration) -> Cost {
    let gets = |operators: &mut [Operator], duration: Duration| {
        let (started, mut gets) = (Instant::now(), 0_u64);
        while started.elapsed() < duration {
            (0..100).for_each(|_| operators[0].get(keys));
            gets += 100;
        }
        started.elapsed().as_secs_f64() * 1e6 / gets as f64
    };
    // What was written before is in the store, and caches are filled, before anything is measured.
    house.flush().expect("flush");
    house.settle().expect("settle");
    gets(operators, duration / 4);
    let get = gets(operators, duration);
    let committed = run_operators(house, operators, keys, duration);
    let put = 1e6 / committed.keys_per_second;
    println!("{keys:?}: {put:.2} us a put ({:.2} us CPU), {get:.2} us a get", committed.cpu_us);
    Cost { put, get }
}
