//! Parts of a random test that know nothing of each other: run side by side, until one fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use testkit::arguments::Arguments;
use testkit::random::Random;

/// Runs parts on all cores until one fails. Gives which failed, and how, by number.
pub(crate) fn run_all(numbers: &[u64], run: impl Fn(u64) -> Result<(), String> + Sync) -> Vec<(u64, String)> {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(number) = numbers.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(what) = run_one(|| run(*number)) {
                        next.store(numbers.len(), Ordering::Relaxed);
                        failures.lock().expect("no thread panics here").push((*number, what));
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().expect("no thread panics here");
    failures.sort_unstable();
    failures
}

/// The stretches of a test with so many operations, or the one that `--stretch` names.
pub(crate) fn numbers(arguments: &Arguments, operations: u64, each: u64) -> Vec<u64> {
    match arguments.flag("stretch") {
        true => vec![arguments.number("stretch", 0)],
        false => (0..operations.div_ceil(each)).collect(),
    }
}

/// The seed of a stretch.
pub(crate) fn seed_of(seed: u64, number: u64) -> u64 {
    Random::new(seed ^ (number + 1).wrapping_mul(0x9e37_79b9)).next()
}

/// Says which stretches have failed, how, and how to see it again.
pub(crate) fn print_failures(test: &str, seed: u64, operations: u64, failures: &[(u64, String)]) {
    for (number, what) in failures {
        println!("\n{test}: FAILED in stretch {number}\n  {what}");
        let command = "cargo run --profile stress -p sim --";
        println!("replay: {command} {test} --seed {seed} --ops {operations} --stretch {number}\n");
    }
}

fn run_one(run: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().cloned();
        let message = message.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("a panic: {}", message.unwrap_or_default()))
    })
}
