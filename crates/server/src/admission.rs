//! What every request passes before it reaches its handler: the limits of its head and body, how many are under way, how much
//! memory they may take, and how long they may last.
//!
//! Keeps: a request that is begun counts until its work is over, also when its client has gone: what it does in the store
//! cannot be called back, and may hold a thread until then.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::{CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Request, Response, Uri};
use axum::response::IntoResponse;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tower::Service;

use crate::answer::Answer;
use crate::guarded::InRequest;
use crate::json::parse_duration;
use crate::limits::{JSON_MEMORY_FACTOR, ServerLimits};
use crate::load::{Load, Permit};
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::{Server, router};

/// These are answered whatever the load is, and while the server stops.
const ALWAYS: &[&str] = &["/livez", "/readyz", "/startupz", "/metrics", "/version"];

/// Answers below this size do not count against the memory for requests: they go into the buffers of their connection.
const ANSWER_BYTES_FREE: u64 = 16 << 10;

/// See the module.
pub(crate) struct Admission {
    router: Router,
    limits: Arc<ServerLimits>,
    load: Arc<Load>,
    stopping: CancellationToken,
    metrics: Metrics,
}

impl Admission {
    pub(crate) fn new(server: Server) -> Self {
        let (limits, load) = (server.limits.clone(), server.load.clone());
        let (stopping, metrics) = (server.stopping.clone(), server.metrics.clone());
        Self { router: router(server), limits, load, stopping, metrics }
    }

    /// Answers a request.
    pub(crate) async fn answer(&self, request: Request<Incoming>, in_request: InRequest) -> Response<Answer> {
        let (parts, body) = request.into_parts();
        let safe = parts.method.is_safe();
        match self.admit(parts, body).await {
            Ok(response) => self.finish(response, safe, in_request),
            Err(problem) => {
                self.metrics.refused(problem.code());
                problem.into_response().map(|body| Answer::new(body, in_request, None))
            }
        }
    }

    async fn admit(&self, parts: Parts, body: Incoming) -> Result<Response<Body>, Problem> {
        self.check_head(&parts)?;
        if ALWAYS.contains(&parts.uri.path()) {
            return Ok(self.begin(Request::from_parts(parts, Body::empty()), Vec::new()).await);
        }
        if self.stopping.is_cancelled() {
            return Err(Problem::stopping());
        }
        // What is refused because of its body is not read to the end, so the connection cannot be used again.
        let (bytes, memory) = match self.read(&parts.headers, body).await {
            Ok(read) => read,
            Err(problem) => {
                self.metrics.refused(problem.code());
                return Ok(close_after(problem));
            }
        };
        let wait = self.wait_of(&parts);
        let mut permits: Vec<Permit> = memory.into_iter().collect();
        let enter =
            |gate: &crate::load::Gate, limit| gate.enter().ok_or_else(|| Problem::too_many_requests(limit, gate.max()));
        if wait.is_some() {
            permits.push(enter(&self.load.waits, "waits_max")?);
        }
        permits.push(enter(&self.load.requests, "requests_max")?);
        let time_max = self.limits.request_time_max + wait.unwrap_or_default();
        let mut work = self.begin(Request::from_parts(parts, Body::from(bytes)), permits);
        work.ends_with_client = wait.is_some();
        timeout(time_max, work).await.map_err(|_| Problem::unanswered(time_max))
    }

    fn check_head(&self, parts: &Parts) -> Result<(), Problem> {
        let limits = &self.limits;
        if parts.headers.len() > limits.headers_max {
            return Err(Problem::too_many_headers(limits.headers_max, parts.headers.len()));
        }
        let url_bytes = url_bytes(&parts.uri);
        if url_bytes > limits.url_bytes_max {
            return Err(Problem::url_too_long(limits.url_bytes_max, url_bytes));
        }
        match parts.headers.get(CONTENT_ENCODING) {
            Some(encoding) if encoding != "identity" => {
                Err(Problem::encoded(&String::from_utf8_lossy(encoding.as_bytes())))
            }
            _ => Ok(()),
        }
    }

    /// Reads a body, and takes the memory that it needs while it is worked on.
    async fn read(&self, headers: &HeaderMap, body: Incoming) -> Result<(Bytes, Option<Permit>), Problem> {
        if body.is_end_stream() {
            return Ok((Bytes::new(), None));
        }
        let declared = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        let body_bytes_max = self.limits.body_bytes_max;
        if let Some(declared) = declared.filter(|declared| *declared > body_bytes_max as u64) {
            return Err(Problem::body_too_large(body_bytes_max, declared));
        }
        let body_time_max = self.limits.body_time_max;
        let read = timeout(body_time_max, self.read_all(declared, body)).await;
        let bytes = read.map_err(|_| Problem::too_slow("body_time_max", body_time_max))??;
        let memory = self.take_memory(bytes.len() * JSON_MEMORY_FACTOR)?;
        Ok((bytes, Some(memory)))
    }

