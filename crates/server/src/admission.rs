//! The checks before a request reaches its handler: the gate, then the limits of head and body, requests in progress,
//! memory, and time.
//!
//! Keeps: a started request counts until its work is done, even if its client has disconnected: its work in the store
//! cannot be cancelled. Only a waiting request is cancelled with its client.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Request, Response, Uri};
use axum::response::IntoResponse;
use contract::object_text::ObjectText;
use contract::time::millis;
use futures_util::FutureExt;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use statehouse::panic_message;
use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::access::{Caller, Identification, Stranger};
use crate::alarm::Alarm;
use crate::answer::Answer;
use crate::gate::{Page, harden};
use crate::guarded::InRequest;
use crate::http::dispatch::{Answering, HISTORY, Prepared, Routed};
use crate::json_memory::memory_of;
use crate::limits::ServerLimits;
use crate::load::{Load, Permit};
use crate::metrics::Metrics;
use crate::page_memory::PageMemory;
use crate::problem::Problem;
use crate::reloading::Reloading;
use crate::request_id::RequestId;
use crate::transport::Peer;
use crate::{Server, streamed};

/// Smaller answers do not count against the memory for requests: they fit into the buffers of their connection.
const ANSWER_BYTES_FREE: u64 = 16 << 10;

/// A request that takes longer, from the end of its body to its answer, is logged with its id.
const SLOW: Duration = Duration::from_secs(1);

/// Checks requests against every limit and runs them.
pub(crate) struct Admission {
    server: Server,
    limits: Arc<ServerLimits>,
    load: Arc<Load>,
    stopping: CancellationToken,
    metrics: Metrics,
    reloading: Reloading,
}

impl Admission {
    pub(crate) fn new(server: Server) -> Self {
        let (limits, load) = (server.limits.clone(), server.load.clone());
        let (stopping, metrics) = (server.stopping.clone(), server.metrics.clone());
        let reloading = server.reloading();
        Self { server, limits, load, stopping, metrics, reloading }
    }

