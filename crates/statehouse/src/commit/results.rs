//! The results of a commit's operations.

use contract::{Error, Written};
use kernel::{Answer, OpOutcome};
use node::error::unexpected_answer;

use crate::with_contracts;

/// A committed transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Committed {
    /// Its commit number; for one that wrote nothing, that of the view it read.
    pub commit: u64,
}

/// Generates [`Done`]: what operations of any contract can result in, and what only one has.
macro_rules! done {
    ($($folder:ident: $kind:ident { $done:ident, $overview:ident })*) => {
        /// The result of one operation.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Done {
            /// The thing was written, or deleted, and has this version.
            Written {
                /// The version.
                version: u64,
            },
            /// There was nothing to delete.
            Nothing,
            /// The message or the push is on its way.
            Sent,
            $(
                #[doc = concat!("A result that only operations of the contract `", stringify!($folder), "` have.")]
                $kind(crate::$folder::$done),
            )*
        }

        impl Done {
            /// The version of the thing, if the operation has left one that has a version.
            pub fn version(&self) -> Option<u64> {
                match self {
                    Done::Written { version } => Some(*version),
                    Done::Nothing | Done::Sent => None,
                    $(Done::$kind(done) => done.version(),)*
                }
            }
        }

        fn of_contract(outcome: &OpOutcome) -> Option<Done> {
            $(if let Some(done) = crate::$folder::commit::done(outcome) {
                return Some(Done::$kind(done));
            })*
            None
        }
    };
}

with_contracts!(done);

/// The commit.
pub(crate) fn committed(answer: Answer) -> Result<Committed, Error> {
    match answer {
        Answer::Done { commit, .. } => Ok(Committed { commit }),
        Answer::Rejected(rejection) => Err(rejection.into()),
    }
}

pub(super) fn each(answer: Answer) -> Result<(Committed, Vec<Done>), Error> {
    match answer {
        Answer::Done { commit, outcomes } => {
            let done: Result<_, Error> = outcomes.into_iter().map(done).collect();
            Ok((Committed { commit }, done?))
        }
        Answer::Rejected(rejection) => Err(rejection.into()),
    }
}

fn done(outcome: OpOutcome) -> Result<Done, Error> {
    match outcome {
        OpOutcome::Written(version) => Ok(Done::Written { version }),
        OpOutcome::Nothing => Ok(Done::Nothing),
        OpOutcome::Sent => Ok(Done::Sent),
        other => of_contract(&other).ok_or_else(|| unexpected_answer("an operation of a commit", &other)),
    }
}

/// The commit and the outcome of the only operation.
pub(crate) fn outcome(answer: Answer) -> Result<(u64, OpOutcome), Error> {
    match answer {
        Answer::Rejected(rejection) => Err(rejection.into()),
        Answer::Done { commit, outcomes } => Ok((commit, only(outcomes)?)),
    }
}

/// The outcome of the only operation.
pub(crate) fn only(mut outcomes: Vec<OpOutcome>) -> Result<OpOutcome, Error> {
    match (outcomes.pop(), outcomes.is_empty()) {
        (Some(outcome), true) => Ok(outcome),
        other => Err(unexpected_answer("one operation", &other)),
    }
}

/// The commit and the version of what the only operation wrote.
pub(crate) fn written(answer: Answer) -> Result<Written, Error> {
    match outcome(answer)? {
        (commit, OpOutcome::Written(version)) => Ok(Written { version, commit }),
        other => Err(unexpected_answer("a write", &other)),
    }
}
