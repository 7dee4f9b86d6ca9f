//! What each call does: from a request that is decoded to an answer that is to be encoded. One file for each contract.
//!
//! [`Call`]: what is asked, and where. [`Reply`]: what is answered. [`Refusal`]: why not.
//!
//! Keeps: nothing of its own; whatever is answered is what the contracts answer. Writes are awaited and reads of one thing
//! done at once; calls that read much run on threads that may wait.
//!
//! Never: knows of HTTP. Which headers and which status say all this is decided in `http`.

pub(crate) mod attempts;
pub(crate) mod catalogue;
pub(crate) mod cells;
pub(crate) mod changes;
pub(crate) mod claims;
pub(crate) mod machines;
pub(crate) mod record_forms;
pub(crate) mod records;
pub(crate) mod runs;
pub(crate) mod scope;
pub(crate) mod sessions;
pub(crate) mod state;
pub(crate) mod transactions;

use std::time::Duration;

use axum::body::Bytes;
use contract::{Error, Expected};

pub(crate) use scope::RequestScope;

use crate::page_memory::PagePermit;

/// What is asked.
pub(crate) struct Call<Q, B> {
    /// Where.
    pub(crate) scope: RequestScope,
    /// What the path names; empty if it names nothing.
    pub(crate) name: String,
    /// How.
    pub(crate) query: Q,
    /// With what.
    pub(crate) body: B,
    /// Only if this is the case.
    pub(crate) expected: Option<Expected>,
    /// What tells this append from others.
    pub(crate) key: Option<String>,
    /// How long to wait for something if there is nothing; zero is not at all.
    pub(crate) wait: Duration,
    /// Whether what is followed is to come as a stream.
    pub(crate) stream: bool,
    /// Where a stream goes on.
    pub(crate) last_event: Option<String>,
    /// Which forms of an answer the caller takes, as media types.
    pub(crate) takes: Option<String>,
}

/// Bytes that only a machine of a user's own reads or writes.
pub(crate) struct RawBytes(pub(crate) Bytes);

/// What is answered.
#[derive(Debug)]
pub(crate) struct Reply<A> {
    pub(crate) body: A,
    /// The version of what was read or written.
    pub(crate) version: Option<u64>,
    /// Whether it was made by this call.
    pub(crate) created: bool,
    /// Whether the answer was stored by an earlier sending of the request.
    pub(crate) replayed: bool,
    /// The memory of a page, which is held until it is written.
    pub(crate) page: Option<PagePermit>,
}

impl<A> Reply<A> {
    pub(crate) fn new(body: A) -> Self {
        Self { body, version: None, created: false, replayed: false, page: None }
    }

    /// A page, for which memory was taken.
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

/// What a call answers.
pub(crate) type Answered<A> = Result<Reply<A>, Refusal>;

/// Why a call did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The store says no, or fails.
    Store(Error),
    /// The store says no, because what the call expected is not the case.
    Unexpected(Error),
    /// There is nothing with this name.
    NotFound { what: &'static str, name: String },
    /// What a cell was then is not kept.
    HistoryGone { cell: String, oldest: u64 },
    /// What was asked cannot be meant.
    Invalid { member: Option<&'static str>, detail: String },
    /// A defect of the server.
    Internal(&'static str),
    /// There is no memory for so many bytes of an answer.
    NoMemory { max: usize, bytes: usize },
}

impl Refusal {
    /// What was asked cannot be meant, because of one member.
    pub(crate) fn invalid(member: &'static str, detail: impl Into<String>) -> Self {
        Refusal::Invalid { member: Some(member), detail: detail.into() }
    }

    pub(crate) fn not_found(what: &'static str, name: impl Into<String>) -> Self {
        Refusal::NotFound { what, name: name.into() }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::Store(error)
    }
}

/// How many rows a page has. A page of none would read as the end of the list.
pub(crate) fn page_limit(asked: Option<u64>, default: usize) -> Result<usize, Refusal> {
    match asked {
        None => Ok(default),
        Some(0) => Err(Refusal::invalid("limit", "limit is 0; ask for at least 1")),
        Some(asked) => Ok(usize::try_from(asked).unwrap_or(usize::MAX)),
    }
}

/// A stream has no pages, so it refuses the size of one.
pub(crate) fn refuse_limit_of_stream(asked: Option<u64>) -> Result<(), Refusal> {
    match asked {
        None => Ok(()),
        Some(_) => {
            Err(Refusal::invalid("limit", "limit is the size of a page, and a stream has no pages; leave it out"))
        }
    }
}
