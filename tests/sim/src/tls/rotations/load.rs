//! Clients that send requests all the time: some over one connection for as long as it goes on, others over one that they make anew
//! after a few requests.
//!
//! Keeps: each client sends at its rate, and catches up after a pause; a connection that was to last is never made again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use testkit::certificates::Authority;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_rustls::TlsConnector;

use super::super::server::TlsServer;

/// Clients of each kind.
const CLIENTS_EACH: u64 = 16;

/// Requests over a connection that is made anew.
const REQUESTS_EACH: u64 = 20;

/// One of so many requests writes.
const WRITES_ONE_OF: u64 = 20;

/// The longest wait for an answer or a connection.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// The path of the cell that all of them read and write.
const CELL: &str = "/v1/cells/rotations";

/// Clients at work.
pub(super) struct Load {
    runtime: Runtime,
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Sent>>,
}

/// What was sent.
#[derive(Default)]
pub(super) struct Sent {
    pub(super) requests: u64,
    /// Connections made after the first one of each client.
    pub(super) connections: u64,
    pub(super) failures: Vec<String>,
}

impl Load {
    /// So many requests in a second, half of them over old connections.
    pub(super) fn start(server: &TlsServer, authority: &Authority, rate: u64) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let stop = Arc::new(AtomicBool::new(false));
        let line = Line {
            address: server.address(),
            tls: Arc::new(authority.trusted()).into(),
            bearer: format!("Bearer {}", server.token),
        };
        let every = Duration::from_secs(1).mul_f64((2 * CLIENTS_EACH) as f64 / rate.max(1) as f64);
        let clients = (0..2 * CLIENTS_EACH).map(|number| {
            let lasts = number % 2 == 0;
            runtime.spawn(line.clone().send_until(stop.clone(), every, lasts))
        });
        let clients = clients.collect();
        Self { runtime, stop, clients }
    }

    /// Stops them.
    pub(super) fn stop(self) -> Sent {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Sent::default();
        for client in self.clients {
            let sent = self.runtime.block_on(client).expect("no panic");
            all.requests += sent.requests;
            all.connections += sent.connections;
            all.failures.extend(sent.failures);
        }
        all
    }
}

/// How a client reaches the server, and who it is.
#[derive(Clone)]
struct Line {
    address: SocketAddr,
    tls: TlsConnector,
    bearer: String,
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

impl Line {
    async fn send_until(self, stop: Arc<AtomicBool>, every: Duration, lasts: bool) -> Sent {
        let mut sent = Sent::default();
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut connection = None;
        while !stop.load(Ordering::Relaxed) {
            ticks.tick().await;
            if !lasts && sent.requests.is_multiple_of(REQUESTS_EACH) {
                connection = None;
            }
            sent.requests += 1;
            let is_first = sent.requests == 1;
            let sending = async {
                if connection.is_none() {
                    if lasts && !is_first {
                        return Err("a connection that was to last is gone".into());
                    }
                    connection = Some(self.connect().await?);
                }
                self.send(connection.as_mut().ok_or("no connection")?, sent.requests).await
            };
            let done = timeout(ANSWER_TIME_MAX, sending).await.unwrap_or_else(|_| Err("no answer".into()));
            sent.connections += u64::from(!lasts && !is_first && sent.requests % REQUESTS_EACH == 1);
            if let Err(failure) = done {
                connection = None;
                sent.failures.push(format!(
                    "request {}, {}: {failure}",
                    sent.requests,
                    if lasts { "old" } else { "new" }
                ));
                if lasts {
                    break;
                }
            }
        }
        sent
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Failed> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let stream = self.tls.connect(ServerName::try_from("localhost")?, stream).await?;
        let (requests, connection) = handshake(TokioIo::new(stream)).await?;
        // It ends with the connection, whose failures its requests tell.
        tokio::spawn(connection);
        Ok(requests)
    }

    async fn send(&self, connection: &mut SendRequest<Full<Bytes>>, number: u64) -> Result<(), Failed> {
        let writes = number % WRITES_ONE_OF == 1;
        let (method, body) = if writes { (Method::PUT, number.to_string()) } else { (Method::GET, String::new()) };
        let request = Request::builder().method(method).uri(CELL).header("host", "localhost");
        let request = request.header("authorization", &self.bearer).body(Full::new(Bytes::from(body)))?;
        connection.ready().await?;
        let answer = connection.send_request(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        match status.is_success() {
            true => Ok(()),
            false => Err(format!("{status}: {}", String::from_utf8_lossy(&body)).into()),
        }
    }
}
