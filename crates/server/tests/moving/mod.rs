//! Which samples of `/metrics` a step moves, and by how much.

use std::collections::{BTreeMap, BTreeSet};

use crate::served::Served;

/// What one step moves: the sample, and by how much.
pub type Moved = BTreeMap<String, f64>;

/// Metrics that move with the clock, the disk, the process or work in the background, whatever is done; and what things take,
/// which moves with every write and has a test of its own.
const RESTLESS: [&str; 15] = [
    "process_",
    "statehouse_journal_bytes",
    "statehouse_store_bytes",
    "statehouse_disk_used_bytes",
    "statehouse_disk_free_bytes",
    "statehouse_disk_limit_bytes",
    "statehouse_limit_used",
    "statehouse_memory_bytes",
    "statehouse_oldest_ready_seconds",
    "statehouse_run_oldest_stalled_seconds",
    "statehouse_projector_lag_seconds",
    "statehouse_label_values",
    "statehouse_journal_queue",
    "statehouse_scrubbed_bytes",
    "statehouse_thing",
];

fn restless(sample: &str) -> bool {
    let timed = sample.contains("_bucket{") || sample.contains("_seconds_sum");
    timed || RESTLESS.iter().any(|prefix| sample.starts_with(prefix))
}

/// What a step moves, without the scrapes themselves.
pub fn moved(served: &Served, step: impl FnOnce()) -> Moved {
    let before = served.scrape();
    step();
    let after = served.scrape();
    let samples: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let difference =
        |sample: &str| after.get(sample).copied().unwrap_or_default() - before.get(sample).copied().unwrap_or_default();
    let kept = samples.into_iter().filter(|sample| !restless(sample) && !sample.contains(r#"op="metrics""#));
    kept.map(|sample| (sample.clone(), difference(sample))).filter(|(_, by)| *by != 0.0).collect()
}

/// What every command moves.
pub fn entries(count: f64) -> Moved {
    let of_each = [
        "statehouse_commit_index",
        "statehouse_applied_index",
        "statehouse_durable_index",
        "statehouse_entries_applied_total",
        "statehouse_commands_applied_total",
        "statehouse_journal_sync_duration_seconds_count",
    ];
    of_each.into_iter().map(|name| (name.to_owned(), count)).collect()
}

/// What every request moves.
pub fn request(contract: &str, op: &str, code: &str) -> Moved {
    let labels = format!(r#"contract="{contract}",op="{op}""#);
    let requests = format!(r#"statehouse_requests_total{{{labels},code="{code}"}}"#);
    let durations = format!("statehouse_request_duration_seconds_count{{{labels}}}");
    [(requests, 1.0), (durations, 1.0)].into()
}

pub fn and(mut moved: Moved, more: &[(&str, f64)]) -> Moved {
    moved.extend(more.iter().map(|(name, by)| ((*name).to_owned(), *by)));
    moved
}

pub fn together(moves: impl IntoIterator<Item = Moved>) -> Moved {
    let mut all = Moved::new();
    for (name, by) in moves.into_iter().flatten() {
        *all.entry(name).or_default() += by;
    }
    all
}
