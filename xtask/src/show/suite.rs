//! The whole test suite beside threads that want the processor: a test that fails there depends on the machine's speed.
//!
//! Touches: `cargo nextest` as a child process. Never: runs a failed test again.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::process::{cargo, has_cargo_subcommand, succeeds};

/// Threads that do nothing and want to do it all the time.
const BUSY_LOOPS: usize = 3;

const SUITE: &str = "nextest run --workspace --locked";

pub(super) const DESCRIPTION: &str = "cargo nextest run, beside three busy loops";

/// Runs it once; whether it passed.
pub(super) fn round(root: &Path) -> Result<bool, String> {
    if !has_cargo_subcommand(root, "nextest") {
        return Err("cargo-nextest is not installed; .ci/run installs it".to_string());
    }
    // Without the loops, and apart: a source that does not compile is no failure of a test.
    if !succeeds(&mut cargo(root, &format!("{SUITE} --no-run")))? {
        return Err("the tests do not compile".to_string());
    }
    let _busy = BusyLoops::start();
    succeeds(&mut cargo(root, SUITE))
}

/// Threads that take the processor from others until this is dropped.
struct BusyLoops {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyLoops {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let spin = |_| {
            let stop = stop.clone();
            std::thread::spawn(move || while !stop.load(Ordering::Relaxed) {})
        };
        let threads = (0..BUSY_LOOPS).map(spin).collect();
        Self { stop, threads }
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It has nothing that could panic, and nobody needs to know.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_loops_end_with_their_value() {
        let busy = BusyLoops::start();
        assert_eq!(busy.threads.len(), 3, "as the description says");
        let stop = busy.stop.clone();
        drop(busy);
        assert_eq!((stop.load(Ordering::Relaxed), Arc::strong_count(&stop)), (true, 1), "no thread holds it any more");
    }
}
