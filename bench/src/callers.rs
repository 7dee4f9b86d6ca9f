//! Runs an operation from many threads for a while, and measures its speed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

pub use bench::latency::histogram;
use bench::resources::cpu_seconds;
use hdrhistogram::Histogram;
use testkit::random::Random;

/// How often to check whether all callers are done.
const POLL: Duration = Duration::from_millis(10);

/// The speed of an operation.
pub struct Measured {
    /// Operations a second, all callers together.
    pub per_second: f64,
    /// Latencies in ns.
    pub latency_ns: Histogram<u64>,
    /// CPU µs for each operation, callers included.
    pub cpu_us: f64,
}

impl Measured {
    /// A quantile of the latencies, in µs.
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        self.latency_ns.value_at_quantile(quantile) as f64 / 1000.0
    }
}

/// Calls `operation` from `callers` threads, each again as soon as it returns.
pub fn run(callers: u64, duration: Duration, operation: impl Fn(&mut Random) + Sync) -> Measured {
    run_while(callers, duration, |random| {
        operation(random);
        true
    })
}

/// The same, until there is nothing left to do: a caller is done when its operation returns false, and that call does
/// not count.
pub fn run_while(callers: u64, duration: Duration, operation: impl Fn(&mut Random) -> bool + Sync) -> Measured {
    let callers = usize::try_from(callers).expect("a number of threads");
    run_numbered(callers, duration, |_, random| operation(random))
}

/// The same, for an operation that has to know which caller calls it, from 0 on.
pub fn run_numbered(
    callers: usize,
    duration: Duration,
    operation: impl Fn(usize, &mut Random) -> bool + Sync,
) -> Measured {
    let stop = AtomicBool::new(false);
    let started = Instant::now();
    let cpu_before = cpu_seconds();
    let histograms: Vec<Histogram<u64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..callers)
            .map(|caller| {
                let (stop, operation) = (&stop, &operation);
                scope.spawn(move || {
                    let mut random = Random::new((caller as u64).wrapping_mul(0x5851_f42d_4c95_7f2d) + 1);
                    let mut latencies = histogram();
                    while !stop.load(Ordering::Relaxed) {
                        let before = Instant::now();
                        if !operation(caller, &mut random) {
                            break;
                        }
                        let elapsed = u64::try_from(before.elapsed().as_nanos()).unwrap_or(u64::MAX);
                        latencies.saturating_record(elapsed);
                    }
                    latencies
                })
            })
            .collect();
        while started.elapsed() < duration && !threads.iter().all(ScopedJoinHandle::is_finished) {
            std::thread::sleep(duration.saturating_sub(started.elapsed()).min(POLL));
        }
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().expect("a caller")).collect()
    });
    let seconds = started.elapsed().as_secs_f64();
    let cpu = cpu_seconds() - cpu_before;
    let mut latency_ns = histogram();
    for histogram in &histograms {
        latency_ns.add(histogram).expect("the same bounds");
    }
    let count = latency_ns.len() as f64;
    Measured { per_second: count / seconds, latency_ns, cpu_us: cpu * 1e6 / count.max(1.0) }
}
