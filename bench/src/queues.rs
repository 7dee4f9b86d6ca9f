//! Claims among few, many and very many queues: everything ready, one record ready, nothing ready; by a worker's own queue
//! and by a prefix of all; and writes beside them. Then how long claims take to replay.
//!
//! The stores hold equally many records, and take turns, so that what else the machine does hits all of them.

use std::collections::VecDeque;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bench::latency::{histogram, quantile_us};
use bench::usage::Usage;
use hdrhistogram::Histogram;
use statehouse::records::{ClaimOptions, Put, Records};
use statehouse::{Options, Statehouse};
use testkit::arguments::Arguments;
use testkit::random::Random;
use testkit::report::Report;

use crate::callers;

/// All queues are below this one.
const PREFIX: &str = "order/";

/// The queue that is written to beside the claims.
const BESIDE: &str = "beside.";

/// Longer than the measurement.
const LEASE: Duration = Duration::from_secs(24 * 60 * 60);

/// Records that are put, or claimed to empty the store, at a time.
const IN_FLIGHT: usize = 512;
const CLAIMED_AT_ONCE: u32 = 256;

/// How much is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ready {
    Everything,
    One,
    Nothing,
}

/// From where a worker claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    OwnQueue,
    AllQueues,
}

/// A store with its queues.
struct Shop {
    house: Statehouse,
    records: Records,
    queues: u64,
    /// The queue of the next claim; each record of a store is alone in its queue if there are as many queues.
    next: AtomicU64,
    /// The queue of the record that alone is ready, and how many there were.
    only: AtomicU64,
    put: AtomicU64,
    _directory: tempfile::TempDir,
}

/// Latencies of one kind of work in one store.
struct Latencies {
    claims_ns: Histogram<u64>,
    puts_ns: Histogram<u64>,
}

pub fn run(arguments: &Arguments) -> Report {
    let small = arguments.flag("small");
    let sizes = if small { [10, 100, 2_000] } else { [10, 10_000, 1_000_000] };
    let records = sizes[2];
    let workers = usize::try_from(arguments.number("workers", 64)).expect("a number of threads");
    let (rounds, turn) = if small { (2, Duration::from_millis(50)) } else { (8, Duration::from_millis(500)) };
    let shops: Vec<_> = sizes.iter().map(|queues| Shop::open(*queues, records)).collect();
    let mut report = Report::new("pressure");
    let (mut all, mut puts) = (Vec::new(), Vec::new());
    for ready in [Ready::Everything, Ready::Nothing, Ready::One] {
        for shop in shops.iter().filter(|_| ready != Ready::Everything) {
            shop.claim_everything();
        }
        for from in [From::OwnQueue, From::AllQueues] {
            if ready == Ready::One {
                shops.iter().for_each(Shop::put_one);
            }
            let mut latencies: Vec<_> = shops.iter().map(|_| Latencies::new()).collect();
            for _ in 0..rounds {
                for (shop, latencies) in shops.iter().zip(&mut latencies) {
                    shop.turn(ready, from, workers, turn, latencies);
                }
            }
            let claims: Vec<_> = latencies.iter().map(|each| quantile_us(&each.claims_ns, 0.99)).collect();
            let beside: Vec<_> = latencies.iter().map(|each| quantile_us(&each.puts_ns, 0.99)).collect();
            for ((queues, each), put_us) in sizes.iter().zip(&latencies).zip(&beside) {
                println!(
                    "{ready:?} ready, claimed from {from:?}, {queues} queues: {} claims, p50 {:.0} us, p99 {:.0} us; a put \
                     beside it p99 {put_us:.0} us",
                    each.claims_ns.len(),
                    quantile_us(&each.claims_ns, 0.5),
                    quantile_us(&each.claims_ns, 0.99),
                );
            }
            let name = format!("queues.{}-{}", word(ready), if from == From::OwnQueue { "exact" } else { "prefix" });
            add_ratio(&mut report, &name, "claim p99", &claims);
            add_ratio(&mut report, &format!("{name}-put"), "put p99 beside it", &beside);
            all.extend(claims);
            puts.extend(beside);
        }
    }
    add_ratio(&mut report, "queues.claims", "claim p99 over all of these", &all);
    add_ratio(&mut report, "queues.puts", "put p99 beside all of these", &puts);
    drop(shops);
    replay(&mut report, if small { 2_000 } else { 1_000_000 }, if small { 1_000 } else { 200_000 });
    report
}

fn word(ready: Ready) -> &'static str {
    match ready {
        Ready::Everything => "all",
        Ready::One => "one",
        Ready::Nothing => "none",
    }
}

fn add_ratio(report: &mut Report, name: &str, what: &str, values: &[f64]) {
    let (low, high) = values.iter().fold((f64::MAX, 0_f64), |(low, high), value| (low.min(*value), high.max(*value)));
    let ratio = high / low;
    report.add(name, format!("{ratio:.2}x"), &format!("{what} within 2 times"), ratio <= 2.0);
}

impl Latencies {
    fn new() -> Self {
        Self { claims_ns: histogram(), puts_ns: histogram() }
    }
}

