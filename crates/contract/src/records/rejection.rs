//! Why a call on a record is refused.

use super::types::GONE;
use crate::facts::{Class, Facts, Members, members};
use crate::guards::{OWNER_RECORD, THE_GROUP};
use crate::reason::{RefusalReason, WantedKind};
use crate::rejection::{held_until, state};
use crate::value::Value;

/// A deterministic "no" about a record. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordRejection {
    /// There is no such record, or it has expired.
    #[error("there is no record {record:?} [SH-1013]")]
    NoSuchRecord {
        /// Its name.
        record: String,
    },
    /// There is no such record type, or the record has none.
    #[error("{name:?} is not a record type of this space, or the record has no type [SH-1014]")]
    NoSuchType {
        /// The type's name, or the record's.
        name: String,
    },
    /// The state of a record does not allow this.
    #[error("{} is {state}: {reason} [SH-1015]", shown(.record))]
    WrongState {
        /// The record.
        record: String,
        /// Its state.
        state: String,
        /// Why it does not allow it.
        reason: RefusalReason,
    },
    /// The field does not hold the kind of value this needs.
    #[error("field {field:?} of record {record:?} does not hold {wanted} [SH-1016]")]
    WrongKind {
        /// The record.
        record: String,
        /// The field.
        field: String,
        /// The required kind.
        wanted: WantedKind,
    },
    /// A record is not as the caller expected it.
    #[error("record {record:?} is not as expected: it {} [SH-1017]", state(.current))]
    Conflict {
        /// The record that differs.
        record: String,
        /// Its version now, or none if it does not exist.
        current: Option<u64>,
    },
    /// A field is not as the caller expected it.
    #[error("field {field:?} of record {record:?} is not as expected [SH-1019]")]
    FieldConflict {
        /// The record.
        record: String,
        /// The field.
        field: String,
        /// Its current value, or none if it or its record does not exist.
        current: Option<Value>,
    },
    /// Another attempt holds the record. It can be claimed when that is over.
    #[error("{} cannot be claimed yet: attempt {attempt} is {} [SH-1021]", shown(.record), held_until(.holder, *.until_ms))]
    Held {
        /// The record.
        record: String,
        /// The attempt that holds it.
        attempt: u64,
        /// The worker that holds it, if it gave its name.
        holder: Option<String>,
        /// The end of its lease, ms since 1970.
        until_ms: u64,
    },
    /// The attempt is over: the record was finished, released or rescued, or is held by another attempt. Stop working on it.
    #[error("{}{} [SH-4002]", fenced(.record, *.given, *.attempt, .state), held_by(.holder))]
    Fenced {
        /// The record.
        record: String,
        /// The attempt of the refused write.
        given: u64,
        /// The record's current attempt.
        attempt: u64,
        /// Its current state.
        state: String,
        /// The worker that holds it, if it is held and the worker gave its name.
        holder: Option<String>,
    },
}

impl RecordRejection {
    /// The code of a record that does not exist.
    pub const NO_SUCH_THING: Option<&'static str> = Some("SH-1013");

    /// What everybody must know of it.
    pub fn facts(&self) -> Facts {
        match self {
            Self::Conflict { .. } => Facts::retryable("SH-1017", Class::Conflict),
            Self::FieldConflict { .. } => Facts::retryable("SH-1019", Class::Conflict),
            Self::Held { .. } => Facts::retryable("SH-1021", Class::Conflict),
            Self::Fenced { .. } => Facts::of("SH-4002", Class::Conflict),
            Self::WrongState { .. } => Facts::of("SH-1015", Class::Conflict),
            Self::WrongKind { .. } => Facts::of("SH-1016", Class::Invalid),
            Self::NoSuchRecord { .. } => Facts::of("SH-1013", Class::NotFound),
            Self::NoSuchType { .. } => Facts::of("SH-1014", Class::NotFound),
        }
    }

    /// What a caller needs next, as members of JSON.
    pub fn members(&self) -> Members {
        match self {
            Self::Conflict { record, current } => members!["record" => record, "current_version" => current],
            Self::FieldConflict { record, field, current } => {
                members!["record" => record, "field" => field, "absent" => current.is_none(), "current" => current]
            }
            Self::Fenced { record, given, attempt, state, holder } => {
                members!["record" => record, "given" => given, "attempt" => attempt, "state" => state, "holder" => holder]
            }
            Self::Held { record, attempt, holder, until_ms } => {
                members!["record" => record, "attempt" => attempt, "holder" => holder, "until" => until_ms]
            }
            Self::WrongState { record, state, reason } => {
                members!["record" => record, "state" => state, "reason" => reason.text()]
            }
            Self::WrongKind { record, field, wanted } => {
                members!["record" => record, "field" => field, "wanted" => wanted.text()]
            }
            Self::NoSuchRecord { record } => members!["record" => record],
            Self::NoSuchType { name } => members!["name" => name],
        }
    }
}

/// Why an attempt is refused. A record that is not there was deleted, or the request looks for it in the wrong group.
fn fenced(record: &str, given: u64, attempt: u64, state: &str) -> String {
    match state {
        GONE => format!(
            "attempt {given} holds nothing: there is no record {record:?} here; it was deleted, or is in a group"
        ),
        _ => format!("attempt {given} of {} is over: it is {state} at attempt {attempt}", shown(record)),
    }
}

/// A record, for people; the one that owns a group means the group to them.
fn shown(record: &str) -> String {
    if record == OWNER_RECORD { THE_GROUP.to_owned() } else { format!("record {record:?}") }
}

fn held_by(holder: &Option<String>) -> String {
    holder.as_ref().map_or(String::new(), |holder| format!(", held by {holder:?}"))
}
