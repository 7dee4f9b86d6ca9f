//! Workers that wait for jobs: how soon a new job is in a worker's hands while many wait, and that waiting writes nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use statehouse::records::{ClaimOptions, Put, RecordType};
use statehouse::sessions::{Session, SessionOptions};
use statehouse::{Options, Statehouse};
use testkit::arguments::Arguments;
use testkit::random::Random;
use testkit::report::Report;

use crate::callers::histogram;

const QUEUE: &str = "jobs.";

/// Longer than anybody waits for a job here.
const WAIT: Duration = Duration::from_secs(60);

/// The timeout of a session; a waiting call does not count as activity by itself.
const SESSION_TIME: Duration = Duration::from_secs(3);
const KEPT_EVERY: Duration = Duration::from_millis(500);

/// A job that nobody has after this time counts as lost.
const HANDED_OUT_MAX: Duration = Duration::from_secs(20);

/// How long workers may take until all wait, at the start and after the last job.
const QUIET_AFTER: Duration = Duration::from_millis(500);

/// State shared by workers and producers.
struct Floor {
    house: Statehouse,
    sessions: Vec<Session>,
    /// When each job was about to be put.
    put_at: Mutex<HashMap<String, Instant>>,
    handed_out: AtomicU64,
    stop: AtomicBool,
}

pub fn run(arguments: &Arguments) -> Report {
    let small = arguments.flag("small");
    let workers = arguments.number("workers", 100);
    let jobs = arguments.number("jobs", if small { 100 } else { 2_000 });
    let idle = Duration::from_secs(arguments.number("seconds", if small { 1 } else { 5 }));
    let directory = tempfile::tempdir().expect("a directory");
    let house = Options::default().open(directory.path().join("house")).expect("a house");
    let options = SessionOptions::default().timeout(SESSION_TIME);
    let sessions = (0..workers).map(|_| house.sessions().open_with(options.clone()).expect("a session")).collect();
    let (handed_out, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let floor = Floor { house, sessions, put_at: Mutex::default(), handed_out, stop };

    let mut latency_ns = histogram();
    let mut idle_entries = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| floor.keep_alive());
        let threads: Vec<_> = floor.sessions.iter().map(|session| scope.spawn(|| floor.work(session))).collect();
        std::thread::sleep(QUIET_AFTER);
        floor.put_jobs(jobs);
        std::thread::sleep(QUIET_AFTER);
        let before = floor.house.status().expect("status").applied_index;
        std::thread::sleep(idle);
        idle_entries = floor.house.status().expect("status").applied_index - before;
        floor.stop.store(true, Ordering::SeqCst);
        // One more job each sends the workers home.
        for worker in 0..workers {
            floor.put(&format!("{QUEUE}last-{worker}"));
        }
        for thread in threads {
            latency_ns.add(thread.join().expect("a worker")).expect("the same bounds");
        }
    });
    let quantile_ms = |quantile| latency_ns.value_at_quantile(quantile) as f64 / 1e6;
    println!(
        "{} jobs for {workers} waiting workers, from the call that puts one to the answer that gives it: \
         p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms",
        latency_ns.len(),
        quantile_ms(0.5),
        quantile_ms(0.99),
        quantile_ms(1.0)
    );
    let mut report = Report::new("sessions");
    let (p99, left) = (quantile_ms(0.99), jobs - latency_ns.len());
    let figure = format!("{p99:.1}ms-{left}-left-lying");
    report.add("waits.p99", figure, "<20ms from put to claim, 100 workers wait", p99 < 20.0 && left == 0);
    let figure = format!("{idle_entries}-entries-in-{}s", idle.as_secs());
    report.add("waits.idle", figure, "0 while 100 workers wait in sessions", idle_entries == 0);
    drop(floor);
    report
}

impl Floor {
    /// Puts jobs one after the other, with pauses in which the workers wait again.
    fn put_jobs(&self, jobs: u64) {
        let mut random = Random::new(jobs);
        for job in 1..=jobs {
            std::thread::sleep(Duration::from_micros(random.below(8_000)));
            self.put(&format!("{QUEUE}{job}"));
        }
        let started = Instant::now();
        while self.handed_out.load(Ordering::SeqCst) < jobs && started.elapsed() < HANDED_OUT_MAX {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn put(&self, name: &str) {
        self.put_at.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), Instant::now());
        let put = Put::typed(RecordType::task().name);
        self.house.records().put(name, [("to", "someone@example.org")], put).expect("a put");
    }

    /// Takes jobs as they come. Returns how long each took.
    fn work(&self, session: &Session) -> Histogram<u64> {
        let mut latency_ns = histogram();
        let records = session.records();
        let options = ClaimOptions::worker("worker").wait(WAIT);
        loop {
            let claimed = records.claim_next(QUEUE, 1, &options).expect("a claim");
            let now = Instant::now();
            if self.stop.load(Ordering::SeqCst) {
                return latency_ns;
            }
            let Some(job) = claimed.first() else {
                continue;
            };
            let put_at = self.put_at.lock().unwrap_or_else(PoisonError::into_inner).remove(&job.name);
            let elapsed = now - put_at.expect("each job is handed out once");
            latency_ns.saturating_record(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX));
            self.handed_out.fetch_add(1, Ordering::SeqCst);
            records.complete(job, [("result", "sent")]).expect("a completion");
        }
    }

    fn keep_alive(&self) {
        while !self.stop.load(Ordering::SeqCst) {
            for session in &self.sessions {
                session.keep_alive().expect("it is alive");
            }
            std::thread::sleep(KEPT_EVERY);
        }
    }
}
