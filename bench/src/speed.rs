//! Durable `set`, `cas` and `get` at 1, 16 and 256 callers, beside the bare parts at the batch sizes observed.

use std::path::Path;
use std::time::Duration;

use statehouse::{Cells, Expected, Options, Statehouse, Swapped};
use testkit::random::Random;

use crate::bare_map::{self, BareMap};
use crate::callers::{self, Measured};
use crate::{bare_append, restart};
use testkit::arguments::Arguments;
use testkit::report::Report;

pub const VALUE_BYTES: usize = 200;
const CALLERS: [u64; 3] = [1, 16, 256];

/// The size of a `set` in an entry besides its value: envelope, names, lengths.
const COMMAND_OVERHEAD_BYTES: usize = 75;

pub fn name(cell: u64) -> String {
    format!("cell-{cell:09}")
}

struct SetRun {
    measured: Measured,
    /// Commands in one entry, on average.
    batch: f64,
}

pub fn run(arguments: &Arguments) -> Report {
    let cells_count = arguments.number("cells", 1_000_000);
    let small = arguments.flag("small");
    let duration = Duration::from_millis(arguments.number("milliseconds", if small { 300 } else { 5_000 }));
    let directory = tempfile::tempdir().expect("a directory");
    let house = Options::default().open(directory.path().join("house")).expect("a house");
    let cells = house.cells();
    load(&house, cells_count);

    let mut sets = Vec::new();
    for callers in CALLERS {
        let before = house.status().expect("status");
        let measured = callers::run(callers, duration, |random| {
            cells.set(&name(random.below(cells_count)), vec![7; VALUE_BYTES]).expect("a set");
        });
        let after = house.status().expect("status");
        let batch = (after.commit - before.commit) as f64 / (after.applied_index - before.applied_index) as f64;
        print_row("set", callers, &measured, &format!("{batch:.1} commands an entry"));
        sets.push(SetRun { measured, batch });
    }
    for callers in CALLERS {
        let measured = callers::run(callers, duration, |random| swap(&cells, random, cells_count));
        print_row("cas", callers, &measured, "with the get before it");
    }
    let mut gets = Vec::new();
    for callers in CALLERS {
        let measured = callers::run(callers, duration, |random| {
            assert!(cells.get(&name(random.below(cells_count))).expect("a get").is_some());
        });
        print_row("get", callers, &measured, "");
        gets.push(measured);
    }
    drop(cells);
    house.close().expect("close");

    let mut report = Report::new("cells");
    let mut bare = BareMap::load(&directory.path().join("map"), cells_count, VALUE_BYTES);
    compare_sets(&mut report, directory.path(), &mut bare, &sets, cells_count, duration);
    compare_gets(&mut report, &bare, &gets, cells_count, duration);
    drop(bare);
    let commands = if small { 5_000 } else { 100_000 };
    let replay = restart::measure(&directory.path().join("replayed"), commands);
    let seconds = replay.as_secs_f64();
    report.add("speed.restart", format!("{seconds:.2}s"), "<3s for 100,000 commands", seconds < 3.0);
    report
}

#[allow(clippy::cast_possible_truncation, reason = "a batch is a few hundred commands")]
fn compare_sets(
    report: &mut Report,
    directory: &Path,
    bare: &mut BareMap,
    sets: &[SetRun],
    cells_count: u64,
    duration: Duration,
) {
    let map_per_second = bare.run_sets(cells_count, VALUE_BYTES, duration);
    println!("bare sorted map with lsm-tree behind: {map_per_second:.0} commands/s (one get, two writes)");
    for (callers, set) in CALLERS.iter().zip(sets) {
        let commands = set.batch.round() as u32 as usize;
        let bytes = commands * (VALUE_BYTES + COMMAND_OVERHEAD_BYTES);
        let append = bare_append::run(&directory.join(format!("append-{callers}")), bytes, duration);
        let seconds = append.mean() / 1e9;
        let append_per_second = set.batch / seconds;
        let p99_us = append.value_at_quantile(0.99) as f64 / 1000.0;
        println!(
            "bare append at {:.1} commands ({bytes} B): {append_per_second:.0} commands/s, p50 {:.0} us, p99 {p99_us:.0} us",
            set.batch,
            append.value_at_quantile(0.5) as f64 / 1000.0
        );
        if *callers == 256 {
            let ratio = set.measured.per_second / append_per_second.min(map_per_second);
            report.add("speed.set-256", format!("{ratio:.2}x"), ">=0.6 of the slower bare part", ratio >= 0.6);
        }
        if *callers == 16 {
            let ratio = set.measured.quantile_us(0.99) / p99_us;
            report.add("speed.set-16-p99", format!("{ratio:.2}x"), "<=2 times the bare append's", ratio <= 2.0);
        }
    }
}

fn compare_gets(report: &mut Report, bare: &BareMap, gets: &[Measured], cells_count: u64, duration: Duration) {
    let mut worst = f64::MAX;
    for (callers, get) in CALLERS.iter().zip(gets) {
        let measured = callers::run(*callers, duration, |random| {
            assert!(bare.get(&bare_map::key(random.below(cells_count), None)).is_some());
        });
        print_row("bare get", *callers, &measured, "sorted map, then tree");
        worst = worst.min(get.per_second / measured.per_second);
    }
    report.add("speed.get", format!("{worst:.2}x"), ">=0.5 of the bare get", worst >= 0.5);
}

pub fn load(house: &Statehouse, cells_count: u64) {
    let cells = house.cells();
    let mut pending = std::collections::VecDeque::new();
    for cell in 0..cells_count {
        pending.push_back(cells.set_later(&name(cell), vec![1; VALUE_BYTES]));
        if pending.len() > 1_000 {
            pending.pop_front().expect("one").wait().expect("a set");
        }
    }
    for answer in pending {
        answer.wait().expect("a set");
    }
    house.flush().expect("flush");
    house.settle().expect("settle");
}

pub fn swap(cells: &Cells, random: &mut Random, cells_count: u64) {
    let name = name(random.below(cells_count));
    let version = cells.get_versioned(&name).expect("a get").expect("a cell").version;
    match cells.cas(&name, Expected::Version(version), vec![8; VALUE_BYTES]).expect("a swap") {
        // Another caller may have been faster; that is an answer, not a failure.
        Swapped::Written(_) | Swapped::Conflict { .. } => {}
    }
}

pub fn print_row(what: &str, callers: u64, measured: &Measured, note: &str) {
    println!(
        "{what:>9} {callers:>4} callers: {:>9.0}/s  p50 {:>8.1} us  p99 {:>8.1} us  p99.9 {:>8.1} us  max {:>9.1} us  cpu {:>5.1} us  {note}",
        measured.per_second,
        measured.quantile_us(0.5),
        measured.quantile_us(0.99),
        measured.quantile_us(0.999),
        measured.quantile_us(1.0),
        measured.cpu_us,
    );
}
