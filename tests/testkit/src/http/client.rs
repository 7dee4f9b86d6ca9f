//! A client for requests of any kind, also those that no typed call makes: it blocks, and sends each request once.

use std::borrow::Borrow;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use client::ClientOptions;
use client::transport::{AnswerBody, Transport};
use http_body_util::BodyExt;
use tokio::runtime::Runtime;

use super::events::Events;
use super::message::{Request, Response};
use super::routes::Called;
use super::transport::NotingTransport;

/// No test waits longer for an answer.
pub const ANSWER_MAX: Duration = Duration::from_secs(120);

/// All clients of a program share it. Two threads are enough: callers block on their own.
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

/// A server, and connections to it that are kept alive. A clone is the same client; threads share it.
#[derive(Clone)]
pub struct Client {
    transport: NotingTransport,
}

impl Client {
    /// A client that notes in `called` which routes it calls.
    pub fn new(address: SocketAddr, called: Arc<Called>) -> Self {
        Self { transport: NotingTransport::new(address, called) }
    }

    /// A client of its own.
    pub fn to(address: SocketAddr) -> Self {
        Self::new(address, Arc::default())
    }

    /// The typed client over the same connections, with a session of its own. Its calls are waited for by [`block_on`].
    pub fn typed(&self, options: ClientOptions) -> client::Client {
        options.over(self.transport.clone())
    }

    /// The way to the server.
    pub fn transport(&self) -> &NotingTransport {
        &self.transport
    }

    /// The server was started anew. Old connections are not used again.
    pub fn moved_to(&self, address: SocketAddr) {
        self.transport.moved_to(address);
    }

    /// Where the server is.
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

    /// Sends a request; a refusal is an error that says what was answered.
    pub fn call(&self, request: impl Borrow<Request>) -> io::Result<Response> {
        let request = request.borrow();
        let response = self.send(request)?;
        let said = |response: &Response| {
            format!("{} {} was answered {}: {}", request.method, request.path, response.status, response.text())
        };
        if response.is_success() { Ok(response) } else { Err(io::Error::other(said(&response))) }
    }

    /// Begins to follow server-sent events, as they come: with heartbeats, and without resuming.
    pub fn follow(&self, request: impl Borrow<Request>) -> io::Result<Events> {
        let begun = in_time(self.begin(request.borrow()));
        let (mut head, body) = begun?;
        if !head.is_success() {
            head.body = in_time(async { body.collect().await.map_err(io::Error::other) })?.to_bytes().into();
            return Ok(Events::refused(head));
        }
        Ok(Events::new(head, body))
    }

    /// Sends a request and gives the head of the response; its body is still to come.
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
