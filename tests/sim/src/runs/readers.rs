//! Readers: none is ever skipped. Many append to a hundred runs, while tails and pollers start and stop anywhere.
//!
//! `sim runs-readers --seconds S [--seed N]`. A reader takes a run and a place in it, reads on from there for a while, and
//! goes to another. Whatever it is given must come right behind its cursor; what was acknowledged before it asked must be
//! there; and afterwards every stretch that was read is compared with what the appenders were answered, so that the right
//! sequences with the wrong events are seen too. At the end every run is read from its first event to its last.
//! Would see broken: L1 for readers, J1 (what is answered can be read).
//! What is done is drawn from the seed; how the threads meet is up to the machine.

mod answers;
mod reader;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use contract::Json;
use contract::runs::NewEvent;
use statehouse::{Options, Statehouse};
use testkit::arguments::Arguments;
use testkit::random::Random;
use testkit::report::Report;

use answers::Answers;
use reader::{Read, Reader, Way};

const RUNS: usize = 100;
const APPENDERS: u64 = 32;
const READERS: u64 = 16;

/// Runs the appenders, tails and pollers.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let seed = arguments.seed();
    let seconds = arguments.number("seconds", 10);
    println!("runs-readers: seed {seed}, {seconds} s, {APPENDERS} appenders, {READERS} readers, {RUNS} runs");
    let outcome = work(seed, Duration::from_secs(seconds));
    let (read, verdict) = match &outcome {
        Ok(read) => (*read, String::new()),
        Err(what) => {
            println!("\nruns-readers: FAILED: {what}");
            let command = "cargo run --profile stress -p sim --";
            println!("replay: {command} runs-readers --seed {seed} --seconds {seconds}\n");
            (Read::default(), "-failed".to_owned())
        }
    };
    println!("runs-readers: {} appends, {} stretches, {} events read", read.appends, read.stretches, read.events);
    let mut report = Report::new("runs");
    let figure = format!("{}-appends-{}-events-read{verdict}", read.appends, read.events);
    let ok = outcome.is_ok() && read.events > read.appends;
    report.add("readers", figure, "60 s, each reader sees each event once, in order", ok);
    report
}

fn work(seed: u64, length: Duration) -> Result<Read, String> {
    let text = |error: statehouse::Error| error.to_string();
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let house = Options::default().open(directory.path().join("house")).map_err(text)?;
    let answers = Answers::new(RUNS);
    let stop = AtomicBool::new(false);
    let (answers, stop) = (&answers, &stop);
    let read = std::thread::scope(|scope| {
        let house = &house;
        let appenders: Vec<_> =
            (0..APPENDERS).map(|thread| scope.spawn(move || append(house, answers, stop, seed, thread))).collect();
        let readers: Vec<_> = (0..READERS)
            .map(|thread| {
                let way = if thread % 2 == 0 { Way::Tail } else { Way::Poll };
                let random = Random::new(seed ^ (thread + 1).wrapping_mul(0x5851_f42d));
                // A few stay with one run, as most readers do.
                let faithful = thread < 4;
                scope.spawn(move || Reader::new(house.runs(), way, answers, random, faithful).read_until(stop))
            })
            .collect();
        let started = Instant::now();
        let failed = || appenders.iter().any(|thread| thread.is_finished()) || readers.iter().any(|r| r.is_finished());
        while started.elapsed() < length && !failed() {
            std::thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, Ordering::SeqCst);
        let mut read = Read::default();
        for appender in appenders {
            read.appends += appender.join().map_err(|_| "an appender panicked")??;
        }
        let mut stretches = Vec::new();
        for reader in readers {
            stretches.extend(reader.join().map_err(|_| "a reader panicked")??);
        }
        // Everything, from the first event to the last.
        let mut last = Reader::new(house.runs(), Way::Poll, answers, Random::new(seed), false);
        for run in 0..RUNS {
            stretches.push(last.whole(run)?);
        }
        read.stretches = stretches.len() as u64;
        read.events = stretches.iter().map(|stretch| stretch.upto - stretch.after).sum();
        answers.compare(&stretches)?;
        Ok::<_, String>(read)
    })?;
    house.close().map_err(text)?;
    Ok(read)
}

/// Appends to any run until it is told to stop; at times again what was appended. Gives how many events that were.
fn append(house: &Statehouse, answers: &Answers, stop: &AtomicBool, seed: u64, thread: u64) -> Result<u64, String> {
    let mut random = Random::new(seed.wrapping_add(thread << 32));
    let runs = house.runs();
    let mut appended = 0;
    while !stop.load(Ordering::SeqCst) {
        let run = random.index(RUNS);
        let event = event(&format!("{thread}-{appended}"));
        for _ in 0..if random.one_in(20) { 2 } else { 1 } {
            let result = runs.append(&run_name(run), &event).map_err(|error| format!("an append: {error}"))?;
            if !result.idempotent {
                answers.enter(run, result.run_seq, &event.idempotency_key)?;
                appended += 1;
            }
        }
        // In bursts, so that readers wait at times.
        if random.one_in(200) {
            std::thread::sleep(Duration::from_millis(random.below(30)));
        }
    }
    Ok(appended)
}

fn event(key: &str) -> NewEvent {
    NewEvent::new("Progress", key, "2026-02-11T10:00:00Z", Json::from_checked("{}".to_owned()))
}

fn run_name(run: usize) -> String {
    format!("run-{run}")
}
