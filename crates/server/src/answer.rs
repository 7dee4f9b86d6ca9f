//! The body of an answer, which holds what its request counts for until it is written.
//!
//! Keeps: a large body is given out in pieces, so that what is not written yet is counted here and not in a buffer. A
//! stream of events ends with a word when the server stops.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::guarded::InRequest;
use crate::load::Permit;

/// How much of a body is given out at a time.
const PIECE_BYTES: usize = 16 << 10;

/// What a stream says last when the server stops.
const STREAM_END: &[u8] = b"event: end\ndata: {\"reason\":\"stopping\"}\n\n";

/// See the module.
pub(crate) struct Answer {
    body: Body,
    /// What came from the body and is not given out.
    rest: Bytes,
    stopping: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    ended: bool,
    _held: (InRequest, Option<Permit>),
}

impl Answer {
    /// A body that holds a permit.
    pub(crate) fn new(body: Body, in_request: InRequest, permit: Option<Permit>) -> Self {
        Self { body, rest: Bytes::new(), stopping: None, ended: false, _held: (in_request, permit) }
    }

    /// A stream, which ends when the server stops.
    pub(crate) fn until(mut self, stopping: WaitForCancellationFutureOwned) -> Self {
        self.stopping = Some(Box::pin(stopping));
        self
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        if self.rest.is_empty() {
            if let Some(stopping) = &mut self.stopping
                && stopping.as_mut().poll(context).is_ready()
            {
                self.ended = true;
                return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(STREAM_END)))));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => self.rest = bytes,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                other => return Poll::Ready(other),
            }
        }
        let length = self.rest.len().min(PIECE_BYTES);
        let piece = self.rest.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.ended || (self.rest.is_empty() && self.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let rest = self.rest.len() as u64;
        match hint.exact() {
            Some(exact) => SizeHint::with_exact(exact + rest),
            None => {
                hint.set_lower(hint.lower() + rest);
                hint
            }
        }
    }
}
