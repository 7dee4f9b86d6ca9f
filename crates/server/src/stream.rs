//! Server-sent events: everything after a position, as it happens, with ids that a client can resume from.
//!
//! - Every event has an `id:`, the position after it. A stream resumes after `Last-Event-ID`: nothing is missed. After
//!   an interruption in the middle of a commit, the whole commit is sent again.
//! - After five seconds without an event comes a `heartbeat` with the position, so silence means trouble.
//! - A client that has not read an event for [`LAGGED_AFTER`] gets `lagged`, with the position to resume from, and the
//!   stream ends.
//!
//! Keeps: only a few small events or one large event are read ahead of the client, and the large events of all streams
//! share a limit: a slow client costs no more than a fast one, and a thousand of them no more than that.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use contract::Error;
use contract::value::in_one_line;
use futures_util::stream::unfold;
use serde::Serialize;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Server;
use crate::access::LastingRequest;
use crate::api::call::Reply;
use crate::load::{Load, Permit};

/// The silence before a heartbeat.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(5);

/// Events up to this size fit into the buffers of their connection.
const SMALL_BYTES: usize = 4 << 10;

/// How long a large event waits before it tries again to get memory.
const MEMORY_PAUSE: Duration = Duration::from_millis(20);

/// How long a client may leave an event unread.
pub const LAGGED_AFTER: Duration = Duration::from_secs(5);

/// One event of a stream.
pub(crate) struct Sent {
    id: u64,
    kind: &'static str,
    data: String,
}

impl Sent {
    /// `id` is the position from which a client resumes after this event.
    pub(crate) fn new(id: u64, kind: &'static str, data: String) -> Self {
        Self { id, kind, data }
    }

    /// The same, with its data as JSON.
    pub(crate) fn json(id: u64, kind: &'static str, data: &impl Serialize) -> Self {
        Self::new(id, kind, serde_json::to_string(data).expect("what is sent is JSON"))
    }

    fn event(&self, id: String) -> Event {
        // A line break in JSON can only be between tokens, and would end the line of the stream.
        Event::default().id(id).event(self.kind).data(in_one_line(&self.data))
    }
}

/// A source of events.
pub(crate) trait Source: Send + 'static {
    /// The next events, as soon as there are any. Cancel-safe: nothing is lost if it is dropped while it waits.
    fn next(&mut self) -> impl Future<Output = Result<Vec<Sent>, Error>> + Send;

    /// The position from which a client resumes that has everything so far.
    fn position(&mut self) -> Result<u64, Error>;

    /// A position in the form that clients keep.
    fn id(position: u64) -> String {
        position.to_string()
    }
}

/// The answer of a following call: a page, or a stream.
pub(crate) enum Followed<A> {
    /// What there is now.
    Page(Reply<A>),
    /// Events as they happen.
    Stream(EventStream),
}

/// An event stream, ready to be sent.
pub(crate) struct EventStream(Response);

impl IntoResponse for EventStream {
    fn into_response(self) -> Response {
        self.0
    }
}

struct State<S> {
    source: S,
    waiting: VecDeque<Sent>,
    /// When the last event was handed to the connection.
    given: Option<Instant>,
    /// The position after it.
    reached: u64,
    stopping: CancellationToken,
    /// Held as long as its sender is looked after.
    _lasting: Option<Arc<LastingRequest>>,
    /// Nothing follows a last event.
    ended: bool,
    load: Arc<Load>,
    /// The memory of the last event, if it is large.
    large: Option<Permit>,
}

impl Server {
    /// Sends a source as a stream of events.
    pub(crate) fn stream<S: Source>(&self, mut source: S) -> Result<EventStream, Error> {
        let state = State {
            reached: source.position()?,
            source,
            waiting: VecDeque::new(),
            given: None,
            stopping: self.stopping.clone(),
            _lasting: self.lasting.clone(),
            ended: false,
            load: self.load.clone(),
            large: None,
        };
        let events = unfold(state, |mut state| async move {
            // Asking for the next event means that the previous one was taken.
            state.large = None;
            let sent = state.next().await?;
            state.take_memory(sent.data.len()).await;
            state.reached = sent.id;
            state.given = Some(Instant::now());
            Some((Ok::<_, Infallible>(sent.event(S::id(sent.id))), state))
        });
        Ok(EventStream(Sse::new(events).into_response()))
    }

    /// The result of a waiting call, or none if it does not arrive in time or the server stops.
    pub(crate) async fn in_time<T>(&self, wait: Duration, call: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            given = call => Some(given),
            () = tokio::time::sleep(wait) => None,
            () = self.stopping.cancelled() => None,
        }
    }
}

impl<S: Source> State<S> {
    /// Waits for the memory of a large event.
    async fn take_memory(&mut self, bytes: usize) {
        while bytes > SMALL_BYTES && self.large.is_none() {
            self.large = self.load.take_stream_memory(bytes);
            if self.large.is_none() {
                tokio::time::sleep(MEMORY_PAUSE).await;
            }
        }
    }

    async fn next(&mut self) -> Option<Sent> {
        if self.ended {
            return None;
        }
        if self.given.is_some_and(|given| given.elapsed() > LAGGED_AFTER) {
            return Some(self.last("lagged", json!({ "resume_at": S::id(self.reached) })));
        }
        if let Some(sent) = self.waiting.pop_front() {
            return Some(sent);
        }
        let heartbeat = tokio::time::sleep(HEARTBEAT_EVERY);
        tokio::select! {
            biased;
            () = self.stopping.cancelled() => {
                Some(self.last("stopping", json!({ "resume_at": S::id(self.reached) })))
            }
            found = self.source.next() => match found {
                Ok(found) => {
                    self.waiting.extend(found);
                    self.waiting.pop_front()
                }
                Err(error) => {
                    let detail = json!({ "code": error.code(), "detail": error.to_string(), "resume_at": S::id(self.reached) });
                    Some(self.last("error", detail))
                }
            },
            () = heartbeat => match self.source.position() {
                Ok(position) => {
                    let caught_up = json!({ "position": S::id(position), "caught_up": true });
                    Some(Sent::new(position, "heartbeat", caught_up.to_string()))
                }
                Err(_) => None,
            },
        }
    }

    /// The last event of this stream.
    fn last(&mut self, kind: &'static str, data: serde_json::Value) -> Sent {
        self.ended = true;
        Sent::new(self.reached, kind, data.to_string())
    }
}