    async fn read_all(&self, declared: Option<u64>, mut body: Incoming) -> Result<Bytes, Problem> {
        let mut whole = Vec::new();
        // A body takes memory as it comes, not as it is declared: who sends little holds little.
        let mut held = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Problem::body_broken(&error.to_string()))?;
            let Ok(bytes) = frame.into_data() else {
                continue;
            };
            if whole.is_empty() && declared == Some(bytes.len() as u64) {
                return Ok(bytes);
            }
            let length = whole.len() + bytes.len();
            if length > self.limits.body_bytes_max {
                return Err(Problem::body_too_large(self.limits.body_bytes_max, length as u64));
            }
            let before = whole.capacity();
            whole.extend_from_slice(&bytes);
            if whole.capacity() > before {
                held.push(self.take_memory(whole.capacity() - before)?);
            }
        }
        Ok(whole.into())
    }

    fn take_memory(&self, bytes: usize) -> Result<Permit, Problem> {
        let max = self.limits.request_memory_bytes_max;
        self.load.take_memory(bytes).ok_or_else(|| Problem::memory_used_up(max, bytes))
    }

    /// How long a request may be asked to wait; none if it does not wait.
    fn wait_of(&self, parts: &Parts) -> Option<Duration> {
        // How long a claim waits is in its body, which only its handler reads.
        if parts.uri.path() == "/v1/claims" || parts.headers.contains_key("prefer") {
            return Some(self.limits.wait_time_max);
        }
        let parameters = parts.uri.query().unwrap_or_default().split('&');
        let mut waits = parameters.filter_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            ["wait", "follow"].contains(&name).then(|| parse_duration(value).unwrap_or_default())
        });
        waits.next().map(|wait| wait.min(self.limits.wait_time_max))
    }

    fn begin(&self, request: Request<Body>, permits: Vec<Permit>) -> Work {
        let mut router = self.router.clone();
        let answered = async move {
            let answered = router.call(request).await;
            answered.unwrap_or_else(|never| match never {})
        };
        Work { ends_with_client: false, answered: Some(Box::pin(answered)), permits, runtime: Handle::current() }
    }

    /// Counts what is still to be written of an answer.
    fn finish(&self, response: Response<Body>, safe: bool, in_request: InRequest) -> Response<Answer> {
        let is_stream = response.headers().get(CONTENT_TYPE).is_some_and(|of| of.as_bytes().starts_with(STREAM_TYPE));
        if is_stream {
            return match self.load.streams.enter() {
                Some(permit) => response.map(|body| {
                    let stopping = self.stopping.clone().cancelled_owned();
                    Answer::new(body, in_request, Some(permit)).until(stopping)
                }),
                None => {
                    let problem = Problem::too_many_streams(self.load.streams.max());
                    problem.into_response().map(|body| Answer::new(body, in_request, None))
                }
            };
        }
        let bytes = response.body().size_hint().lower();
        if bytes < ANSWER_BYTES_FREE {
            return response.map(|body| Answer::new(body, in_request, None));
        }
        match (self.take_memory(usize::try_from(bytes).unwrap_or(usize::MAX)), safe) {
            (Ok(memory), _) => response.map(|body| Answer::new(body, in_request, Some(memory))),
            // What was done cannot be refused any more.
            (Err(_), false) => response.map(|body| Answer::new(body, in_request, None)),
            (Err(problem), true) => problem.into_response().map(|body| Answer::new(body, in_request, None)),
        }
    }
}

const STREAM_TYPE: &[u8] = b"text/event-stream";

fn url_bytes(uri: &Uri) -> usize {
    uri.path_and_query().map_or(0, |path| path.as_str().len())
}

fn close_after(problem: Problem) -> Response<Body> {
    let mut response = problem.into_response();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A request that is worked on. If nobody waits for it any more, its work goes on by itself, and counts as long. One that
/// waits for something ends with its client: what it would claim then, nobody would get.
struct Work {
    ends_with_client: bool,
    answered: Option<Pin<Box<dyn Future<Output = Response<Body>> + Send>>>,
    permits: Vec<Permit>,
    runtime: Handle,
}

impl Future for Work {
    type Output = Response<Body>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response<Body>> {
        let Some(answered) = &mut self.answered else {
            return Poll::Pending;
        };
        let response = ready!(answered.as_mut().poll(context));
        self.answered = None;
        self.permits.clear();
        Poll::Ready(response)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Some(answered) = self.answered.take().filter(|_| !self.ends_with_client) {
            let permits = std::mem::take(&mut self.permits);
            self.runtime.spawn(async move {
                answered.await;
                drop(permits);
            });
        }
    }
}
