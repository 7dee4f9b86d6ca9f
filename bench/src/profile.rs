//! One operation with a fixed number of callers, for as long as requested: `bench profile --op set --callers 256`.
//!
//! The operations: `set`, `cas` and `get` of cells, `claim` and `step` of records; `increment` of records, with
//! `--sessions` in a session of each caller; `keyed`: commits of 100 puts, one operator a caller.

use std::process::ExitCode;
use std::time::Duration;

use statehouse::{Options, Records, Session, Statehouse};

use crate::callers;
use crate::record_work::Work;
use crate::records_speed::{measure, tasks_for};
use crate::speed::{VALUE_BYTES, load, name, print_row, swap};
use testkit::arguments::Arguments;

pub fn run(arguments: &Arguments) -> ExitCode {
    let cells_count = arguments.number("cells", 200_000);
    let callers = arguments.number("callers", 256);
    let duration = Duration::from_millis(arguments.number("milliseconds", 5_000));
    let directory = tempfile::tempdir().expect("a directory");
    let house = Options::default().open(directory.path().join("house")).expect("a house");
    let op = arguments.text("op").unwrap_or("set");
    if op == "claim" || op == "step" {
        records(&house, op, callers, duration);
        return ExitCode::SUCCESS;
    }
    if op == "increment" {
        increment(&house, callers, duration, arguments.flag("sessions"));
        return ExitCode::SUCCESS;
    }
    if op == "keyed" {
        let operators = u32::try_from(arguments.number("callers", 16)).expect("a number of operators");
        let keys = arguments.number("keys", 1_000_000);
        crate::keyed_profile::run(&house, directory.path(), operators, keys, duration);
        return ExitCode::SUCCESS;
    }
    let cells = house.cells();
    load(&house, cells_count);
    let before = house.status().expect("status");
    let measured = callers::run(callers, duration, |random| match op {
        "get" => {
            assert!(cells.get(&name(random.below(cells_count))).expect("a get").is_some());
        }
        "cas" => swap(&cells, random, cells_count),
        _ => {
            cells.set(&name(random.below(cells_count)), vec![7; VALUE_BYTES]).expect("a set");
        }
    });
    let after = house.status().expect("status");
    let entries = (after.applied_index - before.applied_index).max(1);
    let batch = (after.commit - before.commit) as f64 / entries as f64;
    print_row(op, callers, &measured, &format!("{batch:.1} commands an entry"));
    ExitCode::SUCCESS
}

/// Increments of records, outside of sessions or in one of each caller.
fn increment(house: &Statehouse, callers: u64, duration: Duration, in_sessions: bool) {
    let sessions: Vec<Session> = (0..callers).map(|_| house.sessions().open().expect("a session")).collect();
    let handle = |session: &Session| if in_sessions { session.records() } else { house.records() };
    let handles: Vec<Records> = sessions.iter().map(handle).collect();
    println!("ready to be profiled: increment");
    let measured = callers::run_numbered(handles.len(), duration, |caller, random| {
        handles[caller].increment(&name(random.below(10_000)), "count", 1).is_ok()
    });
    print_row("increment", callers, &measured, "");
}

/// One operation on tasks, each claimed once.
fn records(house: &Statehouse, op: &str, callers: u64, duration: Duration) {
    let work = Work::new(house, "jobs.work.");
    work.fill_and_settle(house, tasks_for(callers, duration));
    if op == "step" {
        callers::run_while(callers, duration / 4, |random| work.claim(random));
    }
    println!("ready to be profiled: {op}");
    measure(house, op, callers, duration, |random| match op {
        "step" => work.step(random),
        _ => work.claim(random),
    });
}
