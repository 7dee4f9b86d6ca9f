//! An open load: operations start on a schedule, and each latency is measured from the scheduled start.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use client::Client;
use hdrhistogram::Histogram;
use statehouse::Value;
use wire::routes::{RUNS_DELETE, SERVER_LIVE};

use crate::checks::number;
use crate::connection::{Ask, Connection};
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::reach::Reach;
use crate::record;
use crate::record::bench::Held;

/// Cells to read and write.
const CELLS: u64 = 256;
/// Runs to append to.
const RUNS: u64 = 64;
/// Latencies are recorded up to an hour, to three digits.
const LATENCY_US_MAX: u64 = 3_600_000_000;

/// The kind of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Claim,
    Append,
    Get,
    Set,
    Mixed,
}

/// One measurement: which operations, at what rate, for how long, from how many callers.
pub(crate) struct Load {
    work: Work,
    rate: u64,
    duration: Duration,
    callers: u64,
    prefix: &'static str,
    /// Unique per load, so that its data is not mistaken for another's.
    mark: String,
}

/// The result of a load.
pub(crate) struct Measured {
    pub(crate) latency_us: Histogram<u64>,
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) first_failure: Option<String>,
    took: Duration,
}

impl Measured {
    fn new() -> Self {
        let latency_us = Histogram::new_with_bounds(1, LATENCY_US_MAX, 3).expect("bounds that make sense");
        Self { latency_us, done: 0, failed: 0, first_failure: None, took: Duration::ZERO }
    }

    fn add(&mut self, other: &Self) {
        self.latency_us.add(&other.latency_us).expect("the same bounds");
        self.done += other.done;
        self.failed += other.failed;
        self.first_failure = self.first_failure.take().or(other.first_failure.clone());
    }

    /// Successful operations per second.
    pub(crate) fn rate(&self) -> f64 {
        number(self.done) / self.took.as_secs_f64().max(0.001)
    }

    /// How late the load finished.
    pub(crate) fn behind_ms(&self, duration: Duration) -> u64 {
        statehouse::time::millis(self.took.saturating_sub(duration))
    }

    pub(crate) fn percentile_ms(&self, percent: f64) -> f64 {
        number(self.latency_us.value_at_percentile(percent)) / 1_000.0
    }
}

impl Load {
    pub(crate) fn new(work: Work, rate: u64, duration: Duration, callers: u64, prefix: &'static str) -> Self {
        let mark = format!("{}-{}", jiff::Timestamp::now().as_microsecond(), std::process::id());
        Self { work, rate, duration, callers, prefix, mark }
    }

    /// Runs the load. A directory can be opened only once, so its callers share `first`.
    pub(crate) async fn run(&self, reach: &Reach, first: &Connection) -> Result<Measured, Failure> {
        self.prepare(first).await?;
        let mut all = Measured::new();
        let connections: Vec<Connection> = match first.is_remote() {
            true => (0..self.callers).map(|_| reach.connect()).collect::<Result<_, _>>()?,
            false => Vec::new(),
        };
        let callers: Vec<&Client> = match first.is_remote() {
            true => connections.iter().map(Connection::client).collect(),
            false => (0..self.callers).map(|_| first.client()).collect(),
        };
        // Connect before the clock starts.
        let probes = callers.iter().map(|client| client.call(SERVER_LIVE, &[]).send());
        for answered in futures_util::future::join_all(probes).await {
            answered?;
        }
        let planned = self.duration.as_millis() * u128::from(self.rate) / 1_000;
        let progress = Progress::steps("measuring", u64::try_from(planned).unwrap_or(u64::MAX));
        let plan =
            Plan { next: AtomicU64::new(0), began: Instant::now(), rate: self.rate, duration: self.duration, progress };
        let measured = callers.iter().enumerate().map(|(caller, client)| self.call(&plan, client, caller as u64));
        for measured in futures_util::future::join_all(measured).await {
            all.add(&measured?);
        }
        all.took = plan.began.elapsed().max(self.duration);
        plan.progress.leave();
        Ok(all)
    }

