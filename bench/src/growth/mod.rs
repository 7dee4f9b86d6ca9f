//! The cost of commands as the store grows: the same claims, steps and appends among ever more records.
//!
//! Each size is reached by loading on from the one before, and every size is measured in the same way. Claims come in
//! rounds of half of the smallest size, with the claimed records given back in between; claims take the records that
//! have waited longest, so they go through all of them. Figures are CPU times above all: throughput and latency change
//! with the other load of the machine.

mod claims;
mod goals;
pub mod house;
mod phase;
pub mod population;
pub mod stores;
pub mod subject;
mod watched_store;

use testkit::arguments::Arguments;
use testkit::report::Report;

pub use self::claims::run as run_claims;
use self::phase::{CommandFigures, Phase, PhaseFigures};
use self::subject::{Space, Subject};
use crate::latency::{histogram, quantile_us};
use crate::usage::Usage;

/// The sizes without `--sizes`.
const SIZES: [u64; 4] = [100_000, 1_000_000, 3_000_000, 10_000_000];

/// Commands of each kind at each size, unless the smallest size is small.
const COMMANDS: u64 = 300_000;

/// Reads at each size, but no more than there are records.
const GETS: u64 = 50_000;

/// Costs may rise by this factor from the smallest size to any other.
const FACTOR_MAX: f64 = 1.3;

/// What to measure.
pub struct Plan {
    sizes: Vec<u64>,
    commands: u64,
    gets: u64,
}

impl Plan {
    /// `--sizes 20000,60000`, rising; `--commands 60000`, the number of each kind at each size; `--gets 50000`, of reads.
    pub fn new(arguments: &Arguments) -> Self {
        let sizes: Vec<u64> = match arguments.text("sizes") {
            None => SIZES.to_vec(),
            Some(sizes) => sizes.split(',').map(|size| size.parse().expect("--sizes takes numbers")).collect(),
        };
        assert!(sizes.is_sorted_by(|left, right| left < right), "--sizes rise");
        assert!(sizes.first().is_some_and(|first| *first >= 1_000), "the smallest size is at least 1,000 records");
        let commands = arguments.number("commands", COMMANDS.min(sizes[0] * 3));
        assert!(commands > 0, "--commands is above zero");
        Self { sizes, commands, gets: arguments.number("gets", GETS) }
    }

    /// Claims before the claimed records are given back.
    fn round(&self) -> u64 {
        self.commands.min(self.sizes[0] / 2)
    }
}

/// Everything measured at one size.
struct SizeFigures {
    size: u64,
    /// The first one is the loading.
    phases: Vec<PhaseFigures>,
    get_us: f64,
    space: Space,
}

impl SizeFigures {
    fn commands(&self) -> impl Iterator<Item = &CommandFigures> {
        self.phases.iter().flat_map(|phase| &phase.commands)
    }

    /// CPU µs of a command, on average over all phases but the loading. A merge that is put off until the next phase is
    /// in it.
    fn mean_cpu_us(&self) -> f64 {
        let measured = || self.phases.iter().skip(1).flat_map(|phase| &phase.commands);
        let us: f64 = measured().map(|command| command.cpu_us() * command.count as f64).sum();
        us / measured().map(|command| command.count).sum::<u64>() as f64
    }

    fn resident_peak(&self) -> u64 {
        self.phases.iter().map(PhaseFigures::resident_peak).max().unwrap_or(0)
    }
}

/// Measures the whole library at every size, then compares each size with the smallest; with `--pressure`, compares what
/// the largest size costs with what a large store may cost.
pub fn run(arguments: &Arguments) -> Report {
    let plan = Plan::new(arguments);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("house");
    let mut house = house::House::create(&path, population::Names::Scattered, arguments);
    let figures = measure(&mut house, &plan, |_, _| {});
    if arguments.flag("pressure") {
        return goals::judge(&figures);
    }
    let mut report = Report::new("records");
    compare(&mut report, &figures);
    report
}

/// Measures a subject at every size, and prints. `at_size` is called at the end of each.
fn measure<S: Subject>(subject: &mut S, plan: &Plan, mut at_size: impl FnMut(&mut S, u64)) -> Vec<SizeFigures> {
    let mut loaded = 0;
    let mut figures = Vec::new();
    for size in &plan.sizes {
        figures.push(measure_size(subject, plan, loaded, *size));
        at_size(subject, *size);
        loaded = *size;
    }
    figures
}

