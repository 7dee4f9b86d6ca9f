//! Errors of a call: a rejection is an answer, a failure comes from the environment.
//!
//! A rejection depends on the data only and is the same on every replica; it carries what the caller needs next. A
//! failure says whether a retry can help and whether the write may have been applied.

use std::borrow::Cow;

pub use crate::failure::{Failure, FailureKind, Outcome};
use crate::reason::{RefusalReason, WantedKind};
use crate::records::types::GONE;
use crate::value::Value;

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
    /// A cell is not as the caller expected it.
    #[error("cell {cell:?} is not as expected: it {} [SH-1003]", state(.current))]
    Conflict {
        /// The cell that differs; for a range, one cell of it.
        cell: String,
        /// Its version now, or none if it does not exist.
        current: Option<u64>,
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
    /// The session is unknown: never opened here, closed or expired. The command was not executed.
    #[error("the session is unknown or has expired; the command was not executed [SH-5004]")]
    SessionExpired,
    /// The event is invalid in every store.
    #[error("invalid event: {what}: {reason} [SH-3001]")]
    InvalidEvent {
        /// The member.
        what: Cow<'static, str>,
        /// What is wrong with the member.
        reason: Cow<'static, str>,
    },
    /// There is no such run.
    #[error("there is no run {run:?} [SH-3002]")]
    NoSuchRun {
        /// Its name.
        run: String,
    },
    /// The run is not at the expected sequence.
    #[error("run {run:?} is at sequence {last}, not at {expected} [SH-3003]")]
    SequenceConflict {
        /// The run.
        run: String,
        /// The expected sequence.
        expected: u64,
        /// Its last sequence.
        last: u64,
    },
    /// The key or the id was used before, and the append asked to be refused in that case; or the id is that which the store
    /// gives to an event to come.
    #[error("this idempotency key or id belongs to event {seq} of run {run:?} [SH-3004]")]
    KeyReused {
        /// The run.
        run: String,
        /// The sequence of the event that has it, or will have it.
        seq: u64,
    },
    /// The run is closed to further events.
    #[error("run {run:?} is closed at sequence {last} [SH-3005]")]
    RunClosed {
        /// The run.
        run: String,
        /// Its last sequence.
        last: u64,
    },
    /// The run was deleted. Its name is never reused.
    #[error("run {run:?} was deleted at sequence {last}; its name is never reused [SH-3006]")]
    RunArchived {
        /// The run.
        run: String,
        /// Its last sequence.
        last: u64,
    },
    /// The client no longer waits for this request. It was not executed now; whether it was executed before is no
    /// longer known.
    #[error(
        "request {request} is below {floor}, the lowest the session still waits for; it was not executed now [SH-5003]"
    )]
    Evicted {
        /// The request.
        request: u64,
        /// The lowest request that is still answered.
        floor: u64,
    },
    /// The session has executed another command under this number. This one was not executed.
    #[error(
        "request {request} was already used for another command; this one was not executed: send it with an unused number [SH-5006]"
    )]
    RequestReused {
        /// The request.
        request: u64,
    },
    /// A session has reached a limit. The command was not executed.
    #[error("the session has reached {limit} = {max}; release answers or acknowledge pushes, then retry [SH-5001]")]
    SessionBusy {
        /// The limit's name.
        limit: &'static str,
        /// The limit.
        max: u64,
    },
    /// The user's machine cannot read the command.
    #[error("machine {machine} cannot read the command; nothing was changed [SH-5005]")]
    UnreadableCommand {
        /// The machine's number.
        machine: u16,
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
    #[error("record {record:?} is {state}: {reason} [SH-1015]")]
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
    RecordConflict {
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
}

/// Why an attempt is refused. A record that is not there was deleted, or the request looks for it in the wrong group.
fn fenced(record: &str, given: u64, attempt: u64, state: &str) -> String {
    match state {
        GONE => format!(
            "attempt {given} holds nothing: there is no record {record:?} here; it was deleted, or is in a group"
        ),
        _ => format!("attempt {given} of record {record:?} is over: it is {state} at attempt {attempt}"),
    }
}

fn held_by(holder: &Option<String>) -> String {
    holder.as_ref().map_or(String::new(), |holder| format!(", held by {holder:?}"))
}

fn state(current: &Option<u64>) -> String {
    match current {
        Some(version) => format!("is at version {version}"),
        None => "does not exist".to_owned(),
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
        match self {
            Rejection::InvalidName { .. } => "SH-1001",
            Rejection::LimitExceeded { .. } => "SH-1002",
            Rejection::Conflict { .. } => "SH-1003",
            Rejection::TwoGroups { .. } => "SH-1004",
            Rejection::NoSuchSpace { .. } => "SH-1005",
            Rejection::NoSuchBranch { .. } => "SH-1006",
            Rejection::AlreadyExists { .. } => "SH-1007",
            Rejection::MainBranch => "SH-1008",
            Rejection::CatalogueBehind { .. } => "SH-1009",
            Rejection::SessionExpired => "SH-5004",
            Rejection::InvalidEvent { .. } => "SH-3001",
            Rejection::NoSuchRun { .. } => "SH-3002",
            Rejection::SequenceConflict { .. } => "SH-3003",
            Rejection::KeyReused { .. } => "SH-3004",
            Rejection::RunClosed { .. } => "SH-3005",
            Rejection::RunArchived { .. } => "SH-3006",
            Rejection::Evicted { .. } => "SH-5003",
            Rejection::SessionBusy { .. } => "SH-5001",
            Rejection::RequestReused { .. } => "SH-5006",
            Rejection::UnreadableCommand { .. } => "SH-5005",
            Rejection::TransactionLost { .. } => "SH-1011",
            Rejection::TransactionState { .. } => "SH-1012",
            Rejection::NoSuchRecord { .. } => "SH-1013",
            Rejection::NoSuchType { .. } => "SH-1014",
            Rejection::WrongState { .. } => "SH-1015",
            Rejection::WrongKind { .. } => "SH-1016",
            Rejection::RecordConflict { .. } => "SH-1017",
            Rejection::InvalidDeclaration { .. } => "SH-1018",
            Rejection::FieldConflict { .. } => "SH-1019",
            Rejection::Fenced { .. } => "SH-4002",
            Rejection::Damaged { .. } => "SH-2023",
        }
    }

    /// Whether the same call, or the same transaction started again, may succeed later.
    pub fn retryable(&self) -> bool {
        matches!(
            self,
            Rejection::Conflict { .. }
                | Rejection::RecordConflict { .. }
                | Rejection::FieldConflict { .. }
                | Rejection::CatalogueBehind { .. }
                | Rejection::TransactionLost { .. }
                | Rejection::SessionBusy { .. }
                | Rejection::SequenceConflict { .. }
        )
    }
}
