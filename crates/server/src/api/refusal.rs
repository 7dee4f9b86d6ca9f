//! Why a call did not succeed. `problem.rs` says how that looks over HTTP.

use contract::{Error, Outcome};

/// Why a call did not succeed.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The store rejected it, or failed.
    Store(Error),
    /// The store rejected it, because the precondition failed.
    Unexpected(Error),
    /// There is nothing with this name.
    NotFound { what: &'static str, name: String },
    /// There is nothing with this name where the request looks for it, which the members say.
    Missing { code: &'static str, detail: String, members: Vec<(&'static str, Option<String>)> },
    /// The past of a cell that is no longer kept.
    HistoryGone { cell: String, oldest: u64 },
    /// What the request shows is of another history of the store.
    OtherHistory { member: &'static str, meant: u64, is: u64 },
    /// The server was started without a place for checkpoints.
    NoCheckpoints,
    /// The place of the checkpoints refused or failed, and says why.
    CheckpointPlace { detail: String, retryable: bool, outcome: Outcome },
    /// A restore failed for this reason, after the partition was taken over.
    TakenOver(Box<Refusal>),
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

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::Store(error)
    }
}
