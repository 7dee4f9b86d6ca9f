//! Latencies, as histograms of ns.

use std::time::Duration;

use hdrhistogram::Histogram;

/// An empty histogram of ns.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(100, 60_000_000_000, 3).expect("fixed bounds")
}

/// Adds a latency.
pub fn record(latency_ns: &mut Histogram<u64>, elapsed: Duration) {
    latency_ns.saturating_record(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX));
}

/// A quantile in µs.
pub fn quantile_us(latency_ns: &Histogram<u64>, quantile: f64) -> f64 {
    latency_ns.value_at_quantile(quantile) as f64 / 1000.0
}