    /// Answers a request.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        peer: &Peer,
        mut in_request: InRequest,
    ) -> Response<Answer> {
        let (parts, body) = request.into_parts();
        let safe = parts.method.is_safe();
        let id = RequestId::next();
        let page = self.page(&parts.headers);
        let mut response = match self.admit(id, parts, body, peer, page.as_ref(), &mut in_request.alarm).await {
            Ok(response) => self.finish(response, safe, in_request),
            Err(problem) => {
                self.metrics.refused(problem.code());
                problem.into_response().map(|body| Answer::new(body, in_request, Vec::new()))
            }
        };
        id.put_into(&mut response);
        response.headers_mut().insert(&HISTORY, self.server.history.clone());
        harden(response.headers_mut());
        if let Some(page) = page {
            page.permit(response.headers_mut());
        }
        response
    }

    /// The page that sent a request, if its origin was named. A page is let in with a token only.
    fn page(&self, headers: &HeaderMap) -> Option<Page> {
        (self.server.identification == Identification::Required).then(|| self.reloading.hosts().page(headers)).flatten()
    }

    async fn admit(
        &self,
        id: RequestId,
        parts: Parts,
        body: Incoming,
        peer: &Peer,
        page: Option<&Page>,
        alarm: &mut Alarm,
    ) -> Result<Response<Body>, Problem> {
        if let Err(problem) = self.reloading.hosts().check(&parts, peer.is_over_tls(), page) {
            self.metrics.refused(problem.code());
            // Its body is not read.
            return Ok(close_after(problem));
        }
        // A browser asks without the token that it is going to show.
        if let Some(preflight) = page.and_then(|page| page.preflight(&parts)) {
            return Ok(preflight);
        }
        self.check_head(&parts)?;
        let routed = Routed::find(&parts);
        let server = match self.known(&parts, peer, &routed) {
            Ok(server) => server,
            Err(problem) => {
                self.metrics.refused(problem.code());
                // A stranger's body is not read.
                return Ok(close_after(problem));
            }
        };
        if routed.is_always_admitted() {
            if !body.is_end_stream() {
                let problem = Problem::refused_member("body", "invalid body: this call takes no body");
                self.metrics.refused(problem.code());
                return Ok(close_after(problem));
            }
            return Ok(routed.prepare(&server, &parts, Bytes::new()).begin().await);
        }
        if self.stopping.is_cancelled() {
            return Err(Problem::stopping());
        }
        // A request refused because of its body is not read to the end, so the connection cannot be reused.
        let (bytes, memory) = match self.read(&parts.headers, body, alarm).await {
            Ok(read) => read,
            Err(problem) => {
                self.metrics.refused(problem.code());
                return Ok(close_after(problem));
            }
        };
        let route = (parts.method.clone(), parts.uri.clone());
        let prepared = routed.prepare(&server, &parts, bytes);
        let wait = prepared.wait;
        let (gate, limit) = match wait {
            Some(_) => (&self.load.waits, "waits_max"),
            None => (&self.load.requests, "requests_max"),
        };
        let entered = gate.enter().ok_or_else(|| Problem::too_many_requests(limit, gate.max()))?;
        let permits = memory.into_iter().chain([entered]).collect();
        let time_max = self.limits.request_time_max + wait.unwrap_or_default();
        let began = Instant::now();
        let deadline = began + time_max;
        let guarded = |prepared: Prepared| -> Answering { Box::pin(answered_if_it_panics(route, prepared.begin())) };
        let answered = match wait {
            // A wait ends with its client: nothing may be claimed for a client that is gone.
            Some(_) => {
                let _permits: Vec<Permit> = permits;
                alarm.or_none(deadline, guarded(prepared)).await
            }
            None => alarm.or_none(deadline, Work::new(guarded(prepared), permits)).await,
        };
        let took = began.elapsed();
        // A request that asked to wait is not slow.
        if wait.is_none() && took >= SLOW {
            let status = answered.as_ref().map(|response| response.status().as_u16());
            let (method, path) = (&parts.method, parts.uri.path());
            tracing::warn!(request_id = %id, %method, path, status, took_ms = millis(took), "slow request");
        }
        answered.ok_or_else(|| Problem::unanswered(time_max))
    }

    /// The server for whoever sends the request. Refuses who is not known, unless anybody may call the route.
    fn known(&self, parts: &Parts, peer: &Peer, routed: &Routed) -> Result<Server, Problem> {
        let server = &self.server;
        // Nobody is known by what was shown, so there is nobody to name.
        let note = || server.denials.note(&server.house, "authenticate", ObjectText::default());
        let caller = Caller::of(server.identification, &parts.headers, peer, &server.house).inspect_err(|_| note())?;
        if let Caller::Known { principal, .. } = &caller {
            server.rates.take(principal).map_err(|max| Problem::too_fast(&principal.name, max))?;
        }
        match caller {
            Caller::Unknown(stranger) if !routed.is_open() => {
                if stranger != Stranger::Silent {
                    note();
                }
                Err(Problem::stranger(&stranger))
            }
            caller => Ok(self.server.called_by(caller)),
        }
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

    /// Reads a body, and reserves the memory it needs while it is processed.
    async fn read(
        &self,
        headers: &HeaderMap,
        body: Incoming,
        alarm: &mut Alarm,
    ) -> Result<(Bytes, Option<Permit>), Problem> {
        if body.is_end_stream() {
            return Ok((Bytes::new(), None));
        }
        let declared = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        let body_bytes_max = self.limits.body_bytes_max;
        if let Some(declared) = declared.filter(|declared| *declared > body_bytes_max as u64) {
            return Err(Problem::body_too_large(body_bytes_max, declared));
        }
        let body_time_max = self.limits.body_time_max;
        let read = alarm.or_none(Instant::now() + body_time_max, self.read_all(declared, body)).await;
        let bytes = read.ok_or_else(|| Problem::too_slow("body_time_max", body_time_max))??;
        let memory = self.take_memory(memory_of(&bytes))?;
        Ok((bytes, Some(memory)))
    }

    async fn read_all(&self, declared: Option<u64>, mut body: Incoming) -> Result<Bytes, Problem> {
        let mut whole = Vec::new();
        // A body takes memory as it arrives, not as it is declared: a client that sends little holds little.
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

    /// Counts the unwritten part of an answer.
    fn finish(&self, mut response: Response<Body>, safe: bool, in_request: InRequest) -> Response<Answer> {
        let size = response.body().size_hint();
        let page = PageMemory::of(&mut response);
        let permits = match size.exact() {
            Some(bytes) if bytes < ANSWER_BYTES_FREE => Ok(Vec::new()),
            Some(bytes) => self.hold(page, usize::try_from(bytes).unwrap_or(usize::MAX)),
            None => self.enter_stream(response.headers()),
        };
        match (permits, safe) {
            (Ok(permits), _) => response.map(|body| Answer::new(body, in_request, permits)),
            // The work is done, so it can no longer be refused.
            (Err(_), false) => response.map(|body| Answer::new(body, in_request, Vec::new())),
            (Err(problem), true) => problem.into_response().map(|body| Answer::new(body, in_request, Vec::new())),
        }
    }

    /// Reserves the memory of an answer; a page already has some.
    fn hold(&self, page: Option<PageMemory>, bytes: usize) -> Result<Vec<Permit>, Problem> {
        match page {
            None => self.take_memory(bytes).map(|memory| vec![memory]),
            Some(page) => {
                let max = self.limits.request_memory_bytes_max;
                page.resize(&self.load, bytes).ok_or_else(|| Problem::memory_used_up(max, bytes))
            }
        }
    }

    /// Counts an answer of unknown size: an event stream, or a large file.
    fn enter_stream(&self, headers: &HeaderMap) -> Result<Vec<Permit>, Problem> {
        let streams = &self.load.streams;
        let entered = streams.enter().ok_or_else(|| Problem::too_many_streams(streams.max()))?;
        let is_events = headers.get(CONTENT_TYPE).is_some_and(|of| of.as_bytes().starts_with(b"text/event-stream"));
        match is_events {
            true => Ok(vec![entered]),
            false => Ok(vec![entered, self.take_memory(streamed::AHEAD_BYTES)?]),
        }
    }
}

/// Runs a handler, and answers its panic. The client must learn that the outcome of its write is unknown, and a panic
/// must not reach the connection, which other requests may share.
async fn answered_if_it_panics(
    (method, uri): (Method, Uri),
    handler: impl Future<Output = Response<Body>>,
) -> Response<Body> {
    // A half-finished handler leaves no shared state behind: shared state is behind locks that are not poisoned.
    let answered = AssertUnwindSafe(handler).catch_unwind().await;
    answered.unwrap_or_else(|panic| {
        let said = panic_message(&*panic);
        let route = format!("{method} {}", uri.path());
        tracing::error!(%route, panic = %said, "a handler panicked");
        Problem::internal(format!("the server failed to answer {route}; report it with the log of this moment"))
            .into_response()
    })
}

fn url_bytes(uri: &Uri) -> usize {
    uri.path_and_query().map_or(0, |path| path.as_str().len())
}

fn close_after(problem: Problem) -> Response<Body> {
    let mut response = problem.into_response();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A request in progress. If nobody waits for it any more, its work continues on its own, and keeps counting.
struct Work {
    answered: Option<Answering>,
    permits: Vec<Permit>,
}

impl Work {
    fn new(answered: Answering, permits: Vec<Permit>) -> Self {
        Self { answered: Some(answered), permits }
    }
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
        // Without a runtime the process is about to end, and nobody counts any more.
        if let (Some(answered), Ok(runtime)) = (self.answered.take(), Handle::try_current()) {
            let permits = std::mem::take(&mut self.permits);
            runtime.spawn(async move {
                answered.await;
                drop(permits);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_handler_that_panics_is_answered_and_nothing_is_left_to_resume() {
        let panics = async {
            tokio::task::yield_now().await;
            panic!("planted")
        };
        let answered: Answering = Box::pin(answered_if_it_panics((Method::GET, Uri::from_static("/v1/x")), panics));
        let mut work = Work::new(answered, Vec::new());
        let response = (&mut work).await;
        assert_eq!(response.status(), 500);
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        let problem: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!((&problem["code"], &problem["outcome"]), (&"SH-2006".into(), &"unknown".into()));
        assert!(work.answered.is_none(), "dropping it would resume the panic");
    }
}
