//! A blocking client for any request, including those that the typed client does not offer. It sends each request once.

use std::borrow::Borrow;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use client::ClientOptions;
use client::tls::TlsFiles;
use client::transport::{AnswerBody, Transport};
use http_body_util::BodyExt;
use tokio::runtime::Runtime;

use super::events::Events;
use super::message::{Request, Response};
use super::routes::Called;
use super::transport::NotingTransport;

/// The longest wait of any test for an answer.
pub const ANSWER_MAX: Duration = Duration::from_secs(120);

/// The runtime shared by all clients of a program. Two threads are enough: callers block on their own.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime")
});

/// Waits for an asynchronous call.
///
/// # Panics
/// If the caller is itself asynchronous.
pub fn block_on<F: Future>(call: F) -> F::Output {
    RUNTIME.block_on(call)
}

/// A server and persistent connections to it. A clone is the same client; threads can share it.
#[derive(Clone)]
pub struct Client {
    transport: NotingTransport,
}

impl Client {
    /// A client that records in `called` which routes it calls.
    pub fn new(address: SocketAddr, called: Arc<Called>) -> Self {
        Self { transport: NotingTransport::new(address, None, called) }
    }

    /// A client of a server that speaks TLS.
    pub fn over_tls(address: SocketAddr, files: TlsFiles) -> Self {
        Self { transport: NotingTransport::new(address, Some(files), Arc::default()) }
    }

    /// A client that shares nothing with others.
    pub fn to(address: SocketAddr) -> Self {
        Self::new(address, Arc::default())
    }

    /// The typed client over the same connections, with its own session. Use [`block_on`] to wait for its calls.
    pub fn typed(&self, options: ClientOptions) -> client::Client {
        options.over(self.transport.clone())
    }

    /// The transport to the server.
    pub fn transport(&self) -> &NotingTransport {
        &self.transport
    }

    /// Moves to a restarted server. Old connections are not used again.
    pub fn moved_to(&self, address: SocketAddr) {
        self.transport.moved_to(address);
    }

    /// The server's address.
    pub fn address(&self) -> SocketAddr {
        self.transport.address()
    }

    /// Sends a request.
    pub fn send(&self, request: impl Borrow<Request>) -> io::Result<Response> {
        in_time(async {
            let (mut response, body) = self.begin(request.borrow()).await?;
            response.body = body.collect().await.map_err(io::Error::other)?.to_bytes().into();
            Ok(response)
        })
    }

    /// Sends a request; a refusal is an error with the answer.
    pub fn call(&self, request: impl Borrow<Request>) -> io::Result<Response> {
        let request = request.borrow();
        let response = self.send(request)?;
        let said = |response: &Response| {
            format!("{} {} was answered {}: {}", request.method, request.path, response.status, response.text())
        };
        if response.is_success() { Ok(response) } else { Err(io::Error::other(said(&response))) }
    }

    /// Starts following server-sent events as they arrive: with heartbeats, and without resuming.
    pub fn follow(&self, request: impl Borrow<Request>) -> io::Result<Events> {
        let begun = in_time(self.begin(request.borrow()));
        let (mut head, body) = begun?;
        if !head.is_success() {
            head.body = in_time(async { body.collect().await.map_err(io::Error::other) })?.to_bytes().into();
            return Ok(Events::refused(head));
        }
        Ok(Events::new(head, body))
    }

    /// Sends a request and returns the head of the response; its body is still to come.
    async fn begin(&self, request: &Request) -> io::Result<(Response, AnswerBody)> {
        let request = request.to_http().map_err(io::Error::other)?;
        let response = self.transport.send(request).await.map_err(|unanswered| io::Error::other(unanswered.cause))?;
        let (parts, body) = response.into_parts();
        let text = |value: &hyper::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = parts.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
        Ok((Response { status: parts.status.as_u16(), headers, body: Vec::new() }, body))
    }
}

fn in_time<T>(exchange: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    block_on(async {
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {ANSWER_MAX:?}"));
        tokio::time::timeout(ANSWER_MAX, exchange).await.map_err(late)?
    })
}
