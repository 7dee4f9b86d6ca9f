//! An open load: operations start on a schedule, and each latency is measured from the scheduled start.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use client::Client;
use hdrhistogram::Histogram;
use wire::routes::SERVER_LIVE;

use crate::checks::number;
use crate::connection::Connection;
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::reach::Reach;
use crate::with_contracts;

/// Latencies are recorded up to an hour, to three digits.
const LATENCY_US_MAX: u64 = 3_600_000_000;

/// The kind of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// All of them are of one kind.
    Only(Operation),
    /// These kinds in turn.
    Mixed(&'static [Operation]),
}

impl Work {
    fn kinds(&self) -> &[Operation] {
        match self {
            Work::Only(operation) => std::slice::from_ref(operation),
            Work::Mixed(operations) => operations,
        }
    }
}

/// One kind of operations; a contract has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Puts, claims and completes a job: three operations in turn.
    Claim,
    /// Appends an event.
    Append,
    /// Reads a value.
    Get,
    /// Writes a value.
    Set,
    /// Writes a key with a version.
    Put,
}

/// The names of the things of a load.
pub(crate) struct Names {
    pub(crate) prefix: &'static str,
    /// Unique per load, so that its data is not mistaken for another's.
    pub(crate) mark: String,
}

/// Whose turn it is, and with which operation of the load.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) caller: u64,
    pub(crate) ticket: u64,
}

/// A contract as a load.
pub(crate) trait Benched {
    /// The kinds of operations that it has.
    const OPERATIONS: &'static [Operation];

    /// What a caller keeps from one operation to the next.
    type Kept: Default;

    /// Writes what a load of these kinds of operations will read.
    async fn prepare(_: &Client, _: &Names, _: &[Operation]) -> Result<(), Failure> {
        Ok(())
    }

    /// Runs one operation.
    async fn operate(
        client: &Client,
        names: &Names,
        operation: Operation,
        turn: Turn,
        kept: &mut Self::Kept,
    ) -> Result<(), Failure>;

    /// Deletes what the load has written.
    async fn clean_up(client: &Client, names: &Names) -> Result<(), Failure>;
}

macro_rules! benched {
    ($($folder:ident: $noun:ident { $($explained:ident)? })*) => {
        /// What a caller keeps from one operation to the next.
        #[derive(Default)]
        struct Kept {
            $($folder: <crate::$folder::$noun as Benched>::Kept,)*
        }

        async fn prepare(client: &Client, names: &Names, kinds: &[Operation]) -> Result<(), Failure> {
            $(if has_any::<crate::$folder::$noun>(kinds) {
                <crate::$folder::$noun as Benched>::prepare(client, names, kinds).await?;
            })*
            Ok(())
        }

        async fn operate(
            client: &Client,
            names: &Names,
            operation: Operation,
            turn: Turn,
            kept: &mut Kept,
        ) -> Result<(), Failure> {
            $(if has_any::<crate::$folder::$noun>(&[operation]) {
                let kept = &mut kept.$folder;
                return <crate::$folder::$noun as Benched>::operate(client, names, operation, turn, kept).await;
            })*
            unreachable!("a contract has the operation {operation:?}")
        }

        async fn clean_up(client: &Client, names: &Names, kinds: &[Operation]) -> Result<(), Failure> {
            $(if has_any::<crate::$folder::$noun>(kinds) {
                <crate::$folder::$noun as Benched>::clean_up(client, names).await?;
            })*
            Ok(())
        }

        /// The operations of all contracts.
        #[cfg(test)]
        const OPERATIONS: &[&[Operation]] = &[$(<crate::$folder::$noun as Benched>::OPERATIONS),*];
    };
}

with_contracts!(benched);

fn has_any<B: Benched>(kinds: &[Operation]) -> bool {
    B::OPERATIONS.iter().any(|operation| kinds.contains(operation))
}

/// One measurement: which operations, at what rate, for how long, from how many callers.
pub(crate) struct Load {
    work: Work,
    rate: u64,
    duration: Duration,
    callers: u64,
    names: Names,
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
        Self { work, rate, duration, callers, names: Names { prefix, mark } }
    }

    /// Runs the load. A directory can be opened only once, so its callers share `first`.
    pub(crate) async fn run(&self, reach: &Reach, first: &Connection) -> Result<Measured, Failure> {
        prepare(first.client(), &self.names, self.work.kinds()).await?;
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
        let mut kept = Kept::default();
        let kinds = self.work.kinds();
        while let Some((ticket, due)) = plan.take() {
            tokio::time::sleep_until(due.into()).await;
            let operation = kinds[usize::try_from(ticket).unwrap_or(0) % kinds.len()];
            match operate(client, &self.names, operation, Turn { caller, ticket }, &mut kept).await {
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

    /// Deletes the data of the load.
    pub(crate) async fn clean_up(&self, connection: &Connection) -> Result<(), Failure> {
        clean_up(connection.client(), &self.names, self.work.kinds()).await
    }
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
    fn every_operation_is_of_one_contract() {
        for operation in [Operation::Claim, Operation::Append, Operation::Get, Operation::Set, Operation::Put] {
            let of = OPERATIONS.iter().filter(|operations| operations.contains(&operation));
            assert_eq!(of.count(), 1, "{operation:?}");
        }
    }

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
