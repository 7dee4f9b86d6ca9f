//! Connections: accepted up to a limit, served, and closed so that a client can read why.
//!
//! Keeps: input that hyper cannot parse is refused as a problem with a code, like everything else. A connection closed
//! by the server is read for a moment longer, because closing it with unread bytes would destroy the answer.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::response::IntoResponse;
use http_body_util::BodyExt;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::Admission;
use crate::dates::{can_be_dated, wall_now};
use crate::gate::harden;
use crate::guarded::{Guarded, Watch};
use crate::limits::{LINGER_BYTES_MAX, LINGER_TIME_MAX, REFUSALS_MAX, ServerLimits};
use crate::load::{Load, Permit};
use crate::problem::Problem;
use crate::request_id::RequestId;
use crate::transport::tls::{Refused, Tls, open};
use crate::transport::{Arrived, Listeners, Peer, Socket};

/// How long accepting pauses when the system has no descriptors or memory for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How much is read at a time from a closing connection.
const LINGER_READ_BYTES: usize = 16 << 10;

/// The smallest buffer that hyper accepts.
const HYPER_BUFFER_BYTES_MIN: usize = 8 << 10;

/// Accepts and serves connections.
pub(crate) struct Connections {
    pub(crate) limits: Arc<ServerLimits>,
    pub(crate) load: Arc<Load>,
    pub(crate) admission: Arc<Admission>,
    /// Cancelled when the server stops: connections then close after the request in progress.
    pub(crate) stopping: CancellationToken,
    pub(crate) tracker: TaskTracker,
    pub(crate) refusals: Arc<Semaphore>,
    /// The certificates, where the address speaks TLS.
    tls: Option<Arc<Tls>>,
}

impl Connections {
    pub(crate) fn new(
        limits: Arc<ServerLimits>,
        load: Arc<Load>,
        admission: Arc<Admission>,
        stopping: CancellationToken,
        tls: Option<Arc<Tls>>,
    ) -> Self {
        let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
        Self { limits, load, admission, stopping, tracker: TaskTracker::new(), refusals, tls }
    }

    /// Accepts connections until `until`. Connections that arrive while the server stops get one request each, to be
    /// told so.
    pub(crate) async fn accept(&self, listeners: &Listeners, until: impl Future<Output = ()>) {
        let mut until = pin!(until);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut until => return,
                accepted = listeners.accept() => accepted,
            };
            match accepted {
                Ok(arrived) => self.begin(arrived),
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn begin(&self, arrived: Arrived) {
        let Some(permit) = self.load.connections.enter() else {
            return self.refuse(arrived);
        };
        let connection = Connection {
            limits: self.limits.clone(),
            load: self.load.clone(),
            tls: self.tls.clone(),
            admission: self.admission.clone(),
            stopping: self.stopping.clone(),
            permit,
        };
        if self.stopping.is_cancelled() {
            // Nobody waits for these when the server stops.
            tokio::spawn(connection.begin(arrived, false));
        } else {
            self.tracker.spawn(connection.begin(arrived, true));
        }
    }

    /// Tells a client that there are too many connections, unless too many clients are being told already.
    fn refuse(&self, arrived: Arrived) {
        let Ok(permit) = self.refusals.clone().try_acquire_owned() else {
            return;
        };
        let problem = Problem::too_many_connections(self.limits.connections_max);
        let (tls, load, limits) = (self.tls.clone(), self.load.clone(), self.limits.clone());
        tokio::spawn(async move {
            if let Ok((socket, _)) = open(arrived, tls.as_ref(), &load, &limits).await {
                end(socket, Some(problem)).await;
            }
            drop(permit);
        });
    }
}

/// A connection that ended before it was accepted says nothing about the next one.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

struct Connection {
    limits: Arc<ServerLimits>,
    load: Arc<Load>,
    tls: Option<Arc<Tls>>,
    admission: Arc<Admission>,
    stopping: CancellationToken,
    permit: Permit,
}

impl Connection {
    /// Serves a connection after its handshake, if it has one. A server that stops does not wait for handshakes.
    async fn begin(self, arrived: Arrived, keep_alive: bool) {
        let opened = tokio::select! {
            opened = open(arrived, self.tls.as_ref(), &self.load, &self.limits) => opened,
            () = self.stopping.cancelled(), if keep_alive => return,
        };
        match opened {
            Ok((socket, peer)) => self.serve(socket, peer, keep_alive).await,
            Err(refused) => end_refused(refused).await,
        }
    }

