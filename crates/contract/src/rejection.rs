//! A rejection: an answer "no" that depends on the data only. What is about one contract is nested, and lies with it.

use crate::access::AccessRejection;
use crate::error::Error;
use crate::facts::{Class, Facts, Members, members};
use crate::reason::RefusalReason;
use crate::sessions::SessionRejection;
use crate::with_contracts;

/// Generates [`Rejection`]: what belongs to no contract, and one variant for each.
macro_rules! rejection {
    ($($(#[doc = $says:literal])* $folder:ident: $thing:ident($rejection:ident))*) => {
        /// A deterministic "no". Nothing was changed.
        #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
        #[non_exhaustive]
        pub enum Rejection {
            /// The name is not allowed.
            #[error("{what} is not allowed: {reason} [SH-1001]")]
            InvalidName {
                /// The kind of name.
                what: &'static str,
                /// The rule it breaks.
                reason: &'static str,
            },
            /// A size exceeds a limit.
            #[error("{got} exceeds {limit} = {max} [SH-1002]")]
            LimitExceeded {
                /// The limit's name.
                limit: &'static str,
                /// The limit.
                max: u64,
                /// The requested size.
                got: u64,
            },
            /// A transaction named two groups.
            #[error(
                "a transaction can change one group only: this one is in {group:?}, not in {other:?}; use house.group(name) for things that must change together [SH-1004]"
            )]
            TwoGroups {
                /// The transaction's group.
                group: String,
                /// The other group.
                other: String,
            },
            /// There is no such space.
            #[error("there is no space {space:?} [SH-1005]")]
            NoSuchSpace {
                /// Its name or number.
                space: String,
            },
            /// There is no such branch, or it was deleted.
            #[error("there is no branch {branch:?} in this space [SH-1006]")]
            NoSuchBranch {
                /// Its name or number.
                branch: String,
            },
            /// The name is taken.
            #[error("{what} {name:?} already exists [SH-1007]")]
            AlreadyExists {
                /// The kind of thing.
                what: &'static str,
                /// Its name.
                name: String,
            },
            /// `main` cannot be deleted.
            #[error("the branch `main` cannot be deleted [SH-1008]")]
            MainBranch,
            /// The command was checked against a newer catalogue than this shard has.
            #[error("the shard's catalogue is at revision {have}, the command needs {needed}; try again [SH-1009]")]
            CatalogueBehind {
                /// The revision the command was checked against.
                needed: u64,
                /// The shard's revision.
                have: u64,
            },
            /// The group belongs to a shard that is elsewhere.
            #[error("bucket {bucket} of the group is not in this shard; look up its owner, and try again there [SH-1020]")]
            NotHere {
                /// The bucket.
                bucket: u16,
            },
            /// Only the attempt that holds it may write it, and the command does not carry that fence.
            #[error(
                "{what} {name:?} is guarded: a write must carry the fence of the attempt that holds it, {}; claim it first, or force the write [SH-4003]", holder_of(.holder, *.until_ms)
            )]
            Unfenced {
                /// The kind of thing: a group or a record.
                what: &'static str,
                /// Its name.
                name: String,
                /// The worker that holds it, if somebody does and gave a name.
                holder: Option<String>,
                /// Until when it is held, ms since 1970; none if nobody holds it.
                until_ms: Option<u64>,
            },
            /// There is no guard for exactly this prefix.
            #[error("there is no guard for groups that begin with {prefix:?} [SH-1022]")]
            NoSuchGuard {
                /// The prefix.
                prefix: String,
            },
            /// The group has no dead letter of this number: it was sent again or dropped, its time is over, or it never was.
            #[error("group {group:?} has no dead letter {number} [SH-1023]")]
            NoSuchDeadLetter {
                /// The group.
                group: String,
                /// The number.
                number: u64,
            },
            /// An interactive transaction took too long, or its store was closed under it.
            #[error("the transaction was lost: {reason}; start it again [SH-1011]")]
            TransactionLost {
                /// Why.
                reason: &'static str,
            },
            /// A transaction is already open, or none is.
            #[error("{reason} [SH-1012]")]
            TransactionState {
                /// What is wrong.
                reason: &'static str,
            },
            /// The stored bytes of a range of things are damaged. Everything else works.
            #[error(
                "stored bytes between {from} and {to} are damaged: what they held cannot be read or changed; nothing was changed [SH-2023]"
            )]
            Damaged {
                /// The first thing of the range, or the last one before it: kind, name and space.
                from: String,
                /// The last thing of the range.
                to: String,
            },
            /// The parts of a declaration contradict each other.
            #[error("{what} cannot be declared: {reason} [SH-1018]")]
            InvalidDeclaration {
                /// The declaration.
                what: String,
                /// The contradiction.
                reason: RefusalReason,
            },
            $(
                #[doc = concat!("Something about a thing of the contract [`", stringify!($folder), "`](crate::", stringify!($folder), ").")]
                #[error(transparent)]
                $thing(#[from] crate::$folder::$rejection),
            )*
            /// Something about a session.
            #[error(transparent)]
            Session(#[from] SessionRejection),
            /// Something about a principal or a token.
            #[error(transparent)]
            Access(#[from] AccessRejection),
        }

        $(
            impl From<crate::$folder::$rejection> for Error {
                fn from(rejection: crate::$folder::$rejection) -> Self {
                    Error::Rejected(rejection.into())
                }
            }
        )*

        impl Rejection {
            /// Whether a code says that a thing of some contract does not exist.
            pub fn is_no_such_thing(code: &str) -> bool {
                [$(crate::$folder::$rejection::NO_SUCH_THING),*].contains(&Some(code))
            }

            /// What everybody must know of it.
            pub fn facts(&self) -> Facts {
                match self {
                    Rejection::InvalidName { .. } => Facts::of("SH-1001", Class::Invalid),
                    Rejection::LimitExceeded { .. } => Facts::of("SH-1002", Class::TooLarge),
                    Rejection::TwoGroups { .. } => Facts::of("SH-1004", Class::Unprocessable),
                    Rejection::NoSuchSpace { .. } => Facts::of("SH-1005", Class::NotFound),
                    Rejection::NoSuchBranch { .. } => Facts::of("SH-1006", Class::NotFound),
                    Rejection::AlreadyExists { .. } => Facts::of("SH-1007", Class::Conflict),
                    Rejection::MainBranch => Facts::of("SH-1008", Class::Invalid),
                    Rejection::CatalogueBehind { .. } => Facts::retryable("SH-1009", Class::NotYet),
                    Rejection::NotHere { .. } => Facts::retryable("SH-1020", Class::NotYet),
                    Rejection::Unfenced { .. } => Facts::of("SH-4003", Class::Conflict),
                    Rejection::NoSuchGuard { .. } => Facts::of("SH-1022", Class::NotFound),
                    Rejection::NoSuchDeadLetter { .. } => Facts::of("SH-1023", Class::NotFound),
                    Rejection::TransactionLost { .. } => Facts::retryable("SH-1011", Class::Gone),
                    Rejection::TransactionState { .. } => Facts::of("SH-1012", Class::Conflict),
                    Rejection::InvalidDeclaration { .. } => Facts::of("SH-1018", Class::Invalid),
                    Rejection::Damaged { .. } => Facts::of("SH-2023", Class::Damaged),
                    $(Rejection::$thing(rejection) => rejection.facts(),)*
                    Rejection::Session(rejection) => rejection.facts(),
                    Rejection::Access(rejection) => rejection.facts(),
                }
            }

            /// What a caller needs next, as members of JSON: from the code and these, a client can reconstruct the exact rejection. A
            /// `null` version means that the thing does not exist.
            pub fn members(&self) -> Members {
                match self {
                    Rejection::InvalidName { what, reason } => members!["what" => what, "reason" => reason],
                    Rejection::LimitExceeded { limit, max, got } => members!["limit" => limit, "max" => max, "got" => got],
                    Rejection::TwoGroups { group, other } => members!["group" => group, "other" => other],
                    Rejection::NoSuchSpace { space } => members!["space" => space],
                    Rejection::NoSuchBranch { branch } => members!["branch" => branch],
                    Rejection::AlreadyExists { what, name } => members!["what" => what, "name" => name],
                    Rejection::MainBranch => members![],
                    Rejection::CatalogueBehind { needed, have } => members!["needed" => needed, "have" => have],
                    Rejection::NotHere { bucket } => members!["bucket" => bucket],
                    Rejection::Unfenced { what, name, holder, until_ms } => {
                        members!["what" => what, "name" => name, "holder" => holder, "until" => until_ms]
                    }
                    Rejection::NoSuchGuard { prefix } => members!["prefix" => prefix],
                    Rejection::NoSuchDeadLetter { group, number } => members!["group" => group, "number" => number],
                    Rejection::TransactionLost { reason } | Rejection::TransactionState { reason } => {
                        members!["reason" => reason]
                    }
                    Rejection::Damaged { from, to } => members!["from" => from, "to" => to],
                    Rejection::InvalidDeclaration { what, reason } => members!["what" => what, "reason" => reason.text()],
                    $(Rejection::$thing(rejection) => rejection.members(),)*
                    Rejection::Session(rejection) => rejection.members(),
                    Rejection::Access(rejection) => rejection.members(),
                }
            }
        }
    };
}

