//! A well-behaved client: the typed client, which writes or reads every few ms and measures the duration of each. It does
//! not retry, so that every refusal counts.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use client::ClientOptions;
use testkit::http::{Client, block_on};

/// Pause between two requests.
const PAUSE: Duration = Duration::from_millis(4);

/// The durations of requests.
pub(crate) struct Took {
    requests: usize,
    p50: Duration,
    pub(crate) p99: Duration,
}

impl fmt::Display for Took {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} requests with p50 {:.2?} and p99 {:.2?}", self.requests, self.p50, self.p99)
    }
}

/// A well-behaved client on its own thread.
pub(crate) struct Honest {
    stopped: Arc<AtomicBool>,
    took: Arc<Mutex<Vec<Duration>>>,
    failures: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Honest {
    pub(crate) fn start(address: SocketAddr) -> Self {
        let (stopped, took) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let failures = Arc::new(AtomicU64::new(0));
        let thread = std::thread::spawn({
            let (stopped, took, failures) = (stopped.clone(), took.clone(), failures.clone());
            move || {
                let client = Client::to(address).typed(ClientOptions::default().without_retries());
                let cells = client.cells();
                let value = "v".repeat(200);
                let mut number = 0;
                while !stopped.load(Ordering::Acquire) {
                    number += 1;
                    let cell = format!("honest/{}", number / 2 % 100);
                    let began = Instant::now();
                    let answered = match number % 2 {
                        0 => block_on(cells.set(&cell, value.as_str())).is_ok(),
                        _ => block_on(cells.get(&cell)).is_ok(),
                    };
                    took.lock().expect("no panic").push(began.elapsed());
                    failures.fetch_add(u64::from(!answered), Ordering::AcqRel);
                    std::thread::sleep(PAUSE);
                }
            }
        });
        Self { stopped, took, failures, thread: Some(thread) }
    }

    /// The durations of requests since the last call.
    pub(crate) fn so_far(&mut self) -> Took {
        let mut took = std::mem::take(&mut *self.took.lock().expect("no panic"));
        took.sort_unstable();
        let at = |percent: usize| took.get(took.len() * percent / 100).copied().unwrap_or_default();
        Took { requests: took.len(), p50: at(50), p99: at(99) }
    }

    /// Stops, and returns how many requests were refused or not answered.
    pub(crate) fn stop(mut self) -> u64 {
        self.stopped.store(true, Ordering::Release);
        self.thread.take().expect("once").join().expect("the client that behaves");
        self.failures.load(Ordering::Acquire)
    }
}
