//! The scrub: reads every table and the manifest, again and again, at a bounded rate, to find damage before somebody
//! needs what is damaged.
//!
//! Touches: nothing but a damaged manifest, which is written again. What it finds is set apart before the next entry.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use contract::Error;

use crate::access::Access;
use crate::repeating::{Pauses, Repeating};

/// How often the scrub reads a little.
const STEP_EVERY: Duration = Duration::from_millis(250);

/// Bounds of the scrub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScrubPlan {
    pub(crate) bytes_per_second: u64,
    /// From the start of one pass to the start of the next, at least.
    pub(crate) every: Duration,
}

/// The progress of the scrub since the directory was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScrubProgress {
    /// Bytes that were read.
    pub bytes: u64,
    /// Passes over everything that were finished.
    pub passes: u64,
    /// When the last pass was finished, in wall µs; 0 for never.
    pub finished_us: u64,
}

/// The meter behind [`ScrubProgress`].
#[derive(Default)]
pub(crate) struct ScrubMeter {
    bytes: AtomicU64,
    passes: Mutex<(u64, u64)>,
}

impl ScrubMeter {
    pub(crate) fn read(&self) -> ScrubProgress {
        let (passes, finished_us) = *self.passes.lock().unwrap_or_else(PoisonError::into_inner);
        ScrubProgress { bytes: self.bytes.load(Ordering::Relaxed), passes, finished_us }
    }
}

/// Starts the thread.
pub(crate) fn start(access: Access, plan: ScrubPlan) -> Result<Repeating, Error> {
    let steps_per_second = 1_000 / u64::try_from(STEP_EVERY.as_millis()).expect("small");
    let step_bytes = (plan.bytes_per_second / steps_per_second).max(1);
    let mut next_pass_us = 0;
    Repeating::start("scrub", STEP_EVERY, move |pauses| {
        let now_us = access.clock().monotonic_us();
        if now_us >= next_pass_us {
            next_pass_us = now_us.saturating_add(u64::try_from(plan.every.as_micros()).unwrap_or(u64::MAX));
            pass(&access, pauses, step_bytes);
        }
    })
}

fn pass(access: &Access, pauses: &Pauses, step_bytes: u64) {
    let meter = &access.shared.scrub;
    let (mut from, mut debt) = (None, 0_u64);
    loop {
        match access.tree.scrub_some(from, step_bytes) {
            Ok(scrubbed) => {
                meter.bytes.fetch_add(scrubbed.bytes, Ordering::Relaxed);
                debt += scrubbed.bytes;
                if scrubbed.next.is_none() {
                    let mut passes = meter.passes.lock().unwrap_or_else(PoisonError::into_inner);
                    *passes = (passes.0 + 1, access.clock().wall_us());
                    return;
                }
                from = scrubbed.next;
            }
            Err(error) => {
                tracing::warn!(%error, "the scrub was interrupted");
                return;
            }
        }
        // A partition is read as a whole, which may be many steps' worth.
        while debt >= step_bytes {
            debt -= step_bytes;
            if !pauses.pause(STEP_EVERY) {
                return;
            }
        }
    }
}
