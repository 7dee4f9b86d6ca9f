//! What the typed client costs: tasks of one client that each make a call as soon as the one before is answered, on one
//! thread, as the load is. Claims are written in the client's session.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use testkit::http::{Client, ClientOptions};
use testkit::random::Random;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use wire::claims::Claim;
use wire::values::DurationText;

use super::CELLS;
use super::load::Measured;
use super::requests::{self, Operation};
use crate::callers::histogram;

/// A client and its tasks.
pub struct Typed {
    runtime: Runtime,
    client: client::Client,
    operation: Operation,
    tasks: usize,
}

impl Typed {
    /// A client of the server at an address.
    pub fn connect(address: SocketAddr, operation: Operation, tasks: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let client = Client::to(address).typed(ClientOptions::default());
        Self { runtime, client, operation, tasks }
    }

    /// Makes calls for a while.
    pub fn run(&self, duration: Duration) -> Measured {
        let began = Instant::now();
        let latency_ns = self.runtime.block_on(async {
            let end = began + duration;
            let mut tasks = JoinSet::new();
            for number in 0..self.tasks {
                tasks.spawn(call_until(self.client.clone(), self.operation, number as u64 + 1, end));
            }
            let mut all = histogram();
            while let Some(done) = tasks.join_next().await {
                all.add(done.expect("no panic")).expect("the same bounds");
            }
            all
        });
        Measured { per_second: latency_ns.len() as f64 / began.elapsed().as_secs_f64(), latency_ns }
    }
}

async fn call_until(client: client::Client, operation: Operation, seed: u64, end: Instant) -> Histogram<u64> {
    let (mut random, mut latencies) = (Random::new(seed), histogram());
    let lease = Some(DurationText(Duration::from_secs(600)));
    let claim = Claim { n: Some(1), worker: Some("w1".to_owned()), lease, ..Claim::of_queue("jobs.") };
    let mut before = Instant::now();
    while before < end {
        match operation {
            Operation::Get => {
                let cell = client.cells().get(&requests::cell(random.below(CELLS))).await.expect("an answer");
                assert!(cell.is_some(), "every cell is there");
            }
            Operation::Claim => {
                let claimed = client.records().claim(&claim).await.expect("an answer");
                assert_eq!(claimed.len(), 1, "there is nothing left to claim");
            }
            _ => panic!("gets and claims are measured here"),
        }
        let after = Instant::now();
        latencies.saturating_record(u64::try_from((after - before).as_nanos()).unwrap_or(u64::MAX));
        before = after;
    }
    latencies
}