with_contracts!(rejection);

impl From<AccessRejection> for Error {
    fn from(rejection: AccessRejection) -> Self {
        Error::Rejected(rejection.into())
    }
}

impl From<SessionRejection> for Error {
    fn from(rejection: SessionRejection) -> Self {
        Error::Rejected(rejection.into())
    }
}

/// The state of a thing that is not as expected, by its version.
pub(crate) fn state(current: &Option<u64>) -> String {
    match current {
        Some(version) => format!("is at version {version}"),
        None => "does not exist".to_owned(),
    }
}

/// Who holds something that is guarded, if anybody does.
fn holder_of(holder: &Option<String>, until_ms: Option<u64>) -> String {
    match until_ms {
        Some(until_ms) => format!("which is {}", held_until(holder, until_ms)),
        None => "and nobody holds it".to_owned(),
    }
}

/// Who holds something, and until when.
pub(crate) fn held_until(holder: &Option<String>, until_ms: u64) -> String {
    let until = crate::time::iso(until_ms.saturating_mul(1_000));
    match holder {
        Some(holder) => format!("held by {holder:?} until {until}"),
        None => format!("held until {until}"),
    }
}

impl Rejection {
    /// A [`Rejection::LimitExceeded`].
    pub fn too_large(limit: &'static str, max: usize, got: usize) -> Self {
        Self::LimitExceeded { limit, max: max as u64, got: got as u64 }
    }

