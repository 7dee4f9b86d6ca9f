//! The load: connections that each send a request as soon as the previous one is answered. One thread serves all of
//! them, with prepared bytes, and an answer is read only to find its end, so that both cores are left to the server. It
//! uses raw sockets, because it measures the server; `typed` measures the cost of a client.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::reaching::{Reaching, Stream};
use super::requests::{Operation, Requests};
use super::turns::{Measured, Turn, whole};
use crate::callers::histogram;

/// Connections that send prepared requests.
pub struct Load {
    reaching: Reaching,
    operation: Operation,
    runtime: Runtime,
    connections: Vec<Connection>,
}

struct Connection {
    stream: Box<dyn Stream>,
    requests: Requests,
    buffer: Vec<u8>,
}

impl Load {
    /// Opens connections.
    pub fn connect(reaching: impl Into<Reaching>, operation: Operation, count: usize) -> Self {
        let reaching = reaching.into();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let connections = runtime.block_on(async {
            let mut connections = Vec::new();
            for number in 0..count {
                let stream = reaching.connect().await.expect("a connection");
                let requests = Requests::new(operation, count * 1_000 + number, reaching.authorization());
                connections.push(Connection { stream, requests, buffer: Vec::with_capacity(4096) });
            }
            connections
        });
        Self { reaching, operation, runtime, connections }
    }

    /// Sends requests for a while.
    pub fn run(&mut self, duration: Duration) -> Measured {
        let reaching = self.reaching.clone();
        whole(&reaching, || self.turn(duration))
    }

    fn turn(&mut self, duration: Duration) -> Turn {
        let connections = std::mem::take(&mut self.connections);
        let began = Instant::now();
        let (connections, latency_ns, ran_dry) = self.runtime.block_on(async {
            let end = began + duration;
            let mut tasks = JoinSet::new();
            connections.into_iter().for_each(|connection| drop(tasks.spawn(connection.ask_until(end))));
            let (mut connections, mut all, mut ran_dry) = (Vec::new(), histogram(), false);
            while let Some(done) = tasks.join_next().await {
                let (connection, latencies, found_nothing) = done.expect("no panic");
                connections.push(connection);
                all.add(&latencies).expect("the same bounds");
                ran_dry |= found_nothing;
            }
            (connections, all, ran_dry)
        });
        self.connections = connections;
        if ran_dry {
            return Turn::RanDry(latency_ns.len() * self.operation.each());
        }
        Turn::Whole(Measured { per_second: latency_ns.len() as f64 / began.elapsed().as_secs_f64(), latency_ns })
    }
}

impl Connection {
    /// Gives the latencies, and whether it ended because a claim found nothing.
    async fn ask_until(mut self, end: Instant) -> (Self, Histogram<u64>, bool) {
        let mut latencies = histogram();
        let mut before = Instant::now();
        while before < end {
            self.stream.write_all(self.requests.next()).await.expect("sent");
            // TLS holds what was written until then.
            self.stream.flush().await.expect("sent");
            let body_bytes = self.read_answer().await;
            if !self.requests.is_done(body_bytes) {
                return (self, latencies, true);
            }
            let after = Instant::now();
            latencies.saturating_record(u64::try_from((after - before).as_nanos()).unwrap_or(u64::MAX));
            before = after;
        }
        (self, latencies, false)
    }

    /// Reads one answer and gives how many bytes its body has.
    async fn read_answer(&mut self) -> usize {
        self.buffer.clear();
        loop {
            let read = self.stream.read_buf(&mut self.buffer).await.expect("an answer");
            assert!(read > 0, "the server closed the connection");
            if let Some((head, body)) = lengths(&self.buffer)
                && self.buffer.len() >= head + body
            {
                return body;
            }
        }
    }
}

/// How many bytes the head and the body of an answer have; none if the head is not whole.
fn lengths(bytes: &[u8]) -> Option<(usize, usize)> {
    const LENGTH: &[u8] = b"content-length: ";
    let head = find(bytes, b"\r\n\r\n")? + 4;
    let status = &bytes[9..12];
    assert!(status.starts_with(b"20"), "{}", String::from_utf8_lossy(bytes));
    let at = find(&bytes[..head], LENGTH).expect("an answer says how long it is") + LENGTH.len();
    let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit());
    Some((head, digits.fold(0, |length, digit| length * 10 + usize::from(digit - b'0'))))
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
