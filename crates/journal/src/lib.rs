//! Durable order: commands in, one synced entry out.
//!
//! - [`frame`]: the bytes of an entry, `docs/formats/journal.md`.
//! - [`files`]: the interface between what orders entries and what stores them on disk.
//! - [`engine`]: that seam on `raft-engine`: one file set for all shards of a node.
//! - [`durations`]: how long things took. `meter`: how the journal is doing.
//! - [`local`]: the journal of one process: a bounded queue, a writer thread, one sync per batch.
//!
//! Payloads are opaque here. Touches: one directory. Keeps: J1 to J5 of `ARCHITECTURE.md`. Never: retries a failed
//! sync, or truncates what is known to be durable.

pub mod disk;
pub mod durations;
pub mod engine;
mod error;
pub mod files;
pub mod frame;
mod guard;
mod kept;
pub mod local;
mod meter;
mod queue;
mod survey;
mod watermark;

pub use disk::{Disk, RealDisk};
pub use durations::Durations;
pub use engine::{EngineFiles, EngineOptions};
pub use error::JournalError;
pub use files::{EntryFiles, Verified};
pub use frame::{Entry, ShardId};
pub use local::{Consumer, LocalJournal, LocalOptions, QueueFull, Queued};
pub use meter::JournalMeter;