    /// One caller: takes the next operation of the plan, waits until it is due, and runs it.
    async fn call(&self, plan: &Plan, client: &Client, caller: u64) -> Result<Measured, Failure> {
        let mut measured = Measured::new();
        let mut held = None;
        while let Some((ticket, due)) = plan.take() {
            tokio::time::sleep_until(due.into()).await;
            match self.operation(client, caller, ticket, &mut held).await {
                Ok(()) => measured.done += 1,
                Err(failure) if failure.exit == Exit::Usage => return Err(failure),
                Err(failure) => {
                    measured.failed += 1;
                    measured.first_failure.get_or_insert(failure.to_string());
                }
            }
            let took = u64::try_from(due.elapsed().as_micros()).unwrap_or(LATENCY_US_MAX).clamp(1, LATENCY_US_MAX);
            measured.latency_us.record(took).map_err(|error| Failure::other(error.to_string()))?;
        }
        Ok(measured)
    }

    async fn operation(
        &self,
        client: &Client,
        caller: u64,
        ticket: u64,
        held: &mut Option<Held>,
    ) -> Result<(), Failure> {
        match (self.work, ticket % 4) {
            (Work::Get, _) | (Work::Mixed, 0 | 1) => {
                let name = self.cell(ticket);
                match client.cells().get(&name).await? {
                    Some(_) => Ok(()),
                    None => Err(Failure::new(Exit::NotFound, format!("{name} was written but is missing"))),
                }
            }
            (Work::Set, _) | (Work::Mixed, 2) => {
                client.cells().set(&self.cell(ticket), written(ticket)?).await?;
                Ok(())
            }
            (Work::Append, _) | (Work::Mixed, _) => {
                let event = format!(
                    r#"{{"eventType":"Measured","idempotencyKey":"{}-{ticket}","eventData":{{"ticket":{ticket}}}}}"#,
                    self.mark
                );
                client.runs().append(&self.run_name(ticket), event, None).await?;
                Ok(())
            }
            (Work::Claim, _) => record::bench::next(client, &format!("{}{caller}.", self.jobs()), ticket, held).await,
        }
    }

    fn cell(&self, ticket: u64) -> String {
        format!("{}{}", self.prefix, ticket % CELLS)
    }

    /// The prefix of the load's jobs.
    fn jobs(&self) -> String {
        format!("{}{}.", self.prefix, self.mark)
    }

    fn run_name(&self, ticket: u64) -> String {
        format!("{}{}-{}", self.prefix, self.mark, ticket % RUNS)
    }

    /// Writes the cells that the load will read.
    async fn prepare(&self, connection: &Connection) -> Result<(), Failure> {
        if matches!(self.work, Work::Get | Work::Mixed) {
            for cell in 0..CELLS {
                connection.client().cells().set(&self.cell(cell), written(0)?).await?;
            }
        }
        Ok(())
    }

    /// Deletes the data of the load.
    pub(crate) async fn clean_up(&self, connection: &Connection) -> Result<(), Failure> {
        if matches!(self.work, Work::Get | Work::Set | Work::Mixed) {
            for cell in 0..CELLS {
                connection.client().cells().delete(&self.cell(cell), None).await?;
            }
        }
        if matches!(self.work, Work::Append | Work::Mixed) {
            for run in 0..RUNS {
                connection.call(RUNS_DELETE, &[&self.run_name(run)]).ask_if_there().await?;
            }
        }
        if self.work == Work::Claim {
            record::bench::delete(connection.client(), self.jobs()).await?;
        }
        Ok(())
    }
}

/// The value for a cell.
fn written(ticket: u64) -> Result<Value, Failure> {
    Value::json(format!("{{\"ticket\":{ticket}}}")).map_err(|error| Failure::other(error.to_string()))
}

/// The schedule of the operations.
struct Plan {
    next: AtomicU64,
    began: Instant,
    rate: u64,
    duration: Duration,
    progress: Progress,
}

impl Plan {
    /// The next operation and when it is due; none once the time is up.
    fn take(&self) -> Option<(u64, Instant)> {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        self.progress.at(ticket);
        let after =
            Duration::from_nanos(u64::try_from(u128::from(ticket) * 1_000_000_000 / u128::from(self.rate)).ok()?);
        (after < self.duration).then(|| (ticket, self.began + after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_planned_by_the_rate_and_not_by_the_callers() {
        let plan = Plan {
            next: AtomicU64::new(0),
            began: Instant::now(),
            rate: 4,
            duration: Duration::from_secs(1),
            progress: Progress::steps("testing", 4),
        };
        let due: Vec<_> = std::iter::from_fn(|| plan.take()).map(|(_, due)| (due - plan.began).as_millis()).collect();
        assert_eq!(due, [0, 250, 500, 750]);
    }
}
