//! Server-sent events as they arrive over one connection.

use std::io;
use std::time::Duration;

use client::events::{Event, EventParser};
use client::transport::AnswerBody;
use http_body_util::BodyExt;

use super::client::{ANSWER_MAX, block_on};
use super::message::Response;

/// A stream of events on its own connection; it ends with the connection.
pub struct Events {
    head: Response,
    body: Option<AnswerBody>,
    parser: EventParser,
    wait: Duration,
}

impl Events {
    pub(super) fn new(head: Response, body: AnswerBody) -> Self {
        Self { head, body: Some(body), parser: EventParser::default(), wait: ANSWER_MAX }
    }

    pub(super) fn refused(head: Response) -> Self {
        Self { head, body: None, parser: EventParser::default(), wait: ANSWER_MAX }
    }

    /// The head of the response, with its body if it is a refusal.
    pub fn head(&self) -> &Response {
        &self.head
    }

    /// How long [`next`](Self::next) waits; longer than that is an error.
    pub fn set_wait(&mut self, wait: Duration) {
        self.wait = wait;
    }

    /// The next event; none once the server has ended the stream.
    #[allow(clippy::should_implement_trait, reason = "it may fail, and waits")]
    pub fn next(&mut self) -> io::Result<Option<Event>> {
        block_on(async {
            let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no event in time");
            tokio::time::timeout(self.wait, self.read()).await.map_err(late)?
        })
    }

    async fn read(&mut self) -> io::Result<Option<Event>> {
        loop {
            if let Some(event) = self.parser.next() {
                return Ok(Some(event));
            }
            let Some(body) = &mut self.body else {
                return Ok(None);
            };
            match body.frame().await {
                None => self.body = None,
                Some(frame) => {
                    if let Ok(bytes) = frame.map_err(io::Error::other)?.into_data() {
                        self.parser.push(&bytes).map_err(io::Error::other)?;
                    }
                }
            }
        }
    }
}
