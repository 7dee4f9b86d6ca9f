//! The interface between what orders entries (one process, or a group of replicas) and what stores them on disk.

use crate::error::JournalError;
use crate::frame::{Entry, ShardId};

/// Keeps the entries of many shards in one set of files.
///
/// # Duties
/// - J1: when [`append`](EntryFiles::append) returns, all its entries survive power loss; one sync covers them.
/// - J2: [`read`](EntryFiles::read) returns what was appended, or an error: never other bytes, never fewer entries.
/// - J3: opening never shortens the journal below the watermark, or below an index that a later entry calls durable.
/// - J4: after a failed write or sync nothing more is appended.
/// - Without room for an append, [`JournalError::NoSpace`] is returned, no part of it is ever read, and the next one is
///   tried. What [`cut`](EntryFiles::cut), [`upkeep`](EntryFiles::upkeep) and
///   [`sync_watermark`](EntryFiles::sync_watermark) have no room for is done by the next of them.
pub trait EntryFiles: Send + Sync {
    /// Appends payloads after the last entry of `shard`, durably, and returns the index of the first.
    fn append(&self, shard: ShardId, term: u64, payloads: &[&[u8]]) -> Result<u64, JournalError>;

    /// The entries of `shard` from `first` on: at least one if it exists, then as many as fit into `bytes_max`.
    fn read(&self, shard: ShardId, first: u64, bytes_max: usize) -> Result<Vec<Entry>, JournalError>;

    /// The first kept entry.
    fn first_index(&self, shard: ShardId) -> Option<u64>;

    /// The last entry.
    fn last_index(&self, shard: ShardId) -> Option<u64>;

    /// Sets where an empty shard starts: after an image, entries continue after what it covers. Holds until the files
    /// are closed, or until the first append.
    fn start_after(&self, shard: ShardId, index: u64) -> Result<(), JournalError>;

    /// Discards the entries of `shard` before `first_kept`. The last entry is always kept.
    fn cut(&self, shard: ShardId, first_kept: u64) -> Result<(), JournalError>;

    /// Does what an append leaves to be done after it was answered, such as making room for the ones to come.
    fn upkeep(&self) -> Result<(), JournalError>;

    /// Whether files that no entry needs any more are kept for the next ones, or removed because their space is needed
    /// elsewhere. One stays in any case, so that deletions can be appended to a full disk.
    fn keep_spares(&self, keep: bool) -> Result<(), JournalError>;

    /// The bytes of all files, with the room that is reserved for more entries. Waits for nobody.
    fn bytes(&self) -> u64;

    /// The bytes from the oldest entry that [`cut`](Self::cut) can discard to the newest. The last entry of a shard alone
    /// counts for nothing: it always stays. Waits for nobody.
    fn kept_bytes(&self) -> u64;

    /// Makes durable, beside the entries, which of them are known to be durable.
    fn sync_watermark(&self) -> Result<(), JournalError>;

    /// Reads and checks every kept entry of every shard.
    fn verify(&self) -> Result<Verified, JournalError>;
}

/// The result of [`EntryFiles::verify`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// The number of entries read.
    pub entries: u64,
    /// Their payload in bytes.
    pub payload_bytes: u64,
}
