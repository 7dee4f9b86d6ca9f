//! The cost of exactly-once execution: the same commands in a session and without one, in turns within one run, each
//! caller with its own session and one request in progress.

use std::time::Duration;

use statehouse::sessions::{Session, SessionOptions};
use statehouse::{Cells, Options, Records, Statehouse};
use testkit::arguments::Arguments;
use testkit::random::Random;
use testkit::report::Report;

use crate::callers::{self, Measured};
use crate::speed::name;

const CALLERS: [usize; 2] = [16, 256];

/// Written things: enough that callers seldom meet.
const THINGS: u64 = 10_000;

/// A small value.
const VALUE_BYTES: usize = 16;

/// Longer than the measurement, so that no session ends.
const SESSION_TIME: Duration = Duration::from_secs(3_600);

/// The additional cost of a command in a session.
struct Cost {
    /// The rate without sessions by the rate within, of the pair of slices in the middle.
    by_rate: f64,
    /// CPU time within sessions by CPU time without, of all slices.
    by_cpu: f64,
}

pub fn run(arguments: &Arguments) -> Report {
    let small = arguments.flag("small");
    let slice = Duration::from_millis(arguments.number("milliseconds", if small { 100 } else { 1_000 }));
    let pairs = arguments.number("pairs", if small { 3 } else { 15 });
    let directory = tempfile::tempdir().expect("a directory");
    let house = Options::default().open(directory.path().join("house")).expect("a house");
    let mut report = Report::new("sessions");
    for callers in CALLERS {
        let sessions: Vec<Session> = (0..callers).map(|_| open(&house)).collect();
        let outside: Vec<Cells> = sessions.iter().map(|_| house.cells()).collect();
        let inside: Vec<Cells> = sessions.iter().map(Session::cells).collect();
        let set = measure("set", (&outside, &inside), slice, pairs, |cells, random| {
            cells.set(&name(random.below(THINGS)), vec![7; VALUE_BYTES]).expect("a set");
        });
        let outside: Vec<Records> = sessions.iter().map(|_| house.records()).collect();
        let inside: Vec<Records> = sessions.iter().map(Session::records).collect();
        let increment = measure("increment", (&outside, &inside), slice, pairs, |records, random| {
            records.increment(&name(random.below(THINGS)), "count", 1).expect("an increment");
        });
        for (what, cost) in [("set", set), ("increment", increment)] {
            let item = format!("cost.{what}-{callers}");
            let goal = "<=1.3 of the same without a session, by rate";
            if callers == 256 {
                report.add(&item, format!("{:.2}x", cost.by_rate), goal, cost.by_rate <= 1.3);
            }
            println!("{item}: {:.2} by rate, {:.2} by CPU time", cost.by_rate, cost.by_cpu);
        }
    }
    house.close().expect("close");
    report
}

fn open(house: &Statehouse) -> Session {
    house.sessions().open_with(SessionOptions::default().timeout(SESSION_TIME)).expect("a session")
}

/// One operation with the handles outside of sessions and with those inside, in turns.
fn measure<H: Sync>(
    what: &str,
    (outside, inside): (&[H], &[H]),
    slice: Duration,
    pairs: u64,
    operation: impl Fn(&H, &mut Random) + Sync,
) -> Cost {
    let run = |handles: &[H]| {
        callers::run_numbered(handles.len(), slice, |caller, random| {
            operation(&handles[caller], random);
            true
        })
    };
    // The cost of the first commands is not counted.
    run(outside);
    run(inside);
    let mut ratios = Vec::new();
    let (mut sum_outside, mut sum_inside) = (Sum::default(), Sum::default());
    for pair in 0..pairs {
        // Each goes first equally often: one pays for what the other leaves behind.
        let (without, within) = if pair % 2 == 0 {
            let without = run(outside);
            (without, run(inside))
        } else {
            let within = run(inside);
            (run(outside), within)
        };
        ratios.push(without.per_second / within.per_second);
        sum_outside.add(&without);
        sum_inside.add(&within);
    }
    sum_outside.print(what, outside.len(), "without");
    sum_inside.print(what, inside.len(), "in a session");
    ratios.sort_unstable_by(f64::total_cmp);
    Cost { by_rate: ratios[ratios.len() / 2], by_cpu: sum_inside.cpu_us() / sum_outside.cpu_us() }
}

/// All slices of one kind.
#[derive(Default)]
struct Sum {
    slices: f64,
    per_second: f64,
    commands: f64,
    cpu_us: f64,
}

impl Sum {
    fn add(&mut self, slice: &Measured) {
        let commands = slice.latency_ns.len() as f64;
        self.slices += 1.0;
        self.per_second += slice.per_second;
        self.commands += commands;
        self.cpu_us += slice.cpu_us * commands;
    }

    /// CPU time for each command.
    fn cpu_us(&self) -> f64 {
        self.cpu_us / self.commands.max(1.0)
    }

    fn print(&self, what: &str, callers: usize, how: &str) {
        let per_second = self.per_second / self.slices.max(1.0);
        println!("{what:>9} {callers:>4} callers {how:>12}: {per_second:>9.0}/s  cpu {:>5.1} us", self.cpu_us());
    }
}
