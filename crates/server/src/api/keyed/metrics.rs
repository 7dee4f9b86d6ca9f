//! The metrics of keyed state: what maps did not apply, partitions in which nothing moves, and checkpoints.

use crate::dates::wall_now;
use crate::metrics::list::{counter, gauge, metrics};
use crate::metrics::readings::Readings;
use crate::metrics::text::Scrape;

metrics! {
    UPDATES_NOT_APPLIED = counter("statehouse_keyed_updates_not_applied_total", &["outcome"], "Updates of keyed state that changed nothing: duplicate, stale, or version_conflict.");
    PARTITION_SILENT = gauge("statehouse_partition_silent_seconds", &[], "Time since the last change of the owned partition where that is longest: its owner lives, and its inputs do not move.");
    CHECKPOINTS = counter("statehouse_checkpoints_total", &["result"], "Checkpoints of partitions taken by this server: committed or failed; not_removed: committed, but what is not needed any more could not be removed.");
    CHECKPOINT_AGE = gauge("statehouse_checkpoint_oldest_seconds", &[], "Time since the last checkpoint of the partition where that is longest, among those that this server has checkpointed, and the first 10,000 that had checkpoints when it was first scraped.");
}

pub(in crate::api) fn write(readings: &Readings<'_>, scrape: &mut Scrape) {
    for (outcome, count) in readings.counters.updates_not_applied {
        scrape.whole(&UPDATES_NOT_APPLIED, &[outcome], count);
    }
    if let Some(silent) = readings.overview.as_ref().and_then(|overview| overview.keyed.silent.as_ref()) {
        scrape.real(&PARTITION_SILENT, &[], silent.silent_for.as_secs_f64());
    }
    let checkpoints = &readings.server.checkpoints;
    for (result, count) in checkpoints.ended() {
        scrape.whole(&CHECKPOINTS, &[result], count);
    }
    if let Some(oldest) = checkpoints.oldest(&readings.server.house) {
        scrape.real(&CHECKPOINT_AGE, &[], wall_now().duration_since(oldest).unwrap_or_default().as_secs_f64());
    }
}
