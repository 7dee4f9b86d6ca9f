//! An open load: operations that begin by a plan, and how long each took from when it should have begun.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use hyper::Method;
use serde_json::json;

use crate::checks::number;
use crate::connection::{Call, Connection, path};
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::reach::Reach;

/// Cells that are read and written.
const CELLS: u64 = 256;
/// Runs that are appended to.
const RUNS: u64 = 64;
/// Latencies up to an hour are told apart, by three digits.
const LATENCY_US_MAX: u64 = 3_600_000_000;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Claim,
    Append,
    Get,
    Set,
    Mixed,
}

/// See the module.
pub(crate) struct Load {
    work: Work,
    rate: u64,
    duration: Duration,
    callers: u64,
    prefix: &'static str,
    /// Tells what this load made from what another did.
    mark: String,
}

/// What came out.
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

    /// Operations a second, of those that succeeded.
    pub(crate) fn rate(&self) -> f64 {
        number(self.done) / self.took.as_secs_f64().max(0.001)
    }

    /// How long after its time the load was through.
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

    /// Does it. `first` is used by one caller, so that a directory, which has one opener, can be measured too.
    pub(crate) async fn run(&self, reach: &Reach, first: &Connection) -> Result<Measured, Failure> {
        self.prepare(first).await?;
        let mut all = Measured::new();
        let connections: Vec<Connection> = match first.is_remote() {
            true => (0..self.callers).map(|_| reach.connect()).collect::<Result<_, _>>()?,
            false => Vec::new(),
        };
        let callers: Vec<&Connection> = match first.is_remote() {
            true => connections.iter().collect(),
            false => (0..self.callers).map(|_| first).collect(),
        };
        // Connections are made before the clock starts.
        for answered in futures_util::future::join_all(callers.iter().map(|one| one.ask(Call::get("/livez")))).await {
            answered?;
        }
        let planned = self.duration.as_millis() * u128::from(self.rate) / 1_000;
        let progress = Progress::steps("measuring", u64::try_from(planned).unwrap_or(u64::MAX));
        let plan =
            Plan { next: AtomicU64::new(0), began: Instant::now(), rate: self.rate, duration: self.duration, progress };
        let measured =
            callers.iter().enumerate().map(|(caller, connection)| self.call(&plan, connection, caller as u64));
        for measured in futures_util::future::join_all(measured).await {
            all.add(&measured?);
        }
        all.took = plan.began.elapsed().max(self.duration);
        plan.progress.leave();
        Ok(all)
    }

    /// One caller: takes the next operation of the plan, waits for its time, does it.
    async fn call(&self, plan: &Plan, connection: &Connection, caller: u64) -> Result<Measured, Failure> {
        let mut measured = Measured::new();
        let mut held = None;
        while let Some((ticket, due)) = plan.take() {
            tokio::time::sleep_until(due.into()).await;
            match self.operation(connection, caller, ticket, &mut held).await {
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
        connection: &Connection,
        caller: u64,
        ticket: u64,
        held: &mut Option<Held>,
    ) -> Result<(), Failure> {
        match (self.work, ticket % 4) {
            (Work::Get, _) | (Work::Mixed, 0 | 1) => connection.ask(Call::get(self.cell(ticket))).await.map(drop),
            (Work::Set, _) | (Work::Mixed, 2) => {
                let call = Call::new(Method::PUT, self.cell(ticket)).body(json!({ "ticket": ticket }));
                connection.ask(call).await.map(drop)
            }
            (Work::Append, _) | (Work::Mixed, _) => {
                let event = json!({
                    "eventType": "Measured",
                    "idempotencyKey": format!("{}-{ticket}", self.mark),
                    "eventData": { "ticket": ticket },
                });
                let run = format!("{}/events", path("/v1/runs", &self.run_name(ticket)));
                connection.ask(Call::post(run, event)).await.map(drop)
            }
            (Work::Claim, _) => self.job(connection, caller, ticket, held).await,
        }
    }

    /// A job's life in three operations: it is put, claimed and completed.
    async fn job(
        &self,
        connection: &Connection,
        caller: u64,
        ticket: u64,
        held: &mut Option<Held>,
    ) -> Result<(), Failure> {
        let prefix = format!("{}{}.{caller}.", self.prefix, self.mark);
        match held.take() {
            None => {
                let name = format!("{prefix}{ticket}");
                let put = json!({ "type": "task", "fields": { "ticket": ticket } });
                connection.ask(Call::new(Method::PUT, path("/v1/records", &name)).body(put)).await?;
                *held = Some(Held { name, attempt: None });
            }
            Some(Held { name, attempt: None }) => {
                let body = json!({ "prefix": prefix, "n": 1, "worker": "statehouse-bench" });
                let claimed = connection.ask(Call::post("/v1/claims", body)).await?;
                let attempt = claimed["claimed"][0]["attempt"].as_u64();
                let attempt = attempt.ok_or_else(|| Failure::other(format!("{name} was put, and not claimed")))?;
                *held = Some(Held { name, attempt: Some(attempt) });
            }
            Some(Held { name, attempt: Some(attempt) }) => {
                let body = json!({ "attempt": attempt });
                connection.ask(Call::post(format!("{}/complete", path("/v1/records", &name)), body)).await?;
            }
        }
        Ok(())
    }

    fn cell(&self, ticket: u64) -> String {
        path("/v1/cells", &format!("{}{}", self.prefix, ticket % CELLS))
    }

    fn run_name(&self, ticket: u64) -> String {
        format!("{}{}-{}", self.prefix, self.mark, ticket % RUNS)
    }

    /// What is read has to be there.
    async fn prepare(&self, connection: &Connection) -> Result<(), Failure> {
        if matches!(self.work, Work::Get | Work::Mixed) {
            for cell in 0..CELLS {
                let call = Call::new(Method::PUT, self.cell(cell)).body(json!({ "ticket": 0 }));
                connection.ask(call).await?;
            }
        }
        Ok(())
    }

    /// Deletes what was made.
    pub(crate) async fn clean_up(&self, connection: &Connection) -> Result<(), Failure> {
        if matches!(self.work, Work::Get | Work::Set | Work::Mixed) {
            for cell in 0..CELLS {
                connection.find(Call::new(Method::DELETE, self.cell(cell))).await?;
            }
        }
        if matches!(self.work, Work::Append | Work::Mixed) {
            for run in 0..RUNS {
                let run = path("/v1/runs", &self.run_name(run));
                connection.find(Call::new(Method::DELETE, run)).await?;
            }
        }
        if self.work == Work::Claim {
            self.delete_jobs(connection).await?;
        }
        Ok(())
    }

    async fn delete_jobs(&self, connection: &Connection) -> Result<(), Failure> {
        let prefix = format!("{}{}.", self.prefix, self.mark);
        loop {
            let call = Call::get("/v1/records").query("prefix", Some(&prefix)).query("limit", Some(1_000));
            let page = connection.ask(call).await?;
            let records = page["records"].as_array().map(Vec::as_slice).unwrap_or_default();
            let names = records.iter().filter_map(|record| record["name"].as_str());
            for name in names {
                connection.find(Call::new(Method::DELETE, path("/v1/records", name))).await?;
            }
            if records.is_empty() {
                return Ok(());
            }
        }
    }
}

/// A job that a caller has put, and has claimed if it has an attempt.
struct Held {
    name: String,
    attempt: Option<u64>,
}

/// When each operation should begin.
struct Plan {
    next: AtomicU64,
    began: Instant,
    rate: u64,
    duration: Duration,
    progress: Progress,
}

impl Plan {
    /// The next operation and its time; none when the time is over.
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
