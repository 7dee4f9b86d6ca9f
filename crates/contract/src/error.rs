//! Errors of a call: a rejection is an answer, a failure comes from the environment.
//!
//! A rejection depends on the data only and is the same on every replica; it carries what the caller needs next. A
//! failure says whether a retry can help and whether the write may have been applied.

pub use crate::failure::{Failure, FailureKind, Outcome};
pub use crate::rejection::Rejection;

/// Why a call did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The answer is no, and nothing was changed.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The environment failed this call.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl Error {
    /// The stable code that documentation and logs use.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Rejected(rejection) => rejection.code(),
            Error::Failed(failure) => failure.kind.code(),
        }
    }

    /// Whether the same call may succeed later.
    pub fn retryable(&self) -> bool {
        match self {
            Error::Rejected(rejection) => rejection.retryable(),
            Error::Failed(failure) => matches!(failure.kind, FailureKind::Busy | FailureKind::DiskLow),
        }
    }

    /// Whether the write may have been applied.
    pub fn outcome(&self) -> Outcome {
        match self {
            Error::Rejected(_) => Outcome::NotApplied,
            Error::Failed(failure) => failure.outcome,
        }
    }
}
