//! A future answer: a thread can block on it, a task can await it.
//!
//! Keeps: an answer is delivered once, and only after it is durable and visible to reads (J1).

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use contract::limits::SESSION_COMMIT_MAX;
use contract::{Error, Failure, FailureKind, Rejection, SessionRejection};
use kernel::{Answer, Catalogue};
use session::{Halt, Reply as SessionReply, SessionAnswer};
use waiting::Slot;

use crate::error::{from_halt, unexpected_answer};
use crate::sessions::requests::Request;
use crate::shared::Shared;

/// The output of the apply loop: the bytes of a reply, decoded by the waiter, or why there is none.
pub(crate) type Reply = Result<Vec<u8>, Error>;

/// A future answer. Dropping it does not cancel the command.
#[must_use = "a command is answered only to whoever waits"]
pub struct Pending<T> {
    state: State<T>,
    result: PhantomData<fn() -> T>,
}

enum State<T> {
    Waiting { slot: Arc<Slot<Reply>>, decode: Decode<T>, request: Option<Request> },
    Refused(Option<Error>),
}

/// How to decode an answer.
pub enum Decode<T> {
    /// As one of the contracts.
    Contracts(fn(Answer) -> Result<T, Error>),
    /// An answer of the contracts, with the catalogue published when it is decoded.
    WithCatalogue(Arc<Shared>, DecodeWithCatalogue<T>),
    /// As one of the commands of sessions.
    Sessions(DecodeSessions<T>),
    /// Like `WithCatalogue`; none says that the command stopped half-way, and must be proposed again.
    InSteps(Arc<Shared>, DecodeWithCatalogue<Option<T>>, Again<T>),
}

/// Decodes an answer of the contracts with a catalogue.
pub type DecodeWithCatalogue<T> = Box<dyn Fn(Answer, &Catalogue) -> Result<T, Error> + Send + Sync>;

/// Decodes an answer of the sessions.
pub type DecodeSessions<T> = Box<dyn Fn(SessionAnswer) -> Result<T, Error> + Send + Sync>;

/// Proposes a command again.
pub(crate) type Again<T> = Box<dyn Fn() -> Pending<T> + Send + Sync>;

impl<T> Pending<T> {
    pub(crate) fn waiting(slot: Arc<Slot<Reply>>, decode: Decode<T>) -> Self {
        Self { state: State::Waiting { slot, decode, request: None }, result: PhantomData }
    }

    /// The same answer; for a request of a session, the session waits for it as long as this exists.
    pub fn of_request(mut self, of: Option<Request>) -> Self {
        if let State::Waiting { request, .. } = &mut self.state {
            *request = of;
        }
        self
    }

    /// An answer that is there already: the command was not proposed.
    pub fn refused(error: impl Into<Error>) -> Self {
        Self { state: State::Refused(Some(error.into())), result: PhantomData }
    }

    /// Blocks until the answer arrives.
    pub fn wait(self) -> Result<T, Error> {
        let mut state = self.state;
        loop {
            match state {
                State::Refused(error) => return Err(error.expect("a refusal is taken once")),
                State::Waiting { slot, decode, request } => match decode.read(&slot.wait()?, request.as_ref())? {
                    Read::Whole(answer) => return Ok(answer),
                    Read::Continued(pending) => state = pending.state,
                },
            }
        }
    }
}

/// An answer that was read.
enum Read<T> {
    Whole(T),
    /// The command goes on, and its answer comes later.
    Continued(Pending<T>),
}

impl<T> Future for Pending<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match &mut self.state {
                State::Refused(error) => {
                    return Poll::Ready(Err(error.take().expect("not polled again after it was ready")));
                }
                State::Waiting { slot, decode, request } => {
                    let Some(reply) = slot.poll(context.waker()) else {
                        return Poll::Pending;
                    };
                    match reply.and_then(|reply| decode.read(&reply, request.as_ref())) {
                        Ok(Read::Whole(answer)) => return Poll::Ready(Ok(answer)),
                        Ok(Read::Continued(pending)) => self.state = pending.state,
                        Err(error) => return Poll::Ready(Err(error)),
                    }
                }
            }
        }
    }
}