    async fn serve(self, stream: Socket, peer: Peer, keep_alive: bool) {
        let watch = Arc::new(Watch::default());
        let ended = {
            let peer = Arc::new(peer);
            let io = TokioIo::new(Guarded::new(stream, watch.clone(), self.limits.clone()));
            let service = service_fn(|request| {
                let in_request = watch.begin_request();
                let (admission, peer) = (self.admission.clone(), peer.clone());
                async move { Ok::<_, Infallible>(admission.answer(request, &peer, in_request).await) }
            });
            let mut connection = pin!(self.http(keep_alive).serve_connection(io, service));
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = self.stopping.cancelled(), if keep_alive => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        };
        let Some(stream) = watch.take_stream() else {
            return;
        };
        if watch.stalled() {
            // Discards what the system still holds for this client.
            stream.forget_unsent();
            tracing::debug!("a client stopped reading");
            return;
        }
        let refusal = match &ended {
            Err(_) if watch.head_was_slow() => Some(Problem::too_slow("head_time_max", self.limits.head_time_max)),
            Err(error) if error.is_parse_too_large() => {
                Some(Problem::head_too_large(self.limits.head_bytes_max, self.limits.headers_max))
            }
            Err(error) if error.is_parse() => Some(Problem::no_request(&error.to_string())),
            _ => None,
        };
        end(stream, refusal).await;
        drop(self.permit);
    }

    fn http(&self, keep_alive: bool) -> http1::Builder {
        let mut builder = http1::Builder::new();
        builder
            // Without hyper's timer: the stream watches how long a head takes and how long none arrives.
            .header_read_timeout(None)
            .keep_alive(keep_alive)
            .auto_date_header(can_be_dated(wall_now()))
            .max_header_size(self.limits.head_bytes_max)
            .max_buf_size((self.limits.head_bytes_max + 1).max(HYPER_BUFFER_BYTES_MIN))
            // One buffer and one write for a head and its body; `guarded` reads from it.
            .writev(false);
        builder
    }
}

/// Closes a connection that does not reach HTTP.
pub(crate) async fn end_refused(refused: Refused) {
    match refused {
        Refused::PlainHttp(stream) => end(stream, Some(Problem::plain_http())).await,
        Refused::Said(stream) => end(stream, None).await,
        Refused::Gone => {}
    }
}

/// Closes a connection: sends the refusal, shuts down writing, and reads what is still arriving.
async fn end(mut stream: impl AsyncRead + AsyncWrite + Unpin, refusal: Option<Problem>) {
    let ending = async {
        if let Some(problem) = refusal {
            stream.write_all(&problem_bytes(problem).await).await?;
        }
        stream.shutdown().await?;
        // On the heap, because a connection is as large as the largest future inside it.
        let mut scratch = vec![0; LINGER_READ_BYTES];
        let mut left = LINGER_BYTES_MAX;
        while left > 0 {
            match stream.read(&mut scratch).await? {
                0 => break,
                read => left = left.saturating_sub(read),
            }
        }
        Ok::<_, io::Error>(())
    };
    let _ = timeout(LINGER_TIME_MAX, ending).await;
}

/// A complete answer for a request that never reached a handler.
async fn problem_bytes(problem: Problem) -> Vec<u8> {
    let mut response = problem.into_response();
    RequestId::next().put_into(&mut response);
    let (mut parts, body) = response.into_parts();
    harden(&mut parts.headers);
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let reason = parts.status.canonical_reason().unwrap_or_default();
    let mut bytes = format!("HTTP/1.1 {} {reason}\r\n", parts.status.as_u16()).into_bytes();
    for (name, value) in &parts.headers {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(format!("content-length: {}\r\nconnection: close\r\n\r\n", body.len()).as_bytes());
    bytes.extend_from_slice(&body);
    bytes
}
