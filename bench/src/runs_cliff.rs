//! One run of 1,000,000 events: the last append costs what the first one did, and memory does not grow with it.

use std::collections::VecDeque;
use std::time::Instant;

use statehouse::runs::AppendOptions;
use statehouse::{Options, Runs};
use testkit::arguments::Arguments;
use testkit::report::Report;

use crate::runs_speed::event;
use bench::resources::{cpu_seconds, resident_bytes};

/// Concurrent appends.
const WINDOW: usize = 1_000;

/// Pieces of a tenth, each timed separately: the median is not affected by a disk that stalls now and then.
const PIECES: u64 = 20;

const RUN: &str = "run";

/// The cost per append in a part of the run.
struct Part {
    /// All of it.
    cpu_us: f64,
    /// Until the last append was answered.
    appending_us: f64,
    wall_us: f64,
    resident: u64,
}

pub fn run(arguments: &Arguments) -> Report {
    let small = arguments.flag("small");
    // Rounded, so that tenths and their pieces are whole.
    let events = arguments.number("events", if small { 40_000 } else { 1_000_000 }) / (10 * PIECES) * (10 * PIECES);
    let directory = tempfile::tempdir().expect("a directory");
    let house = Options::default().open(directory.path().join("house")).expect("a house");
    let runs = house.runs();
    // Caches and files are as they will be from then on.
    let warm_up = events / 10;
    append(&runs, 0, warm_up);
    let tenth = events / 10;
    let mut parts = Vec::new();
    for part in 1..=10_u64 {
        let cpu = cpu_seconds();
        let from = warm_up + (part - 1) * tenth;
        let piece = tenth / PIECES;
        let mut pieces_us: Vec<f64> = (0..PIECES)
            .map(|number| {
                let started = Instant::now();
                append(&runs, from + number * piece, piece);
                started.elapsed().as_secs_f64() * 1e6 / piece as f64
            })
            .collect();
        pieces_us.sort_by(f64::total_cmp);
        let appending_us = (cpu_seconds() - cpu) * 1e6 / tenth as f64;
        // Background work left by the appends counts towards them.
        house.flush().expect("flush");
        house.settle().expect("settle");
        let cpu_us = (cpu_seconds() - cpu) * 1e6 / tenth as f64;
        let wall_us = pieces_us[pieces_us.len() / 2];
        let resident = resident_bytes();
        println!(
            "{:>8} events: {cpu_us:.2} us CPU ({appending_us:.2} until answered) and {wall_us:.2} us for each, resident {} MiB",
            warm_up + part * tenth,
            resident >> 20
        );
        parts.push(Part { cpu_us, appending_us, wall_us, resident });
    }
    let mut slowest_us = 0.0_f64;
    for _ in 0..100 {
        let started = Instant::now();
        let snapshot = runs.snapshot(RUN).expect("a view").expect("the run exists");
        slowest_us = slowest_us.max(started.elapsed().as_secs_f64() * 1e6);
        assert_eq!(snapshot.last_event_seq, warm_up + 10 * tenth);
    }
    house.close().expect("close");

    let mut report = Report::new("runs");
    let (first, last) = (&parts[0], &parts[9]);
    // The store merges about every second tenth; two of them include one merge.
    let cpu = (parts[8].cpu_us + last.cpu_us) / (first.cpu_us + parts[1].cpu_us).max(0.001);
    report.add(
        "cliff.cpu",
        format!("{cpu:.2}x"),
        "last two tenths within 1.3 times the first, merges included",
        cpu <= 1.3,
    );
    let appending =
        parts[8].appending_us.min(last.appending_us) / first.appending_us.min(parts[1].appending_us).max(0.001);
    report.add(
        "cliff.append",
        format!("{appending:.2}x"),
        "the same without what the store merges behind",
        appending <= 1.3,
    );
    let wall = last.wall_us / first.wall_us;
    report.add("cliff.wall", format!("{wall:.2}x"), "last tenth within 1.3 times the first, median", wall <= 1.3);
    report.add("cliff.snapshot", format!("{slowest_us:.0}us"), "<5000us, slowest of 100", slowest_us < 5_000.0);
    // One reading is noise; the middle and the end are each the larger of two.
    let middle = parts[4].resident.max(parts[5].resident);
    let growth = parts[8].resident.max(last.resident) as f64 / middle.max(1) as f64;
    report.add("cliff.memory", format!("{growth:.2}x"), "end within 1.2 times the middle", growth <= 1.2);
    report
}

/// Appends events, many at a time.
fn append(runs: &Runs, from: u64, count: u64) {
    let options = AppendOptions::default();
    let mut under_way = VecDeque::new();
    for number in from..from + count {
        under_way.push_back((number, runs.append_later(RUN, &event(number), &options)));
        if under_way.len() > WINDOW {
            let (number, answer) = under_way.pop_front().expect("one");
            assert_eq!(answer.wait().expect("an append").run_seq, number + 1);
        }
    }
    for (number, answer) in under_way {
        assert_eq!(answer.wait().expect("an append").run_seq, number + 1);
    }
}
