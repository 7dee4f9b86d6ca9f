//! The interface between what orders entries (an owner of a shard, perhaps one of several that want to be) and what keeps
//! them: files on a disk, or a service that others append to as well.

use std::fmt;

use crate::error::JournalError;
use crate::frame::{Entry, EntryKind, HEADER_BYTES, ShardId, TRAILER_BYTES};

/// Where an entry is in its shard, and that it is this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Counts the entries of a shard, from 1.
    pub index: u64,
    /// The hash of the entry, which covers the hash of the one before it, and so all of them.
    pub hash: u64,
}

impl Position {
    /// Before the first entry.
    pub const START: Self = Self { index: 0, hash: 0 };

    /// An entry whose hash is not known: the next one refers to none.
    pub const fn without_hash(index: u64) -> Self {
        Self { index, hash: 0 }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({:016x})", self.index, self.hash)
    }
}

/// An entry to append.
#[derive(Clone, Copy, Debug)]
pub struct Append<'payload> {
    /// The shard that it belongs to.
    pub shard: ShardId,
    /// The last entry, as far as the appender knows.
    pub after: Position,
    /// What it is for.
    pub kind: EntryKind,
    /// The term of the appender.
    pub term: u64,
    /// The node that appends it; 0 in a library.
    pub node: u64,
    /// The history of the shard that the appender continues. The first entry decides for the shard, or
    /// [`EntryLog::start_after`] does.
    pub history: u64,
    /// The payload.
    pub payload: &'payload [u8],
}

/// The entries that a log has of a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// The first kept entry; none if there is none.
    pub first_kept: Option<u64>,
    /// The last entry, or what the first one will be behind.
    pub last: Position,
    /// The history of its entries; none while nothing has decided it.
    pub history: Option<u64>,
}

/// The bytes that an entry takes beside its payload, at most, where [`EntryLog::read`] counts them.
pub const ENTRY_OVERHEAD_BYTES_MAX: usize = HEADER_BYTES + TRAILER_BYTES;

/// Keeps the entries of many shards.
///
/// # Duties
/// - J1: an entry whose [`append_behind`](Self::append_behind) succeeded survives whatever the log is made for.
/// - J2: [`read`](Self::read) returns what was appended, or an error: never other bytes, never fewer entries.
/// - J3: opening never loses what was durable. A log that is not alone in that says [`JournalError::TailLost`].
/// - J4: after a failed write or sync nothing more is appended.
/// - J6: an entry is appended only behind the entry that [`Append::after`] names, and at most one entry is ever behind it.
///   All entries of a shard have one history; one of another is refused ([`JournalError::OtherHistory`]).
/// - J7: when an append fails, the entry is not in the log and never will be, unless the error
///   [may have written it](JournalError::may_be_appended). Then the next section holds.
/// - Without room for an append, [`JournalError::NoSpace`] is returned and the next one is tried. What
///   [`cut`](Self::cut), [`upkeep`](Self::upkeep) and [`settle`](Self::settle) have no room for is done by the next of
///   them.
///
/// # Appends whose outcome is not known
/// The entry is in the log, or arrives later, or never does. Reading does not settle which: an entry that
/// [`ends`](Self::ends) and [`read`](Self::read) do not show may arrive a moment later. Only an append behind the same
/// position settles it, after the log was opened again if it has stopped (J4):
/// - If it succeeds, the earlier entry is not in the log and never will be (J6).
/// - If it is [`Deposed`](JournalError::Deposed), the one entry behind that position is there to be read: the earlier one,
///   or somebody else's.
///
/// An entry that was seen stays. A new owner therefore reads to the end and appends an entry of its own: from then on,
/// nothing of an earlier owner can arrive.
pub trait EntryLog: Send + Sync {
    /// Appends entries, durably, each behind the one that it names, and returns where each is. Of one shard there is one
    /// entry in a call.
    fn append_behind(&self, entries: &[Append<'_>]) -> Vec<Result<Position, JournalError>>;

    /// The entries of `shard` from `first` on with their places: at least one if it exists, then as many as fit into
    /// `bytes_max`. An entry counts as its payload and at most [`ENTRY_OVERHEAD_BYTES_MAX`] more.
    fn read(&self, shard: ShardId, first: u64, bytes_max: usize) -> Result<Vec<(Entry, Position)>, JournalError>;

    /// The first and the last entry of a shard.
    fn ends(&self, shard: ShardId) -> Result<Ends, JournalError>;

    /// Sets where a shard without entries starts, and its history: after an image, entries continue after what it covers.
    /// Holds until the log is closed, or until the first append.
    fn start_after(&self, shard: ShardId, at: Position, history: u64) -> Result<(), JournalError>;

    /// Discards the entries of `shard` before `first_kept`. The last entry is always kept.
    fn cut(&self, shard: ShardId, first_kept: u64) -> Result<(), JournalError>;

    /// Does what an append leaves to be done after it was answered, such as making room for the ones to come.
    fn upkeep(&self) -> Result<(), JournalError> {
        Ok(())
    }

    /// Whether space that no entry needs any more is kept for the next ones, or given back because it is needed elsewhere.
    fn keep_spares(&self, _keep: bool) -> Result<(), JournalError> {
        Ok(())
    }

    /// The bytes of everything, with the room that is reserved for more entries. Waits for nobody.
    fn bytes(&self) -> u64;

    /// The bytes from the oldest entry that [`cut`](Self::cut) can discard to the newest. The last entry of a shard alone
    /// counts for nothing: it always stays. Waits for nobody.
    fn kept_bytes(&self) -> u64;

    /// About how many bytes of its files lie from the entry `first` of `shard` to the newest one, those of other shards between
    /// them included; none if it does not know. For the progress of reading them.
    fn bytes_from(&self, _shard: ShardId, _first: u64) -> Option<u64> {
        None
    }

    /// Makes durable, beside the entries, which of them are known to be durable.
    fn settle(&self) -> Result<(), JournalError>;

    /// Reads and checks every kept entry of every shard.
    fn verify(&self) -> Result<Verified, JournalError>;
}

/// The result of [`EntryLog::verify`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// The number of entries read.
    pub entries: u64,
    /// Their payload in bytes.
    pub payload_bytes: u64,
}

/// An entry is appended behind the last one and in its history, or not at all (J6). The history comes first: whoever has
/// another one cannot go on from the entries of this one.
pub(crate) fn check_behind(append: &Append<'_>, found: Position, history: Option<u64>) -> Result<(), JournalError> {
    let Append { shard, after, .. } = *append;
    if let Some(found) = history.filter(|history| *history != append.history) {
        return Err(JournalError::OtherHistory { shard, found, appended: append.history });
    }
    if after.index > found.index {
        return Err(JournalError::TailLost { shard, acknowledged: after, found });
    }
    if after != found {
        return Err(JournalError::Deposed { shard, after });
    }
    Ok(())
}
