//! Why a call did not succeed. `problem.rs` says how that looks over HTTP.

use contract::{Error, Outcome};
use serde_json::Value as JsonValue;

/// Why a call did not succeed.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The store rejected it, or failed.
    Store(Error),
    /// The store rejected it, because the precondition failed.
    Unexpected(Error),
    /// There is nothing with this name.
    NotFound { what: &'static str, name: String },
    /// What the request shows is of another history of the store.
    OtherHistory { member: &'static str, meant: u64, is: u64 },
    /// For a reason that only one contract has.
    Own(Box<OwnRefusal>),
    /// The call was refused when it had done something already: the text says what, and a member with this name is true.
    Halfway { refusal: Box<Refusal>, says: &'static str, member: &'static str },
    /// The request contradicts itself.
    Invalid { member: Option<&'static str>, detail: String },
    /// A bug in the server.
    Internal(&'static str),
    /// There is not enough memory for the answer.
    NoMemory { max: usize, bytes: usize },
}

impl Refusal {
    /// The request contradicts itself in one member.
    pub(crate) fn invalid(member: &'static str, detail: impl Into<String>) -> Self {
        Refusal::Invalid { member: Some(member), detail: detail.into() }
    }

    pub(crate) fn not_found(what: &'static str, name: impl Into<String>) -> Self {
        Refusal::NotFound { what, name: name.into() }
    }
}

/// A refusal for a reason that only one contract has, made in its folder. Nothing was done, and no retry helps, unless it says so.
#[derive(Debug)]
pub(crate) struct OwnRefusal {
    pub(crate) kind: RefusalKind,
    pub(crate) code: &'static str,
    pub(crate) detail: String,
    pub(crate) retryable: bool,
    pub(crate) outcome: Outcome,
    /// What programs read of it.
    pub(crate) members: Vec<(&'static str, JsonValue)>,
}

/// What kind of "no" it is, where the store was not asked; `contract::facts` has those of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalKind {
    /// What it is about does not exist.
    NotFound,
    /// What it is about is gone for good.
    Gone,
    /// This server does not do it.
    NotOffered,
    /// What the server needs for it fails.
    Unavailable,
}

impl OwnRefusal {
    pub(crate) fn new(kind: RefusalKind, code: &'static str, detail: impl Into<String>) -> Self {
        let (detail, members) = (detail.into(), Vec::new());
        Self { kind, code, detail, retryable: false, outcome: Outcome::NotApplied, members }
    }

    pub(crate) fn member(mut self, name: &'static str, value: impl Into<JsonValue>) -> Self {
        self.members.push((name, value.into()));
        self
    }

    pub(crate) fn retryable(mut self, retryable: bool) -> Self {
        self.retryable = retryable;
        self
    }

    pub(crate) fn outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = outcome;
        self
    }
}

impl From<OwnRefusal> for Refusal {
    fn from(refusal: OwnRefusal) -> Self {
        Refusal::Own(Box::new(refusal))
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::Store(error)
    }
}
