//! Durable order: commands in, one synced entry out.
//!
//! - [`frame`]: the bytes of an entry, `docs/formats/journal.md`.
//! - [`log`]: the interface between what orders entries and what keeps them. [`memory`]: a log in memory.
//!   [`gathering`]: one call for the appends of several threads.
//! - [`segments`]: that seam on segments: one set of files for all shards of a node.
//! - [`disk`]: the file system below, so that tests can fail, record or lose each call.
//! - [`durations`]: how long things took. `meter`: how the journal is doing.
//! - [`local`]: the journal of one process: a bounded queue, a writer thread, one sync per batch.
//!
//! Payloads are opaque here. Touches: one directory. Keeps: J1 to J7 of `ARCHITECTURE.md`. Never: retries a failed
//! sync, or truncates what is known to be durable.

mod batch;
pub mod disk;
pub mod durations;
mod error;
mod file_place;
pub mod frame;
pub mod gathering;
pub mod local;
pub mod log;
pub mod memory;
mod meter;
mod queue;
mod segment;
pub mod segments;
mod shard_index;
mod tail_scan;
mod watermark;

pub use disk::{Disk, DiskDirectory, DiskFile, RealDisk};
pub use durations::Durations;
pub use error::JournalError;
pub use frame::{Entry, EntryKind, ShardId};
pub use gathering::{GatheringLog, GatheringMeter};
pub use local::{Consumer, LocalJournal, LocalOptions, Ownership, QueueFull, Queued};
pub use log::{Append, ENTRY_OVERHEAD_BYTES_MAX, Ends, EntryLog, Position, Verified};
pub use meter::JournalMeter;
pub use segments::{SegmentFiles, SegmentOptions};
