//! What the typed client costs: tasks of one client that each make a call as soon as the one before is answered, on one
//! thread, as the load is. Claims are written in the client's session.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use testkit::http::{Client, ClientOptions};
use testkit::random::Random;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use wire::records::claims::Claim;
use wire::values::DurationText;

use super::CELLS;
use super::requests::{self, Operation};
use super::turns::{Measured, Turn, whole};
use crate::callers::histogram;

/// A client and its tasks.
pub struct Typed {
    address: SocketAddr,
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
        Self { address, runtime, client, operation, tasks }
    }

    /// Makes calls for a while.
    pub fn run(&self, duration: Duration) -> Measured {
        whole(&self.address.into(), || self.turn(duration))
    }

    fn turn(&self, duration: Duration) -> Turn {
        let began = Instant::now();
        let (latency_ns, ran_dry) = self.runtime.block_on(async {
            let end = began + duration;
            let mut tasks = JoinSet::new();
            for number in 0..self.tasks {
                tasks.spawn(call_until(self.client.clone(), self.operation, number as u64 + 1, end));
            }
            let (mut all, mut ran_dry) = (histogram(), false);
            while let Some(done) = tasks.join_next().await {
                let (latencies, found_nothing) = done.expect("no panic");
                all.add(latencies).expect("the same bounds");
                ran_dry |= found_nothing;
            }
            (all, ran_dry)
        });
        if ran_dry {
            return Turn::RanDry(latency_ns.len());
        }
        Turn::Whole(Measured { per_second: latency_ns.len() as f64 / began.elapsed().as_secs_f64(), latency_ns })
    }
}

/// Gives the latencies, and whether it ended because a claim found nothing.
async fn call_until(client: client::Client, operation: Operation, seed: u64, end: Instant) -> (Histogram<u64>, bool) {
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
                if claimed.is_empty() {
                    return (latencies, true);
                }
            }
            _ => panic!("gets and claims are measured here"),
        }
        let after = Instant::now();
        latencies.saturating_record(u64::try_from((after - before).as_nanos()).unwrap_or(u64::MAX));
        before = after;
    }
    (latencies, false)
}
