//! Durable claim, step and complete, and get, at 1 to 256 callers, beside the bare journal append at the batch sizes
//! observed; then workers that claim, step and complete while the queue is refilled.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use statehouse::{Options, Statehouse};
use testkit::arguments::Arguments;
use testkit::random::Random;
use testkit::report::Report;

use crate::bare_append;
use crate::callers::{self, Measured};
use crate::record_work::Work;
use crate::speed::print_row;

const CALLERS: [u64; 4] = [1, 16, 64, 256];

/// The size of a claim in an entry: envelope, prefix, worker.
const CLAIM_BYTES: usize = 70;

/// The maximum number of claims per second; the queue is filled for the whole measurement.
const CLAIMS_PER_SECOND_MAX: u64 = 120_000;

/// The speed of an operation, and its cost in the journal and the store.
pub struct Run {
    pub measured: Measured,
    /// Commands in one entry, on average.
    pub batch: f64,
    /// Rows that a command wrote, on average, without those written once for an entry.
    pub rows: f64,
}

pub fn run(arguments: &Arguments) -> Report {
    let small = arguments.flag("small");
    let duration = Duration::from_millis(arguments.number("milliseconds", if small { 300 } else { 3_000 }));
    let seconds = arguments.number("seconds", if small { 1 } else { 30 });
    let queued = arguments.number("queued", if small { 5_000 } else { 100_000 });
    let directory = tempfile::tempdir().expect("a directory");
    let house = Options::default().open(directory.path().join("house")).expect("a house");
    let mut report = Report::new("records");

    let work = Work::new(&house, "jobs.work.");
    let mut claims = Vec::new();
    let mut step_rows = 0.0;
    for callers in CALLERS {
        work.fill_and_settle(&house, tasks_for(callers, duration));
        claims.push(measure(&house, "claim", callers, duration, |random| work.claim(random)));
        let step = measure(&house, "step", callers, duration, |random| work.step(random));
        step_rows = step.rows;
        measure(&house, "complete", callers, duration, |random| work.complete(random));
        let get = callers::run_while(callers, duration, |random| work.get(random));
        print_row("get", callers, &get, "");
    }
    drop(work);
    let claim = claims.last().expect("256 callers");
    let (per_second, rows) = (claim.measured.per_second, claim.rows);
    report.add("speed.claim-256", format!("{per_second:.0}/s"), ">=60000/s", per_second >= 60_000.0);
    report.add("speed.claim-rows", format!("{rows:.2}"), "3", (rows - 3.0).abs() < 0.01);
    report.add("speed.step-rows", format!("{step_rows:.2}"), "1", (step_rows - 1.0).abs() < 0.01);

    let cycles = measure_loop(&house, queued, Duration::from_secs(seconds));
    report.add("speed.loop", format!("{cycles:.0}/s"), ">0 claim-step-complete", cycles > 0.0);
    house.close().expect("close");
    drop(house);
    print_bare_appends(&claims, directory.path(), duration);
    report
}

/// The maximum number of tasks that callers can claim in that time.
pub fn tasks_for(callers: u64, duration: Duration) -> u64 {
    let milliseconds = u64::try_from(duration.as_millis()).expect("a short time");
    // A caller claims one task per sync, which takes at least a tenth of a millisecond.
    CLAIMS_PER_SECOND_MAX.min(callers * 10_000) * milliseconds / 1_000
}

pub fn measure(
    house: &Statehouse,
    what: &str,
    callers: u64,
    duration: Duration,
    operation: impl Fn(&mut Random) -> bool + Sync,
) -> Run {
    let before = house.status().expect("status");
    let measured = callers::run_while(callers, duration, operation);
    let after = house.status().expect("status");
    let commands = (after.commit - before.commit) as f64;
    let batch = commands / (after.applied_index - before.applied_index).max(1) as f64;
    let rows = (after.command_rows - before.command_rows) as f64 / commands;
    print_row(what, callers, &measured, &format!("{batch:.1} commands an entry, {rows:.2} rows a command"));
    Run { measured, batch, rows }
}

/// Workers on a queue that is kept full. Returns finished tasks per second.
fn measure_loop(house: &Statehouse, queued: u64, duration: Duration) -> f64 {
    let work = Work::new(house, "jobs.loop.");
    work.fill_and_settle(house, queued);
    let stop = AtomicBool::new(false);
    let run = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                match queued.saturating_sub(work.ready()) {
                    missing if missing >= queued / 100 => work.fill(missing),
                    _ => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        });
        let run = measure(house, "loop", 256, duration, |random| work.work(random));
        stop.store(true, Ordering::Relaxed);
        run
    });
    println!("{} tasks were ready at the end of {queued}; puts are among the commands", work.ready());
    run.measured.per_second
}

#[allow(clippy::cast_possible_truncation, reason = "a batch is a few hundred commands")]
fn print_bare_appends(claims: &[Run], directory: &std::path::Path, duration: Duration) {
    for (callers, claim) in CALLERS.iter().zip(claims) {
        let bytes = claim.batch.round() as u32 as usize * CLAIM_BYTES;
        let append = bare_append::run(&directory.join(format!("append-{callers}")), bytes, duration);
        let per_second = claim.batch * 1e9 / append.mean();
        println!(
            "bare append at {:.1} claims ({bytes} B): {per_second:.0} claims/s, p50 {:.0} us, p99 {:.0} us; claim is at {:.2} of it",
            claim.batch,
            append.value_at_quantile(0.5) as f64 / 1000.0,
            append.value_at_quantile(0.99) as f64 / 1000.0,
            claim.measured.per_second / per_second,
        );
    }
}
