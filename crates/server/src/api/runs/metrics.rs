//! The metrics of runs.

use std::collections::BTreeMap;

use statehouse::runs::RunsOverview;

use crate::metrics::list::{counter, gauge, metrics};
use crate::metrics::readings::Readings;
use crate::metrics::text::Scrape;

metrics! {
    RUNS = gauge("statehouse_runs", &["type", "status"], "Runs, across all spaces and branches.");
    OLDEST_STALLED = gauge("statehouse_run_oldest_stalled_seconds", &["type"], "Time since the last event of the running run that has been idle longest, to within a minute.");
    PROJECTOR_LAG = gauge("statehouse_projector_lag_seconds", &["projector"], "Age of the oldest change of a run that the projector has not seen, whether it runs or not.");
    RUNS_VERIFIED = counter("statehouse_runs_verified_total", &[], "Runs whose projections were compared with their events.");
    RUN_DIFFERENCES = counter("statehouse_run_differences_total", &[], "Runs whose projections differed. Any is a bug.");
    IDEMPOTENCY_HITS = counter("statehouse_idempotency_hits_total", &[], "Appends answered by an event that was already there.");
}

pub(in crate::api) fn write(readings: &Readings<'_>, scrape: &mut Scrape) {
    scrape.whole(&IDEMPOTENCY_HITS, &[], readings.counters.repeated_appends);
    if let Some(status) = &readings.status {
        scrape.whole(&RUNS_VERIFIED, &[], status.runs_verified);
        scrape.whole(&RUN_DIFFERENCES, &[], status.run_differences);
    }
    if let Some(overview) = &readings.overview {
        there_now(readings, &overview.runs, scrape);
    }
}

fn there_now(readings: &Readings<'_>, runs: &RunsOverview, scrape: &mut Scrape) {
    let mut counts: BTreeMap<(String, &str), u64> = BTreeMap::new();
    for ((run_type, status), count) in &runs.by_status {
        *counts.entry((readings.type_label(run_type), status.name())).or_default() += count;
    }
    for ((run_type, status), count) in counts {
        scrape.whole(&RUNS, &[&run_type, status], count);
    }
    let quiet = runs.quietest.iter().map(|(run, quiet_for)| (run.run_type.as_str(), *quiet_for));
    for (run_type, quiet_for) in readings.longest_by_type(quiet) {
        scrape.real(&OLDEST_STALLED, &[&run_type], quiet_for.as_secs_f64());
    }
    for projector in &runs.projectors {
        scrape.real(&PROJECTOR_LAG, &[&projector.name], projector.lag.as_secs_f64());
    }
}