fn measure_size(subject: &mut dyn Subject, plan: &Plan, loaded: u64, size: u64) -> SizeFigures {
    let mut phases = Vec::new();
    let mut finish = |phase: Phase, subject: &mut dyn Subject| {
        let figures = phase.settle(subject);
        figures.print(size);
        phases.push(figures);
    };

    let mut loading = Phase::begin(subject);
    loading.round("load", |_| {
        subject.load(loaded..size);
        size - loaded
    });
    finish(loading, subject);

    let mut claiming = Phase::begin(subject);
    let mut left = plan.commands;
    while left > 0 {
        let count = left.min(plan.round());
        claiming.round("claim", |latency_ns| {
            subject.claim(count, latency_ns);
            count
        });
        left -= count;
        if left > 0 {
            claiming.round("release", |latency_ns| subject.release(latency_ns));
        }
    }
    finish(claiming, subject);

    let mut stepping = Phase::begin(subject);
    stepping.round("step", |latency_ns| {
        subject.step(plan.commands, latency_ns);
        plan.commands
    });
    finish(stepping, subject);
    subject.release(&mut histogram());
    subject.settle();

    let mut appending = Phase::begin(subject);
    appending.round("append", |latency_ns| {
        subject.append(plan.commands, latency_ns);
        plan.commands
    });
    finish(appending, subject);

    let mut get_ns = histogram();
    let before = Usage::now();
    println!("ready to be profiled: reads among {size} records");
    subject.get(plan.gets.min(size), &mut get_ns);
    let get_us = Usage::now().since(&before).of_threads(|thread| thread == crate::usage::CALLER) / get_ns.len() as f64;
    let space = subject.space();
    let total = |seconds: fn(&PhaseFigures) -> f64| phases.iter().map(seconds).sum::<f64>();
    let (background, settling) = (total(|phase| phase.background_seconds), total(|phase| phase.settling_seconds));
    let figures = SizeFigures { size, phases, get_us, space };
    println!(
        "{size:>9}     get: cpu {get_us:.2} us  p50 {:.1} us  p99 {:.1} us  max {:.1} us",
        quantile_us(&get_ns, 0.5),
        quantile_us(&get_ns, 0.99),
        quantile_us(&get_ns, 1.0),
    );
    println!(
        "{size:>9}     all: cpu {:.2} us a command after loading; flushing and merging took {background:.1} s since the size before, {settling:.1} s of it after the last commands",
        figures.mean_cpu_us()
    );
    println!(
        "{size:>9}   space: {} MiB in files, {} MiB in the store, {} MiB live ({:.2} times)",
        space.files >> 20,
        space.store >> 20,
        space.live >> 20,
        space.store as f64 / space.live as f64
    );
    figures
}

/// Adds the ratios of every size to the smallest.
fn compare(report: &mut Report, figures: &[SizeFigures]) {
    let (smallest, larger) = figures.split_first().expect("a size");
    let goal = format!("<={FACTOR_MAX} times that among {} records", smallest.size);
    for at in larger {
        let mut judge = |what: &str, now: f64, first: f64| {
            let ratio = now / first;
            report.add(&format!("growth.{what}-{}", at.size), format!("{ratio:.2}x"), &goal, ratio <= FACTOR_MAX);
        };
        for (first, now) in smallest.commands().zip(at.commands()) {
            judge(&format!("{}-cpu", now.name), now.cpu_us(), first.cpu_us());
            if !now.has_latencies() {
                continue;
            }
            let ratio = |quantile| now.quantile_us(quantile) / first.quantile_us(quantile);
            println!(
                "{:>9} {:>7}: p50 {:.2}x, p99 {:.2}x, p99.9 {:.2}x, max {:.2}x of that among {} records",
                at.size,
                now.name,
                ratio(0.5),
                ratio(0.99),
                ratio(0.999),
                ratio(1.0),
                smallest.size,
            );
        }
        judge("all-cpu", at.mean_cpu_us(), smallest.mean_cpu_us());
        judge("get-cpu", at.get_us, smallest.get_us);
        judge("resident-peak", at.resident_peak() as f64, smallest.resident_peak() as f64);
        let spread = |figures: &SizeFigures| figures.space.store as f64 / figures.space.live as f64;
        judge("space", spread(at), spread(smallest));
    }
}
