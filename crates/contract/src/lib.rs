//! The Statehouse contracts: value types, outcomes, limits and errors, and a trait for each contract.
//!
//! - [`value`]: the content of a cell, a field or an event, and its conversion from and to JSON text.
//! - [`names`]: the rules for names, and names with their groups.
//! - [`cells`]: the contract of cells, with its outcomes.
//! - [`records`]: the contract of records: types, claims, filters, and the portable `StateStore`.
//! - [`runs`]: the contract of runs: events, their JSON, projections, idempotency keys.
//! - [`keyed`]: the contract of keyed state: versions, merges, what became of an update.
//! - [`sessions`]: the contract of sessions: requests executed once, answers kept, pushes.
//! - [`changes`]: the feed of changes.
//! - [`catalogue`]: spaces, branches, how much history they keep, and what they take.
//! - [`access`]: who may do what: principals, tokens, grants.
//! - [`guards`]: groups that only their owner writes.
//! - [`error`]: why a call did not succeed: [`rejection`] (an answer "no"), or [`failure`] (the environment).
//! - [`reason`]: why a rejection refuses, where its code alone does not tell.
//! - [`limits`]: every limit by name.
//! - [`suggest`]: the known name closest to a misspelt one.
//! - [`object_text`]: writing and splitting JSON objects as text.
//! - [`time`]: times as people write them.
//! - [`terminal`]: text that is safe to show; [`shell`]: commands that are safe to suggest.
//! - [`seed`]: the state primitive's commands and outputs as a thin view over the typed ones.
//!
//! Never: implements a contract. Nothing here reads a clock, a disk or a socket.

pub mod access;
pub mod attempt_place;
pub mod catalogue;
pub mod cells;
pub mod changes;
pub mod constant_time;
pub mod error;
pub mod facts;
pub mod failure;
pub mod guards;
pub mod keyed;
pub mod limits;
pub mod names;
pub mod object_text;
pub mod reason;
pub mod records;
pub mod rejection;
pub mod runs;
pub mod seed;
pub mod sessions;
pub mod shell;
pub mod suggest;
pub mod terminal;
pub mod time;
pub mod value;

/// The one list of the contracts: the folder, the name of one thing as it is in the change feed, and why a call on one is
/// refused.
macro_rules! with_contracts {
    ($expand:ident) => {
        $expand! {
            /// A cell.
            cells: Cell(CellRejection)
            /// A record.
            records: Record(RecordRejection)
            /// A run. Its version is its last sequence.
            runs: Run(RunRejection)
            /// A map of keyed state. Its version is the commit number of its last change.
            keyed: Map(KeyedRejection)
        }
    };
}

pub(crate) use with_contracts;

macro_rules! folders {
    ($($(#[doc = $says:literal])* $folder:ident: $thing:ident($rejection:ident))*) => {
        /// The contracts by the names of their folders, in the order of their list. Every crate that has a list of its own tests
        /// it against this one.
        pub const CONTRACTS: &[&str] = &[$(stringify!($folder)),*];
    };
}

with_contracts!(folders);

pub use access::AccessRejection;
pub use attempt_place::AttemptPlace;
pub use catalogue::{Retention, SpaceUsage, Usage};
pub use cells::CellRejection;
pub use cells::{
    AsOf, Cells, Deleted, Expected, History, HistoryPage, Initialised, ListPage, Listed, Moment, Swapped, Versioned,
    Written,
};
pub use changes::{Change, ChangesPage, Followed, Reason, Subject};
pub use error::{Error, Failure, FailureKind, Outcome, Rejection};
pub use keyed::backend::{BackendError, ExactlyOnceStateBackend, StateVersion, VersionedStateBackend};
pub use keyed::{KeyedRejection, LogicalTime, UpdateOutcome, Updated};
pub use limits::Limits;
pub use names::NameInGroup;
pub use reason::{RefusalReason, WantedKind};
pub use records::RecordRejection;
pub use runs::RunRejection;
pub use sessions::{SessionCredentials, SessionRejection, SessionSecret};
pub use value::{InvalidJson, Json, Value};
