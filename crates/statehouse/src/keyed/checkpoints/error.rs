//! Why a checkpoint was not taken, or not restored.

use std::io;

use contract::{Error, KeyedRejection, Outcome, Rejection};
use node::error::stopped;
use objects::ObjectsError;
use session::Halt;

/// Why a checkpoint was not taken, or not restored. The running state is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The store refused or failed, or a checkpoint is missing or damaged.
    #[error(transparent)]
    Store(#[from] Error),
    /// The place of the checkpoints refused or failed.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
}

impl CheckpointError {
    /// The stable code, if the store or a checkpoint is the reason.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            CheckpointError::Store(error) => Some(error.code()),
            CheckpointError::Objects(_) => None,
        }
    }

    /// Whether the same call may succeed later.
    pub fn retryable(&self) -> bool {
        match self {
            CheckpointError::Store(error) => error.retryable(),
            CheckpointError::Objects(error) => !matches!(
                error,
                ObjectsError::Target { .. }
                    | ObjectsError::Name { .. }
                    | ObjectsError::TooLarge { .. }
                    | ObjectsError::Replaces { .. }
            ),
        }
    }

    /// Whether what failed may have been done all the same.
    pub fn outcome(&self) -> Outcome {
        match self {
            CheckpointError::Store(error) => error.outcome(),
            CheckpointError::Objects(ObjectsError::Unknown { .. }) => Outcome::Unknown,
            CheckpointError::Objects(_) => Outcome::NotApplied,
        }
    }

    pub(super) fn damaged(object: &str, what: impl Into<String>) -> Self {
        KeyedRejection::CheckpointDamaged { object: object.to_owned(), what: what.into() }.into()
    }

    /// An error of reading: an object that ends early is damaged, everything else is the environment.
    pub(super) fn reading(object: &str, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::damaged(object, "it was cut short"),
            _ => error.into(),
        }
    }
}

/// An error of reading or writing an object.
impl From<io::Error> for CheckpointError {
    fn from(error: io::Error) -> Self {
        match ObjectsError::from_io(&error) {
            Some(objects) => CheckpointError::Objects(objects.clone()),
            None => CheckpointError::Store(stopped(error.to_string())),
        }
    }
}

impl From<Halt> for CheckpointError {
    fn from(halt: Halt) -> Self {
        CheckpointError::Store(node::error::from_halt(&halt))
    }
}

impl From<KeyedRejection> for CheckpointError {
    fn from(rejection: KeyedRejection) -> Self {
        CheckpointError::Store(Rejection::from(rejection).into())
    }
}