impl<T> Decode<T> {
    /// Reads a reply.
    fn read(&self, reply: &[u8], request: Option<&Request>) -> Result<Read<T>, Error> {
        let undecodable = |error| from_halt(&Halt::Undecodable { what: "an answer", error });
        let answer = match SessionReply::decode(reply).map_err(undecodable)? {
            SessionReply::Answer(answer) => answer,
            SessionReply::Stored(answer) => {
                request.inspect(|request| request.was_replayed());
                answer
            }
            SessionReply::SessionExpired => return Err(Rejection::Session(SessionRejection::Expired).into()),
            SessionReply::Evicted { floor } => {
                let request = request.map_or(0, |request| request.number);
                return Err(Rejection::Session(SessionRejection::Evicted { request, floor }).into());
            }
            SessionReply::Busy { bound, max } => {
                return Err(Rejection::Session(SessionRejection::Busy { limit: bound.name(), max }).into());
            }
            SessionReply::Damaged { from, to } => {
                return Err(Rejection::Damaged { from: from.to_owned(), to: to.to_owned() }.into());
            }
            SessionReply::Reused => {
                let request = request.map_or(0, |request| request.number);
                return Err(Rejection::Session(SessionRejection::RequestReused { request }).into());
            }
            SessionReply::NumbersExhausted { commit: got } => {
                let (limit, max) = ("session_commit_max", SESSION_COMMIT_MAX);
                return Err(Rejection::LimitExceeded { limit, max, got }.into());
            }
            other => return Err(unexpected_answer("a command", &other)),
        };
        let whole = match self {
            Decode::Contracts(decode) => decode(Answer::decode(answer).map_err(undecodable)?)?,
            Decode::WithCatalogue(shared, decode) => {
                let answer = Answer::decode(answer).map_err(undecodable)?;
                decode(answer, &shared.catalogue())?
            }
            Decode::Sessions(decode) => decode(SessionAnswer::decode(answer).map_err(undecodable)?)?,
            Decode::InSteps(shared, decode, again) => {
                let answer = Answer::decode(answer).map_err(undecodable)?;
                match decode(answer, &shared.catalogue())? {
                    Some(whole) => whole,
                    None => return Ok(Read::Continued(again())),
                }
            }
        };
        Ok(Read::Whole(whole))
    }
}

/// Delivers the answer of one command; dropped without one, it reports that the outcome is unknown.
pub(crate) struct Responder(Option<Arc<Slot<Reply>>>);

impl Responder {
    pub(crate) fn new() -> (Self, Arc<Slot<Reply>>) {
        let slot = Arc::new(Slot::default());
        (Self(Some(slot.clone())), slot)
    }

    pub(crate) fn give(mut self, reply: Reply) {
        if let Some(slot) = self.0.take() {
            slot.give(reply);
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if let Some(slot) = self.0.take() {
            let failure = Failure::unknown(FailureKind::Stopped, "the store stopped before the command was answered");
            slot.give(Err(failure.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn done() -> Answer {
        Answer::Done { commit: 1, outcomes: Vec::new() }
    }

    /// The reply with that answer: its kind, then the answer.
    fn done_reply() -> Vec<u8> {
        [vec![0], done().encode()].concat()
    }

    #[test]
    fn an_answer_reaches_a_thread_that_waits_before_or_after() {
        for wait_first in [true, false] {
            let (responder, slot) = Responder::new();
            let pending = Pending::waiting(slot, Decode::Contracts(Ok));
            let waiter = std::thread::spawn(move || {
                if !wait_first {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                pending.wait()
            });
            if wait_first {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            responder.give(Ok(done_reply()));
            assert_eq!(waiter.join().expect("no panic"), Ok(done()));
        }
    }

    #[test]
    fn a_dropped_responder_answers_that_the_outcome_is_unknown() {
        let (responder, slot) = Responder::new();
        drop(responder);
        let error = Pending::waiting(slot, Decode::Contracts(Ok)).wait().expect_err("no answer");
        assert_eq!(error.outcome(), contract::Outcome::Unknown);
    }

    #[test]
    fn a_session_without_a_number_is_refused_by_the_name_of_the_limit() {
        let (responder, slot) = Responder::new();
        let commit = SESSION_COMMIT_MAX + 1;
        responder.give(Ok([vec![7], commit.to_le_bytes().to_vec()].concat()));
        let refused = Pending::waiting(slot, Decode::Sessions(Box::new(Ok))).wait();
        let limit = Rejection::LimitExceeded { limit: "session_commit_max", max: SESSION_COMMIT_MAX, got: commit };
        assert_eq!(refused, Err(limit.into()));
    }

    #[test]
    fn an_awaited_answer_wakes_its_task() {
        let (responder, slot) = Responder::new();
        let mut pending = Pending::waiting(slot, Decode::Contracts(Ok));
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut pending).poll(&mut context).is_pending());
        responder.give(Ok(done_reply()));
        assert_eq!(Pin::new(&mut pending).poll(&mut context), Poll::Ready(Ok(done())));
    }
}
