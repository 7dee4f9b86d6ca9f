//! `bench`: the throughput and latency of a store, measured as its users see them.
//!
//! The load is open: the requested rate gives every operation a due time, and its latency counts from then, whether or not a caller was
//! free. A stall therefore shows in every operation that was due during it. Never: reports a number without percentiles, or without the
//! machine and the command that produced it.

pub(crate) mod load;
mod machine;

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Value as JsonValue, json};

use crate::exit::Failure;
use crate::output::Output;
use crate::reach::{Reach, duration};
use load::{Load, Measured, Operation, Work};

/// Benchmark a store with an open load at a fixed rate, and report latency percentiles.
///
/// All data is written under the prefix `statehouse-bench/` and deleted at the end.
///
/// Examples:
///   statehouse bench set --rate 500 --duration 10s
///   statehouse bench mixed --rate 2000 --callers 32 -o json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Bench {
    #[command(flatten)]
    reach: Reach,
    /// The kind of operations.
    #[arg(value_enum)]
    work: What,
    /// Operations to start per second, over all callers.
    #[arg(long, value_name = "N", default_value_t = 200)]
    rate: u64,
    /// How long to run.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    duration: Duration,
    /// Concurrent callers, each with its own connection.
    #[arg(long, value_name = "N", default_value_t = 16)]
    callers: u64,
    /// Also print every bucket of the histogram: latency in µs, and the count.
    #[arg(long)]
    hdr: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// Put, claim and complete jobs: three operations in turn.
    Claim,
    /// Append to runs.
    Append,
    /// Read cells.
    Get,
    /// Write cells.
    Set,
    /// Put keys into a map, each with a version.
    Put,
    /// Two reads for each write and each append.
    Mixed,
}

/// The percentiles shown, in %.
const PERCENTILES: [f64; 6] = [50.0, 90.0, 99.0, 99.9, 99.99, 100.0];

impl Bench {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        let work = match self.work {
            What::Claim => Work::Only(Operation::Claim),
            What::Append => Work::Only(Operation::Append),
            What::Get => Work::Only(Operation::Get),
            What::Set => Work::Only(Operation::Set),
            What::Put => Work::Only(Operation::Put),
            What::Mixed => Work::Mixed(&[Operation::Get, Operation::Get, Operation::Set, Operation::Append]),
        };
        if self.rate == 0 || self.callers == 0 || self.duration.is_zero() {
            return Err(Failure::usage("--rate, --callers and --duration must be above 0"));
        }
        if self.callers > 4_096 {
            return Err(Failure::usage(format!("--callers is {}; the maximum is 4096", self.callers)));
        }
        self.reach.run(async |connection| {
            let load = Load::new(work, self.rate, self.duration, self.callers, "statehouse-bench/");
            let measured = load.run(&self.reach, connection).await;
            load.clean_up(connection).await?;
            let found = self.found(&measured?, &connection.named());
            output.told(&text(&found), &found)
        })
    }

    fn found(&self, measured: &Measured, url: &str) -> JsonValue {
        let percentiles =
            PERCENTILES.map(|percent| json!({ "percent": percent, "ms": measured.percentile_ms(percent) }));
        let mut found = json!({
            "command": std::env::args().collect::<Vec<_>>().join(" "),
            "machine": machine::describe(),
            "url": url,
            "asked_rate": self.rate,
            "duration_ms": statehouse::time::millis(self.duration),
            "callers": self.callers,
            "operations": measured.done,
            "failed": measured.failed,
            "first_failure": measured.first_failure,
            "rate": measured.rate(),
            "behind_ms": measured.behind_ms(self.duration),
            "latency": percentiles,
        });
        if self.hdr {
            let buckets = measured.latency_us.iter_recorded();
            let buckets = buckets.map(|bucket| json!([bucket.value_iterated_to(), bucket.count_at_value()]));
            found["hdr_us"] = buckets.collect();
        }
        found
    }
}

fn text(found: &JsonValue) -> String {
    let mut text = format!(
        "command   {}\nmachine   {}\nat        {}\n",
        one(&found["command"]),
        one(&found["machine"]),
        one(&found["url"])
    );
    let rate = found["rate"].as_f64().unwrap_or(0.0);
    text.push_str(&format!(
        "operations {}, failed {}, {rate:.0} of {} per second\nlatency, from when each operation was due:\n",
        found["operations"], found["failed"], found["asked_rate"]
    ));
    if let Some(failure) = found["first_failure"].as_str() {
        text.push_str(&format!("  first failure: {}\n", crate::table::one_line(failure)));
    }
    for percentile in found["latency"].as_array().into_iter().flatten() {
        let percent = match percentile["percent"].as_f64() {
            Some(percent) if percent < 100.0 => format!("p{percent}"),
            _ => "max".to_owned(),
        };
        text.push_str(&format!("  {percent:<7} {:>10.3} ms\n", percentile["ms"].as_f64().unwrap_or(0.0)));
    }
    for bucket in found["hdr_us"].as_array().into_iter().flatten() {
        text.push_str(&format!("  {} us {}\n", bucket[0], bucket[1]));
    }
    // The last operations always end a little late; only a long delay means that a queue built up.
    if found["behind_ms"].as_u64().unwrap_or(0) > found["duration_ms"].as_u64().unwrap_or(0) / 20 + 250 {
        text.push_str("the store or the callers did not keep up; the latencies include time in a growing queue\n");
    }
    text
}

fn one(value: &JsonValue) -> String {
    crate::table::one_line(value.as_str().unwrap_or("?"))
}
