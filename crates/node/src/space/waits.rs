//! What the store waits for: a flush or a merge that the disk does not take now, and that is tried again.

use kv::KvError;

use crate::shard::Shard;

/// Work of the store that waits for the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreWait {
    /// Which work.
    pub work: WaitingWork,
    /// About how many free bytes it needs; 0 if that is not known, or if it does not wait for space.
    pub bytes_needed: u64,
    /// Why it waits, with the file.
    pub reason: String,
}

/// Work of the store in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitingWork {
    /// What is in memory is to be written. Meanwhile the journal grows; once memory is full, writes wait.
    Flush,
    /// Tables are to be merged. Meanwhile deleted things still take space, and reads become slower.
    Merge,
}

impl Shard {
    /// What waits for the disk now, the more urgent first.
    pub fn store_waits(&self) -> Vec<StoreWait> {
        let access = &self.access;
        let flush = access.store.flush_failure().map(|error| {
            let bytes_needed = match error {
                KvError::NoSpace { bytes_needed, .. } => bytes_needed,
                _ => 0,
            };
            StoreWait { work: WaitingWork::Flush, bytes_needed, reason: error.to_string() }
        });
        let merges = access.tree.status();
        let merge = merges.waiting_reason.map(|reason| StoreWait {
            work: WaitingWork::Merge,
            bytes_needed: merges.waiting_for_space.unwrap_or(0),
            reason,
        });
        flush.into_iter().chain(merge).collect()
    }
}