impl Shop {
    fn open(queues: u64, records: u64) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let house = Options::default().open(directory.path().join("house")).expect("a house");
        let shop = Self {
            records: house.records(),
            house,
            queues,
            next: AtomicU64::new(0),
            only: AtomicU64::new(0),
            put: AtomicU64::new(0),
            _directory: directory,
        };
        fill(&shop.records, queues, records);
        shop.house.flush().expect("a flush");
        shop
    }

    fn claim(&self, queue: &str) -> bool {
        let options = ClaimOptions::worker("worker").lease(LEASE);
        !self.records.claim_next(queue, 1, &options).expect("a claim").is_empty()
    }

    /// Workers claim for a while, and somebody puts records beside them.
    fn turn(&self, ready: Ready, from: From, workers: usize, turn: Duration, latencies: &mut Latencies) {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let beside = scope.spawn(|| self.put_beside(&stop));
            let claims = callers::run_numbered(workers, turn, |worker, random| {
                self.claim_once(ready, from, worker, random);
                true
            });
            stop.store(true, Ordering::Relaxed);
            latencies.claims_ns.add(claims.latency_ns).expect("the same bounds");
            latencies.puts_ns.add(beside.join().expect("a writer")).expect("the same bounds");
        });
    }

    fn claim_once(&self, ready: Ready, from: From, worker: usize, random: &mut Random) {
        let queue = match from {
            From::AllQueues => PREFIX.to_owned(),
            From::OwnQueue => match ready {
                Ready::Everything => queue(self.next.fetch_add(1, Ordering::Relaxed) % self.queues),
                // One worker looks where something is.
                Ready::One if worker == 0 => queue(self.only.load(Ordering::Relaxed)),
                Ready::One | Ready::Nothing => queue(random.below(self.queues)),
            },
        };
        if self.claim(&queue) && ready == Ready::One {
            self.put_one();
        }
    }

    /// Puts the one record that is ready into another queue.
    fn put_one(&self) {
        let number = self.put.fetch_add(1, Ordering::Relaxed);
        let queue_number = Random::new(number).below(self.queues);
        let name = format!("{}one-{number}", queue(queue_number));
        self.records.put(&name, [("to", "someone@example.org")], Put::typed("task")).expect("a put");
        self.only.store(queue_number, Ordering::Relaxed);
    }

    fn put_beside(&self, stop: &AtomicBool) -> Histogram<u64> {
        let mut latency_ns = histogram();
        while !stop.load(Ordering::Relaxed) {
            let name = format!("{BESIDE}{}", self.put.fetch_add(1, Ordering::Relaxed));
            let started = std::time::Instant::now();
            self.records.put(&name, [("to", "someone@example.org")], Put::typed("task")).expect("a put");
            bench::latency::record(&mut latency_ns, started.elapsed());
            std::thread::sleep(Duration::from_millis(1));
        }
        latency_ns
    }

    fn claim_everything(&self) {
        let options = ClaimOptions::worker("worker").lease(LEASE);
        while !self.records.claim_next(PREFIX, CLAIMED_AT_ONCE, &options).expect("a claim").is_empty() {}
    }
}

fn queue(number: u64) -> String {
    format!("{PREFIX}{number:07}/")
}

fn fill(records: &Records, queues: u64, count: u64) {
    let mut pending = VecDeque::new();
    for number in 0..count {
        let name = format!("{}{number}", queue(number % queues));
        pending.push_back(records.put_later(&name, [("to", "someone@example.org")], Put::typed("task")));
        if pending.len() > IN_FLIGHT {
            pending.pop_front().expect("one").wait().expect("a put");
        }
    }
    for put in pending {
        put.wait().expect("a put");
    }
}

/// Nothing is flushed by itself, so that every claim must be replayed.
fn unflushed() -> Options {
    let mut options = Options::default().replay_bytes_max(u64::MAX);
    options.overlay.table_bytes_max = usize::MAX;
    options
}

/// Fills a store, claims, and ends as a crash does. Prints what applying the claims took.
pub fn child(arguments: &Arguments) -> ExitCode {
    let directory = arguments.text("directory").expect("--directory");
    let house = unflushed().open(directory).expect("a house");
    let records = house.records();
    let queues = arguments.number("queues", 1);
    fill(&records, queues, queues);
    house.flush().expect("a flush");
    let before = Usage::now();
    let options = ClaimOptions::worker("worker").lease(LEASE);
    let mut pending = VecDeque::new();
    for number in 0..arguments.number("claims", 1) {
        // Half of them from above, half from a queue of its own; these start at the other end.
        let own = queue(queues - 1 - number / 2);
        let from = if number % 2 == 0 { PREFIX } else { own.as_str() };
        pending.push_back(records.claim_next_later(from, 1, &options));
        if pending.len() > 256 {
            pending.pop_front().expect("one").wait().expect("a claim");
        }
    }
    for claim in pending {
        claim.wait().expect("a claim");
    }
    println!("{}", Usage::now().since(&before).of_threads(|name| name == "apply"));
    std::process::abort();
}

fn replay(report: &mut Report, queues: u64, claims: u64) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("house");
    let applied_us = applied_by_a_child(&path, queues, claims);
    let before = Usage::now();
    let house = unflushed().open(&path).expect("a house");
    // Opening replays on the thread that opens; the rest of the opening counts too.
    let opened_us = Usage::now().since(&before).of_threads(|name| name == bench::usage::CALLER);
    let replayed = house.counters().replayed_entries;
    println!(
        "{claims} claims among {queues} queues: applied in {applied_us:.0} us, opened in {opened_us:.0} us, {replayed} entries"
    );
    let ratio = opened_us / applied_us;
    let figure = format!("{ratio:.2}x");
    report.add(
        "queues.replay",
        figure,
        "opening after a kill <=1.2 times applying first",
        ratio <= 1.2 && replayed > 0,
    );
}

fn applied_by_a_child(directory: &Path, queues: u64, claims: u64) -> f64 {
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.arg("queues-child").arg("--directory").arg(directory);
    child.arg("--queues").arg(queues.to_string()).arg("--claims").arg(claims.to_string());
    let output = child.stderr(Stdio::null()).output().expect("a child");
    assert!(!output.status.success(), "the child ends by abort");
    let text = String::from_utf8(output.stdout).expect("text");
    text.trim().parse().unwrap_or_else(|_| panic!("the child printed {text:?}"))
}
