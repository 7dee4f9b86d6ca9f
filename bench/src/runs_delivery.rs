//! From an append to the tail that has its event, at a steady pace: paced appenders on many runs, and a tail on some.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use statehouse::runs::NewEvent;
use statehouse::{Json, Options, Statehouse};
use testkit::arguments::Arguments;
use testkit::random::Random;
use testkit::report::Report;

use crate::callers::histogram;

const APPENDERS: u32 = 32;
const TAILS: u64 = 8;
const RUNS: u64 = 100;

pub fn run(arguments: &Arguments) -> Report {
    let small = arguments.flag("small");
    let seconds = arguments.number("seconds", if small { 1 } else { 20 });
    let per_second = u32::try_from(arguments.number("rate", 5_000)).expect("a rate");
    let directory = tempfile::tempdir().expect("a directory");
    let house = Options::default().open(directory.path().join("house")).expect("a house");
    let stop = AtomicBool::new(false);
    let (house, stop) = (&house, &stop);
    let started = Instant::now();
    let (appended, latency_ns) = std::thread::scope(|scope| {
        let tails: Vec<_> = (0..TAILS).map(|run| scope.spawn(move || follow(house, run, started, stop))).collect();
        let pause = Duration::from_secs(1) * APPENDERS / per_second;
        let appenders: Vec<_> =
            (0..APPENDERS).map(|thread| scope.spawn(move || append(house, thread, pause, started, stop))).collect();
        std::thread::sleep(Duration::from_secs(seconds));
        stop.store(true, Ordering::Relaxed);
        let appended: u64 = appenders.into_iter().map(|thread| thread.join().expect("an appender")).sum();
        let mut all = histogram();
        for tail in tails {
            all.add(tail.join().expect("a tail")).expect("the same bounds");
        }
        (appended, all)
    });
    let rate = appended as f64 / started.elapsed().as_secs_f64();
    house.close().expect("close");
    let ms = |quantile| latency_ns.value_at_quantile(quantile) as f64 / 1e6;
    println!(
        "{appended} appends, {rate:.0}/s; {} delivered to {TAILS} tails: p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms",
        latency_ns.len(),
        ms(0.5),
        ms(0.99),
        ms(0.999)
    );
    let mut report = Report::new("runs");
    report.add("delivery.p99", format!("{:.1}ms", ms(0.99)), "<50ms at 5,000 appends/s", ms(0.99) < 50.0);
    let kept_pace = rate >= f64::from(per_second) * 0.95;
    report.add("delivery.pace", format!("{rate:.0}/s"), "the pace was kept", kept_pace);
    report
}

/// Appends at a steady pace; each event carries its time. Returns how many.
fn append(house: &Statehouse, thread: u32, pause: Duration, started: Instant, stop: &AtomicBool) -> u64 {
    let runs = house.runs();
    let mut random = Random::new(u64::from(thread) + 1);
    // Not all at once.
    let mut due = Instant::now() + pause * thread / APPENDERS;
    let mut appended = 0;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        due += pause;
        let run = format!("run-{}", random.below(RUNS));
        let began_ns = started.elapsed().as_nanos();
        let data = Json::new(began_ns.to_string()).expect("JSON");
        let event = NewEvent::new("Progress", format!("{thread}-{appended}"), "2026-02-11T10:00:00Z", data);
        runs.append(&run, &event).expect("an append");
        appended += 1;
    }
    appended
}

/// Follows a run. Returns the delivery times of its events, in ns.
fn follow(house: &Statehouse, run: u64, started: Instant, stop: &AtomicBool) -> Histogram<u64> {
    let mut tail = house.runs().tail(&format!("run-{run}"), 0);
    let mut latency_ns = histogram();
    while !stop.load(Ordering::Relaxed) {
        let fetched = tail.next(1_000, Duration::from_millis(50)).expect("events");
        let now_ns = u64::try_from(started.elapsed().as_nanos()).expect("a short time");
        for event in fetched.events {
            let began_ns = event.event.data.as_str().parse::<u64>().expect("a number");
            latency_ns.saturating_record(now_ns - began_ns);
        }
    }
    latency_ns
}
