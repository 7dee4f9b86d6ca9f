//! Durable appends of events of 300 B to 1,000 runs, at 1 to 256 callers, beside the bare journal append at the batch sizes
//! observed; and how many rows an append writes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use statehouse::runs::NewEvent;
use statehouse::{Json, Options, Runs, Statehouse};
use testkit::arguments::Arguments;
use testkit::report::Report;

use crate::bare_append;
use crate::callers::Measured;
use crate::records_speed::measure;

const CALLERS: [u64; 4] = [1, 16, 64, 256];

const RUNS: u64 = 1_000;

/// Bytes of an event's content.
pub const EVENT_BYTES: usize = 300;

/// The size of an append in an entry besides the content: envelope, names, key and time.
const OVERHEAD_BYTES: usize = 110;

pub fn run(arguments: &Arguments) -> Report {
    let small = arguments.flag("small");
    let duration = Duration::from_millis(arguments.number("milliseconds", if small { 300 } else { 5_000 }));
    let directory = tempfile::tempdir().expect("a directory");
    let house = Options::default().open(directory.path().join("house")).expect("a house");
    let log = Log::new(&house);
    let mut appends = Vec::new();
    for callers in CALLERS {
        let next_caller = AtomicU64::new(0);
        appends.push(measure(&house, "append", callers, duration, |random| {
            // Each caller has its own runs, so that no two commands of an entry share the row of a head.
            thread_local!(static CALLER: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(None) });
            let caller = CALLER.get().unwrap_or_else(|| next_caller.fetch_add(1, Ordering::Relaxed));
            CALLER.set(Some(caller));
            let own = RUNS / callers;
            log.append(caller * own + random.below(own));
            true
        }));
    }
    house.close().expect("close");
    drop((log, house));

    let mut report = Report::new("runs");
    let at_256 = appends.last().expect("256 callers");
    let Measured { per_second, cpu_us, .. } = at_256.measured;
    let figure = format!("{per_second:.0}/s-{cpu_us:.1}us-cpu");
    report.add("speed.append-256", figure, ">=50000/s", per_second >= 50_000.0);
    let rows = at_256.rows;
    report.add("speed.append-rows", format!("{rows:.2}"), "3", (rows - 3.0).abs() < 0.05);
    for (callers, append) in CALLERS.iter().zip(&appends) {
        let share = beside_bare(append, &directory.path().join(format!("append-{callers}")), duration);
        if *callers == 256 {
            report.add("speed.beside-journal", format!("{share:.2}"), ">0 of the bare journal append", share > 0.0);
        }
    }
    report
}

/// Runs, and a key that no event has had.
struct Log {
    runs: Runs,
    next: AtomicU64,
}

impl Log {
    fn new(house: &Statehouse) -> Self {
        let log = Self { runs: house.runs(), next: AtomicU64::new(0) };
        for run in 0..RUNS {
            log.append(run);
        }
        log
    }

    fn append(&self, run: u64) {
        let event = event(self.next.fetch_add(1, Ordering::Relaxed));
        let appended = self.runs.append(&format!("run-{run:04}"), &event).expect("an append");
        assert!(appended.persisted);
    }
}

/// An event without an id and without a step.
pub fn event(number: u64) -> NewEvent {
    let filling = "x".repeat(EVENT_BYTES - 8);
    let data = Json::new(format!("{{\"n\":\"{filling}\"}}")).expect("JSON");
    NewEvent::new("Progress", format!("key-{number:016}"), "2026-02-11T10:00:00Z", data)
}

/// The speed of appends compared with bare appends of as many bytes.
#[allow(clippy::cast_possible_truncation, reason = "a batch is a few hundred commands")]
fn beside_bare(append: &crate::records_speed::Run, directory: &std::path::Path, duration: Duration) -> f64 {
    let bytes = append.batch.round() as u32 as usize * (EVENT_BYTES + OVERHEAD_BYTES);
    let bare = bare_append::run(directory, bytes, duration);
    let per_second = append.batch * 1e9 / bare.mean();
    let share = append.measured.per_second / per_second;
    println!(
        "bare append at {:.1} events ({bytes} B): {per_second:.0} events/s, p50 {:.0} us, p99 {:.0} us; append is at {share:.2} of it",
        append.batch,
        bare.value_at_quantile(0.5) as f64 / 1000.0,
        bare.value_at_quantile(0.99) as f64 / 1000.0,
    );
    share
}
