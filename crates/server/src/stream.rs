//! Server-sent events: what follows a position, as it comes, with an id that a client can come back with.
//!
//! - Every event has `id:`, the position behind it. `Last-Event-ID` goes on there: nothing is missed. Of a commit that
//!   was cut in the middle all changes come again.
//! - A `heartbeat` with the position comes every five seconds in which nothing else does, so silence means trouble.
//! - A client that has not taken an event for [`LAGGED_AFTER`] gets `lagged`, with where to go on, and the stream ends.
//!
//! Keeps: nothing is read ahead of the client but a few small events or a large one, and the large ones of all streams
//! together have a bound: a slow client costs no more than a fast one, and a thousand of them no more than that.

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
use crate::api::Reply;
use crate::load::{Load, Permit};

/// How long nothing comes before a heartbeat does.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(5);

/// An event of no more bytes goes into the buffers of its connection.
const SMALL_BYTES: usize = 4 << 10;

/// How long a large event waits before it looks again whether there is memory for it.
const MEMORY_PAUSE: Duration = Duration::from_millis(20);

/// How long a client may leave an event where it is.
pub const LAGGED_AFTER: Duration = Duration::from_secs(5);

/// One event of a stream.
pub(crate) struct Sent {
    id: u64,
    kind: &'static str,
    data: String,
}

impl Sent {
    /// `id` is where a client goes on that has had this one.
    pub(crate) fn new(id: u64, kind: &'static str, data: String) -> Self {
        Self { id, kind, data }
    }

    /// The same, with its data as JSON.
    pub(crate) fn json(id: u64, kind: &'static str, data: &impl Serialize) -> Self {
        Self::new(id, kind, serde_json::to_string(data).expect("what is sent is JSON"))
    }

    fn event(&self, id: String) -> Event {
        // A line break in JSON can only stand between tokens, and would end the line of the stream.
        Event::default().id(id).event(self.kind).data(in_one_line(&self.data))
    }
}

/// What a stream sends.
pub(crate) trait Source: Send + 'static {
    /// The next events, as soon as there are any. Nothing is lost if it is dropped while it waits.
    fn next(&mut self) -> impl Future<Output = Result<Vec<Sent>, Error>> + Send;

    /// Where a client goes on that has had everything so far.
    fn position(&mut self) -> Result<u64, Error>;

    /// A position as clients keep it.
    fn id(position: u64) -> String {
        position.to_string()
    }
}

/// What follows something: a page of it, or a stream.
pub(crate) enum Followed<A> {
    /// What there is.
    Page(Reply<A>),
    /// As it comes.
    Stream(EventStream),
}

/// A stream of events that is ready to be sent.
pub(crate) struct EventStream(Response);

impl IntoResponse for EventStream {
    fn into_response(self) -> Response {
        self.0
    }
}

struct State<S> {
    source: S,
    waiting: VecDeque<Sent>,
    /// When the last event was given to the connection.
    given: Option<Instant>,
    /// Where a client goes on that has had it.
    reached: u64,
    stopping: CancellationToken,
    /// Nothing comes behind a last event.
    ended: bool,
    load: Arc<Load>,
    /// The memory of the event that was given last, if that is large.
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
            ended: false,
            load: self.load.clone(),
            large: None,
        };
        let events = unfold(state, |mut state| async move {
            // Who asks for the next has taken the one before.
            state.large = None;
            let sent = state.next().await?;
            state.take_memory(sent.data.len()).await;
            state.reached = sent.id;
            state.given = Some(Instant::now());
            Some((Ok::<_, Infallible>(sent.event(S::id(sent.id))), state))
        });
        Ok(EventStream(Sse::new(events).into_response()))
    }

    /// What a call gives that waits for something, or none if it does not come in time, or the server is to stop.
    pub(crate) async fn in_time<T>(&self, wait: Duration, call: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            given = call => Some(given),
            () = tokio::time::sleep(wait) => None,
            () = self.stopping.cancelled() => None,
        }
    }
}

impl<S: Source> State<S> {
    /// Waits until there is memory for a large event.
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
