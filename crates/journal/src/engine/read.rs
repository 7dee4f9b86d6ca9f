//! Reading entries back, each checked against its own hash and its place in the chain.
//!
//! Keeps: J2. Reads run on a thread that has read nothing else, because `raft-engine`'s block cache
//! is per thread and does not know which engine a block came from.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::disk::Disk;
use crate::error::JournalError;
use crate::files::{EntryFiles, Verified};
use crate::frame::{Entry, HASH_BYTES, HEADER_BYTES, ShardId};

use super::{EngineFiles, Framed, panic_text};

/// Bytes read at a time by a full read.
const VERIFY_BYTES: usize = 8 << 20;

/// The engine adds up the bytes of one read in 32 bits.
const READ_BYTES_MAX: usize = 1 << 30;

/// Runs a read on its own thread.
pub(super) fn on_own_thread<T: Send>(read: impl FnOnce() -> T + Send) -> T {
    let result = std::thread::scope(|scope| scope.spawn(read).join());
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl<D: Disk> EngineFiles<D> {
    /// One entry, with its hash. Only to be called [`on_own_thread`].
    pub(super) fn read_one(&self, shard: ShardId, index: u64) -> Result<(Entry, u64), JournalError> {
        let read = self.read_framed(shard, index, index + 1, 0)?;
        Ok(read.into_iter().next().expect("at least one entry is read"))
    }

    /// Entries from `first` to before `end`, with their hashes, checked one by one: at least one,
    /// then as many as fit into `bytes_max`. Only to be called [`on_own_thread`].
    pub(super) fn read_framed(
        &self,
        shard: ShardId,
        first: u64,
        end: u64,
        bytes_max: usize,
    ) -> Result<Vec<(Entry, u64)>, JournalError> {
        // The engine reserves space for every entry up to the end, so the end is no farther than the smallest entries
        // would reach.
        let bytes_max = bytes_max.min(READ_BYTES_MAX);
        let count_max = bytes_max / (HEADER_BYTES + HASH_BYTES) + 1;
        let end = end.min(first.saturating_add(count_max as u64));
        let mut framed = Vec::new();
        // The engine panics at some kinds of damage.
        let fetched = catch_unwind(AssertUnwindSafe(|| {
            let bytes_max = Some(bytes_max);
            self.engine().fetch_entries_to::<Framed>(shard, first, end, bytes_max, &mut framed)
        }));
        let place = |index| format!("shard {shard}, entry {index}");
        match fetched {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(JournalError::damaged(place(first), error)),
            Err(panic) => return Err(JournalError::damaged(place(first), panic_text(&*panic))),
        }
        let mut entries = Vec::with_capacity(framed.len());
        let mut previous_hash = None;
        for (index, framed) in (first..end).zip(&framed) {
            let (entry, hash, length) =
                Entry::decode(&framed.value, self.seed).map_err(|error| JournalError::damaged(place(index), error))?;
            let fits = entry.shard == shard && entry.index == index && length == framed.value.len();
            if !fits || previous_hash.is_some_and(|previous| previous != entry.previous_hash) {
                return Err(JournalError::damaged(place(index), "another entry is in its place"));
            }
            previous_hash = Some(hash);
            entries.push((entry, hash));
        }
        if entries.is_empty() {
            return Err(JournalError::damaged(place(first), "the entry is missing"));
        }
        Ok(entries)
    }

    /// Reads and checks every kept entry of every shard.
    pub(super) fn verify_all(&self) -> Result<Verified, JournalError> {
        let mut verified = Verified::default();
        on_own_thread(|| {
            for shard in self.engine().raft_groups() {
                if let (Some(first), Some(last)) = (self.first_index(shard), self.last_index(shard)) {
                    self.verify_shard(shard, first, last, &mut verified)?;
                }
            }
            Ok(verified)
        })
    }

    fn verify_shard(&self, shard: ShardId, first: u64, last: u64, verified: &mut Verified) -> Result<(), JournalError> {
        let mut next = first;
        let mut previous_hash = None;
        while next <= last {
            let read = match self.read_framed(shard, next, last + 1, VERIFY_BYTES) {
                Ok(read) => read,
                Err(error) => {
                    // They may have been discarded in the meantime, or moved to another file.
                    let first = self.first_index(shard).unwrap_or(next);
                    if first > next {
                        (next, previous_hash) = (first, None);
                        continue;
                    }
                    self.read_framed(shard, next, last + 1, VERIFY_BYTES).map_err(|_| error)?
                }
            };
            for (entry, hash) in read {
                if previous_hash.is_some_and(|previous| previous != entry.previous_hash) {
                    let place = format!("shard {shard}, entry {}", entry.index);
                    return Err(JournalError::damaged(place, "it does not follow the previous entry"));
                }
                previous_hash = Some(hash);
                next = entry.index + 1;
                verified.entries += 1;
                verified.payload_bytes += entry.payload.len() as u64;
            }
        }
        Ok(())
    }
}
