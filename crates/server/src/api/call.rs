//! A call in general: the request, the answer, why not, and what the requests of several contracts have in common.

use std::time::Duration;

use axum::body::Bytes;
use contract::{Expected, RefusalReason, Rejection};
use wire::values::DurationText;

use super::refusal::Refusal;
use super::scope::RequestScope;
use crate::Server;
use crate::page_memory::PagePermit;

/// A decoded request.
pub(crate) struct Call<Q, B> {
    /// Its scope.
    pub(crate) scope: RequestScope,
    /// The name in the path; empty if there is none.
    pub(crate) name: String,
    /// What the path has for the parameters behind the name: bytes that need not be text.
    pub(crate) rest: Vec<Vec<u8>>,
    /// Its query.
    pub(crate) query: Q,
    /// Its body.
    pub(crate) body: B,
    /// Its precondition.
    pub(crate) expected: Option<Expected>,
    /// The idempotency key of an append.
    pub(crate) key: Option<String>,
    /// How long to wait if there is nothing to return; zero for no wait.
    pub(crate) wait: Duration,
    /// Whether to answer with a stream.
    pub(crate) stream: bool,
    /// Where a stream resumes.
    pub(crate) last_event: Option<String>,
    /// The media types that the caller accepts.
    pub(crate) takes: Option<String>,
}

/// Bytes that only a user's machine reads or writes.
pub(crate) struct RawBytes(pub(crate) Bytes);

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply<A> {
    pub(crate) body: A,
    /// The version of the thing read or written.
    pub(crate) version: Option<u64>,
    /// Whether this call created it.
    pub(crate) created: bool,
    /// Whether the answer was stored by an earlier sending of the request.
    pub(crate) replayed: bool,
    /// The memory of a page, held until it is written.
    pub(crate) page: Option<PagePermit>,
}

impl<A> Reply<A> {
    pub(crate) fn new(body: A) -> Self {
        Self { body, version: None, created: false, replayed: false, page: None }
    }

    /// A page with its reserved memory.
    pub(crate) fn page(body: A, memory: PagePermit) -> Self {
        Self { page: Some(memory), ..Self::new(body) }
    }

    pub(crate) fn version(mut self, version: u64) -> Self {
        self.version = Some(version);
        self
    }

    pub(crate) fn created(mut self, created: bool) -> Self {
        self.created = created;
        self
    }

    pub(crate) fn replayed(mut self, replayed: bool) -> Self {
        self.replayed = replayed;
        self
    }
}

/// The result of a call.
pub(crate) type Answered<A> = Result<Reply<A>, Refusal>;

impl Server {
    /// Refuses what would send messages to a broker, if there is none: they would wait forever.
    pub(crate) fn expect_broker(&self, what: impl FnOnce() -> String) -> Result<(), Refusal> {
        match self.house.has_broker() {
            true => Ok(()),
            false => {
                let reason = RefusalReason::NoBroker;
                Err(Refusal::Store(Rejection::InvalidDeclaration { what: what(), reason }.into()))
            }
        }
    }
}

/// The number of rows in a page. An empty page would read as the end of the list.
pub(crate) fn page_limit(asked: Option<u64>, default: usize) -> Result<usize, Refusal> {
    refuse_zero("limit", asked)?;
    Ok(asked.map_or(default, |asked| usize::try_from(asked).unwrap_or(usize::MAX)))
}

/// Asking for nothing is a mistake.
pub(crate) fn refuse_zero(member: &'static str, asked: Option<u64>) -> Result<(), Refusal> {
    match asked {
        Some(0) => Err(Refusal::invalid(member, format!("{member} is 0; ask for at least 1"))),
        _ => Ok(()),
    }
}

/// A stream has no pages, so it refuses the size of one.
pub(crate) fn refuse_limit_of_stream(asked: Option<u64>) -> Result<(), Refusal> {
    match asked {
        None => Ok(()),
        Some(_) => {
            Err(Refusal::invalid("limit", "limit is the size of a page, but a stream has no pages; leave it out"))
        }
    }
}

/// A duration under its own name, or in ms under the name that answers use.
pub(crate) fn duration_or_ms(
    shown: &'static str,
    said: Option<DurationText>,
    ms: Option<u64>,
) -> Result<Option<Duration>, Refusal> {
    match (said, ms) {
        (Some(_), Some(_)) => Err(Refusal::invalid(shown, format!("{shown} repeats its other form: send one of them"))),
        (said, ms) => Ok(said.map(|said| said.0).or(ms.map(Duration::from_millis))),
    }
}
