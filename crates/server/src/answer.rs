//! The body of an answer, which holds the permits of its request until it is written.
//!
//! Keeps: a large body is sent in pieces, so that the unwritten rest is counted here and not hidden in a buffer.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::guarded::InRequest;
use crate::load::Permit;

/// The size of a piece.
const PIECE_BYTES: usize = 16 << 10;

/// A body that holds the permits of its request.
pub(crate) struct Answer {
    body: Body,
    /// The part that came from the body but was not sent.
    rest: Bytes,
    _held: (InRequest, Vec<Permit>),
}

impl Answer {
    /// A body that holds permits.
    pub(crate) fn new(body: Body, in_request: InRequest, permits: Vec<Permit>) -> Self {
        Self { body, rest: Bytes::new(), _held: (in_request, permits) }
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
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
        self.rest.is_empty() && self.body.is_end_stream()
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
