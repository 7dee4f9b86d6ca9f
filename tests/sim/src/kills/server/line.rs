//! The connection of one worker. One write in ten is first sent over a connection that closes before its answer, as by a client
//! that gave up: the copy may arrive before the write, after it or never. Lost requests are counted.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use client::transport::{Answering, Transport};
use hyper::body::Bytes;
use hyper::{Method, Request};
use testkit::http::transport::NotingTransport;
use testkit::random::Random;
use tokio::io::AsyncWriteExt;
use wire::routes::SESSIONS_OPEN;

/// One in this many writes is sent twice.
const ABANDONED_EACH: u64 = 10;

/// A clone shares the same connection and counters.
#[derive(Clone)]
pub(super) struct Line {
    server: NotingTransport,
    random: Arc<Mutex<Random>>,
    counts: Arc<[AtomicU64; 4]>,
}

/// How often a client needed more than one attempt, and what it got.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pains {
    /// Requests retried because they got no answer, or "later".
    pub(super) repeats: u64,
    /// Requests first sent over a connection that closed before the answer.
    pub(super) abandoned: u64,
    /// Answers that the server marked as stored ones.
    pub(super) replayed: u64,
    /// Opened sessions.
    pub(super) sessions: u64,
}

impl Line {
    pub(super) fn new(server: NotingTransport, seed: u64) -> Self {
        Self { server, random: Arc::new(Mutex::new(Random::new(seed))), counts: Arc::default() }
    }

    pub(super) fn pains(&self) -> Pains {
        let [repeats, abandoned, replayed, sessions] = [0, 1, 2, 3].map(|at| self.counts[at].load(Ordering::Acquire));
        Pains { repeats, abandoned, replayed, sessions }
    }

    fn count(&self, at: usize, is_so: bool) {
        self.counts[at].fetch_add(u64::from(is_so), Ordering::AcqRel);
    }
}

impl Transport for Line {
    fn send(&self, request: Request<Bytes>) -> Answering<'_> {
        Box::pin(async move {
            let opens = request.method() == Method::POST && request.uri().path() == SESSIONS_OPEN.at(&[]);
            let writes = request.method() != Method::GET && !opens;
            if writes && self.random.lock().expect("no panic").one_in(ABANDONED_EACH) {
                abandon(self.server.address(), &request).await;
                self.count(1, true);
            }
            let answered = self.server.send(request).await;
            let later = |status: u16| matches!(status, 429 | 503 | 504);
            self.count(0, answered.as_ref().map_or(true, |response| later(response.status().as_u16())));
            if let Ok(response) = &answered {
                let stored = response.headers().get("statehouse-replayed").is_some_and(|value| value == "true");
                self.count(2, stored);
                self.count(3, opens && response.status().is_success());
            }
            answered
        })
    }

    fn named(&self) -> String {
        self.server.named()
    }
}

/// Sends a request and hangs up without waiting for the answer; it may or may not arrive. No client does this, so it uses
/// its own socket.
async fn abandon(address: SocketAddr, request: &Request<Bytes>) {
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    let mut head = format!("{} {target} HTTP/1.1\r\nhost: localhost\r\n", request.method());
    for (name, value) in request.headers() {
        head += &format!("{name}: {}\r\n", value.to_str().expect("a header of the client's own"));
    }
    head += &format!("content-length: {}\r\n\r\n", request.body().len());
    if let Ok(mut connection) = tokio::net::TcpStream::connect(address).await {
        // A failure here is as good as a lost request.
        let _ = connection.write_all(&[head.as_bytes(), request.body()].concat()).await;
    }
}
