//! The contract of runs: append-only logs of events, each with a projection that is never behind. Version 1.1.
//!
//! - Events are numbered at commit: sequences rise by one, so nothing can appear later behind a reader's position.
//!   Every event names the one before it.
//! - An event is unique in its run by its sequence, its idempotency key and its id. A repeated append returns the
//!   sequence of the first, and never fails because of it.
//! - Events are never changed or deleted one by one. A correction is another event.
//! - The projection applies [`effect()`] to the events in order. Unknown types of events only advance its position.
//!
//! Changing this contract: a new optional field, optional parameter or type of event makes it 1.2; removing a required
//! field, or numbering events or building keys differently, makes it 2.0.

mod rejection;

pub use rejection::RunRejection;

pub mod effect;
pub mod event;
mod event_id;
mod event_members;
pub mod idempotency;
pub mod snapshot;

pub use effect::{Effect, effect};
pub use event::{NewEvent, StoredEvent};
pub use event_id::seq_of_derived_id;
pub use idempotency::IdempotencyKey;
pub use snapshot::{RunSnapshot, RunStatus, StepError, StepSnapshot, StepStatus};

use crate::error::Error;

/// The stored number of a run in the change feed.
pub(crate) const SUBJECT_CODE: u8 = 4;

/// A change has two reasons, which no metric tells apart.
pub(crate) const IS_COUNTED_BY_REASON: bool = false;

/// The version of the contract of runs.
pub const RUNS_CONTRACT_VERSION: &str = "1.1";

/// The default number of events in a fetch.
pub const FETCH_LIMIT: usize = 1000;

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendResult {
    /// The event's sequence; for a repeated append, that of the first.
    pub run_seq: u64,
    /// Whether the event was already there.
    pub idempotent: bool,
    /// Whether this append wrote it.
    pub persisted: bool,
    /// Whether it was already there with different content: the first one stays, and somebody should investigate.
    pub payload_mismatch: bool,
}

/// A page of a run's events, by sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The events.
    pub events: Vec<StoredEvent>,
    /// The run's last sequence: nothing can still appear at or below it.
    pub stable_seq: u64,
}

/// Runs, as every implementation provides them.
pub trait RunStateStore {
    /// Appends an event.
    fn append_event(&self, run: &str, event: &NewEvent) -> Result<AppendResult, Error>;

    /// The events after a sequence, ascending, at most `limit`.
    fn fetch_events(&self, run: &str, after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>, Error>;

    /// The projection; none if the run does not exist.
    fn get_snapshot(&self, run: &str) -> Result<Option<RunSnapshot>, Error>;

    /// The projection, rebuilt from all events.
    fn project_snapshot(&self, run: &str) -> Result<RunSnapshot, Error>;
}
