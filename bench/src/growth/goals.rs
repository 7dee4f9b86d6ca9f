//! What a large store may cost, as numbers.
//!
//! Keeps: costs that the machine changes are compared with the smallest size of the same run. Never: measures; the figures
//! are those of the sizes.

use testkit::report::Report;

use super::{FACTOR_MAX, SizeFigures};

/// Flushing and merging may take this much CPU for a claim or the release that follows it, in µs.
const MERGE_US_MAX: f64 = 8.0;

/// One in a thousand commands may wait longer than this, in ms, while the store merges.
const STALL_MS_MAX: f64 = 20.0;

/// Memory that may be resident at any size.
const RESIDENT_MAX: u64 = 1_000_000_000;

/// A read may cost this many times what it costs at the smallest size.
const GET_FACTOR_MAX: f64 = 1.5;

/// Judges the largest size, and merging at all sizes, since it is not even.
pub(super) fn judge(figures: &[SizeFigures]) -> Report {
    let mut report = Report::new("pressure");
    let (smallest, largest) = (figures.first().expect("a size"), figures.last().expect("a size"));
    for (first, last) in smallest.commands().zip(largest.commands()).filter(|(first, _)| first.has_latencies()) {
        let ratio = last.cpu_us() / first.cpu_us();
        report.add(
            &format!("growth.{}-cpu", last.name),
            format!("{ratio:.2}x {:.1}us of {:.1}us", last.cpu_us(), first.cpu_us()),
            &format!("<={FACTOR_MAX} at {} records of that at {}", largest.size, smallest.size),
            ratio <= FACTOR_MAX,
        );
    }
    for at in figures {
        let claim = at.commands().find(|command| command.name == "claim").expect("claims are measured");
        report.add(
            &format!("growth.merging-{}", at.size),
            format!("{:.1}us", claim.background_us()),
            &format!("<={MERGE_US_MAX}us of CPU for a claim or release"),
            claim.background_us() <= MERGE_US_MAX,
        );
    }
    for at in figures {
        let timed = at.commands().filter(|command| command.has_latencies());
        let worst_ms = timed.map(|command| command.quantile_us(0.999) / 1e3).fold(0.0, f64::max);
        report.add(
            &format!("growth.stalls-{}", at.size),
            format!("{worst_ms:.1}ms"),
            &format!("p99.9 of claims, releases, steps and appends <={STALL_MS_MAX}ms"),
            worst_ms <= STALL_MS_MAX,
        );
    }
    report.add(
        "growth.memory",
        format!("{}MB", largest.resident_peak() / 1_000_000),
        &format!("<={}MB resident at {} records, the most", RESIDENT_MAX / 1_000_000, largest.size),
        largest.resident_peak() <= RESIDENT_MAX,
    );
    let ratio = largest.get_us / smallest.get_us;
    report.add(
        "growth.get",
        format!("{ratio:.2}x {:.1}us of {:.1}us", largest.get_us, smallest.get_us),
        &format!("<={GET_FACTOR_MAX} at {} records of that at {}", largest.size, smallest.size),
        ratio <= GET_FACTOR_MAX,
    );
    report
}
