//! Streams of server-sent events, resumed after the last one when the connection or the server fails.
//!
//! Keeps: every event is delivered once and in order; the caller gets a `gap` for events that the store no longer keeps.

use std::time::Duration;

use contract::Outcome;
use http_body_util::BodyExt;

use crate::call::Call;
use crate::error::Error;
use crate::retry::pause;
use crate::transport::AnswerBody;

/// A server sends something every five seconds; one that is silent for this long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(20);
/// Limit of one event in bytes. An event of a run can be as large as a value.
const EVENT_BYTES_MAX: usize = 16 << 20;

/// Where a stream starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    /// Only new events.
    Now,
    /// After the event with this id.
    After(String),
}

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Its id, from which a stream can resume; empty if it has none.
    pub id: String,
    /// Its kind: `event`, `change`, `push` or `gap`.
    pub kind: String,
    /// Its data, in JSON.
    pub data: String,
}

/// Events as they arrive. It reconnects by itself; the errors that it returns are permanent.
pub struct EventStream {
    call: Call,
    resume: Resume,
    open: Option<Open>,
    failures: u32,
}

struct Open {
    body: AnswerBody,
    parser: EventParser,
}

impl EventStream {
    pub(crate) fn new(call: Call, resume: Resume) -> Self {
        Self { call: call.header("accept", "text/event-stream"), resume, open: None, failures: 0 }
    }

    /// The next event. Heartbeats are not returned, but advance the position from which the stream would resume.
    pub async fn next(&mut self) -> Result<Event, Error> {
        loop {
            match self.read().await {
                Ok(Some(event)) => return Ok(event),
                // The server ended the stream in good order, or the connection broke: resume after the last event.
                Ok(None) => self.open = None,
                Err(error) => {
                    self.open = None;
                    let passes = matches!(error, Error::NoAnswer { .. }) || error.retryable();
                    if !passes {
                        return Err(error);
                    }
                    self.failures += 1;
                    tracing::debug!(%error, failures = self.failures, "a stream broke off and is resumed");
                    tokio::time::sleep(pause(self.failures)).await;
                }
            }
        }
    }

    /// The id of the last event, to resume after it in another stream.
    pub fn position(&self) -> Option<&str> {
        match &self.resume {
            Resume::Now => None,
            Resume::After(id) => Some(id),
        }
    }

    /// The next event of the connection; none at its end.
    async fn read(&mut self) -> Result<Option<Event>, Error> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.connect().await?,
        };
        loop {
            while let Some(event) = open.parser.next() {
                self.failures = 0;
                if !event.id.is_empty() {
                    self.resume = Resume::After(event.id.clone());
                }
                match event.kind.as_str() {
                    "heartbeat" => {}
                    // The server stops or had to drop events: reconnect after the last one.
                    "stopping" | "lagged" => return Ok(None),
                    "error" => return Err(error_event(&event)),
                    _ => {
                        self.open = Some(open);
                        return Ok(Some(event));
                    }
                }
            }
            let broken = |cause: String| self.call.no_answer(cause, Outcome::NotApplied);
            let frame = tokio::time::timeout(SILENCE_MAX, open.body.frame()).await;
            match frame.map_err(|_| broken(format!("silent for {} s", SILENCE_MAX.as_secs())))? {
                None => return Ok(None),
                Some(Err(error)) => return Err(broken(error.to_string())),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        open.parser.push(&bytes)?;
                    }
                }
            }
        }
    }

    async fn connect(&mut self) -> Result<Open, Error> {
        let call = match &self.resume {
            Resume::Now => self.call.clone(),
            Resume::After(id) => self.call.clone().header("last-event-id", id),
        };
        let response = call.begin().await?;
        match response.status().is_success() {
            true => Ok(Open { body: response.into_body(), parser: EventParser::default() }),
            false => Err(call.refused_stream(response).await),
        }
    }
}

/// The problem that ended a stream.
fn error_event(event: &Event) -> Error {
    match crate::error::Refusal::read(200, &event.data.clone().into()) {
        Some(refusal) => Error::Refused(Box::new(refusal)),
        None => Error::Unreadable { cause: event.data.clone(), outcome: Outcome::NotApplied },
    }
}

/// Parses bytes into events, as the standard of server-sent events defines them, including heartbeats. For callers that
/// read a stream over a [`transport`](crate::transport) without an [`EventStream`].
#[derive(Default)]
pub struct EventParser {
    bytes: Vec<u8>,
    event: Event,
    has_data: bool,
    ready: std::collections::VecDeque<Event>,
}

impl EventParser {
    /// Takes the next bytes, split anywhere.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.bytes.extend_from_slice(bytes);
        let mut begin = 0;
        while let Some(length) = self.bytes[begin..].iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&self.bytes[begin..begin + length]).into_owned();
            begin += length + 1;
            self.line(line.strip_suffix('\r').unwrap_or(&line));
        }
        self.bytes.drain(..begin);
        match self.bytes.len() + self.event.data.len() > EVENT_BYTES_MAX {
            true => {
                let cause = format!("an event is larger than {EVENT_BYTES_MAX} bytes");
                Err(Error::Unreadable { cause, outcome: Outcome::NotApplied })
            }
            false => Ok(()),
        }
    }

    fn line(&mut self, line: &str) {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            if std::mem::take(&mut self.has_data) {
                self.ready.push_back(event);
            }
            return;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => self.event.id = value.to_owned(),
            "event" => self.event.kind = value.to_owned(),
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            _ => {}
        }
    }

    /// The next complete event.
    #[allow(clippy::should_implement_trait, reason = "more may come after none")]
    pub fn next(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_events_wherever_they_are_cut() {
        let text =
            "id: 1\nevent: event\ndata: {\"a\":\ndata: 1}\n\n: a comment\n\r\nid: 2\r\nevent: push\r\ndata:x\r\n\r\n";
        for cut in 0..text.len() {
            let mut parser = EventParser::default();
            parser.push(&text.as_bytes()[..cut]).expect("small");
            parser.push(&text.as_bytes()[cut..]).expect("small");
            let first = Event { id: "1".into(), kind: "event".into(), data: "{\"a\":\n1}".into() };
            let second = Event { id: "2".into(), kind: "push".into(), data: "x".into() };
            assert_eq!(
                (parser.next(), parser.next(), parser.next()),
                (Some(first), Some(second), None),
                "cut at {cut}"
            );
        }
    }
}
