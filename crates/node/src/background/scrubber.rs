//! The scrub: reads every table and the manifest, again and again, at a bounded rate, to find damage before somebody
//! needs what is damaged.
//!
//! Touches: nothing but a damaged manifest, which is written again. What it finds is set apart before the next entry.

use std::time::Duration;

use contract::Error;

use crate::access::Access;
use crate::background::plans::ScrubPlan;
use crate::background::repeating::{Pauses, Repeating};

/// How often the scrub reads a little.
const STEP_EVERY: Duration = Duration::from_millis(250);

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
                meter.add(scrubbed.bytes);
                debt += scrubbed.bytes;
                if scrubbed.next.is_none() {
                    meter.finished(access.clock().wall_us());
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