    /// Refuses a size above a limit.
    pub fn check_limit(limit: &'static str, max: usize, got: usize) -> Result<(), Self> {
        if got > max { Err(Self::too_large(limit, max, got)) } else { Ok(()) }
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        self.facts().code
    }

    /// Whether the same call, or the same transaction started again, may succeed later.
    pub fn retryable(&self) -> bool {
        self.facts().retryable
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CellRejection, KeyedRejection, RecordRejection, RunRejection};

    #[test]
    fn the_code_of_a_thing_that_does_not_exist_is_that_of_the_rejection() {
        let name = || "a".to_owned();
        let missing: [Rejection; 3] = [
            RecordRejection::NoSuchRecord { record: name() }.into(),
            RunRejection::NoSuchRun { run: name() }.into(),
            KeyedRejection::NoSuchMap { map: name() }.into(),
        ];
        assert!(missing.iter().all(|rejection| Rejection::is_no_such_thing(rejection.code())));
        let others: [Rejection; 3] = [
            CellRejection::Conflict { cell: name(), current: None }.into(),
            RecordRejection::NoSuchType { name: name() }.into(),
            Rejection::NoSuchSpace { space: name() },
        ];
        assert!(!others.iter().any(|rejection| Rejection::is_no_such_thing(rejection.code())));
    }
}
