//! The contract of runs: append-only logs of events, each with a projection that is never behind. Version 1.0.
//!
//! - A run's events are numbered at commit: sequences rise by one, so what a reader has passed can never fill up later.
//!   Every event names the one before it.
//! - An event is unique in its run by its sequence, its idempotency key and its id. One that is appended again is answered
//!   with the first one's sequence, and never fails for it.
//! - Events are never changed or deleted one by one. A correction is another event.
//! - The projection is what [`effect()`] says of the events, one after the other. Types of events that it does not know
//!   move its position and change nothing else.
//!
//! Changes of this contract: a new optional field, a new optional parameter or a new type of event makes it 1.1; taking a
//! required field away, or another way to number events or to make keys, makes it 2.0.

pub mod effect;
pub mod event;
mod event_members;
pub mod idempotency;
pub mod snapshot;

pub use effect::{Effect, effect};
pub use event::{NewEvent, StoredEvent};
pub use idempotency::IdempotencyKey;
pub use snapshot::{RunSnapshot, RunStatus, StepError, StepSnapshot, StepStatus};

use crate::error::Error;

/// The version of the contract of runs.
pub const RUNS_CONTRACT_VERSION: &str = "1.0";

/// How many events a fetch gives if it does not say.
pub const FETCH_LIMIT: usize = 1000;

/// What an append did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendResult {
    /// The event's sequence; of one that was there already, the first one's.
    pub run_seq: u64,
    /// Whether it was there already.
    pub idempotent: bool,
    /// Whether it was written now.
    pub persisted: bool,
    /// Whether it was there already, with another content: the first one stays, and somebody should look.
    pub payload_mismatch: bool,
}

/// A page of a run's events, in the order of their sequences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The events.
    pub events: Vec<StoredEvent>,
    /// The run's last sequence: nothing at or below can still appear.
    pub stable_seq: u64,
}

/// Runs, as every implementation keeps them.
pub trait RunStateStore {
    /// Appends an event.
    fn append_event(&self, run: &str, event: &NewEvent) -> Result<AppendResult, Error>;

    /// The events after a sequence, ascending, at most `limit`.
    fn fetch_events(&self, run: &str, after_seq: u64, limit: usize) -> Result<Vec<StoredEvent>, Error>;

    /// The projection; none if there is no such run.
    fn get_snapshot(&self, run: &str) -> Result<Option<RunSnapshot>, Error>;

    /// The projection, made anew from all events.
    fn project_snapshot(&self, run: &str) -> Result<RunSnapshot, Error>;
}
