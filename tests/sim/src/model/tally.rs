//! What a run has done so far.

use std::sync::atomic::AtomicU64;

pub(crate) use crate::tally::{add, sum};

/// Counts, shared by the threads of a run.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) operations: AtomicU64,
    pub(crate) entries: AtomicU64,
    pub(crate) rejections: AtomicU64,
    /// Events that were appended, those that were known, and those of them with another content.
    pub(crate) appended: AtomicU64,
    pub(crate) known: AtomicU64,
    pub(crate) mismatches: AtomicU64,
    pub(crate) forks: AtomicU64,
    pub(crate) deletions: AtomicU64,
    /// Requests of sessions that a user's machine has executed.
    pub(crate) executed: AtomicU64,
    /// Requests that were answered from what is stored.
    pub(crate) repeats: AtomicU64,
    /// Requests that were refused because their number was used for another command.
    pub(crate) reused: AtomicU64,
    /// Requests whose answers are gone.
    pub(crate) evicted: AtomicU64,
    /// Requests whose sessions are gone.
    pub(crate) expired: AtomicU64,
    /// Requests without room for an answer, and sessions without room.
    pub(crate) busy: AtomicU64,
    /// Branches that were deleted, and those of them that were forgotten with everything in them.
    pub(crate) branches_deleted: AtomicU64,
    pub(crate) branches_forgotten: AtomicU64,
    pub(crate) claims: AtomicU64,
    /// Claims that had to be repeated.
    pub(crate) unfinished: AtomicU64,
    pub(crate) rescues: AtomicU64,
    pub(crate) expiries: AtomicU64,
    pub(crate) forgotten: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) reads: AtomicU64,
    pub(crate) checks: AtomicU64,
    pub(crate) reloads: AtomicU64,
    pub(crate) images: AtomicU64,
    /// Interactive transactions, and those that met a conflict.
    pub(crate) transactions: AtomicU64,
    pub(crate) conflicts: AtomicU64,
    pub(crate) restarts: AtomicU64,
    /// Walks for what retention gives up, to their ends.
    pub(crate) walks: AtomicU64,
    /// Updates of keyed state: all, those that were applied, known, stale, and in conflict.
    pub(crate) updates: AtomicU64,
    pub(crate) updates_applied: AtomicU64,
    pub(crate) updates_known: AtomicU64,
    pub(crate) updates_stale: AtomicU64,
    pub(crate) updates_in_conflict: AtomicU64,
    /// Seals that were raised, updates of a later epoch than the first, deletions of keys and of maps, and updates of ordered maps.
    pub(crate) seals: AtomicU64,
    pub(crate) epochs: AtomicU64,
    pub(crate) keys_deleted: AtomicU64,
    pub(crate) maps_deleted: AtomicU64,
    pub(crate) in_order: AtomicU64,
    /// Restores that have ended, and keys that were noted for checkpoints when they went.
    pub(crate) restores: AtomicU64,
    pub(crate) keys_noted: AtomicU64,
    /// Numbered commits that were answered again, and those whose number was another one's.
    pub(crate) commits_again: AtomicU64,
    pub(crate) commits_reused: AtomicU64,
    /// Writes by attempts that are over, and without the fence of an owner.
    pub(crate) fenced: AtomicU64,
    pub(crate) unfenced: AtomicU64,
    /// Entries that were applied again, and those after an image in the middle.
    pub(crate) replayed: AtomicU64,
    pub(crate) replayed_from_image: AtomicU64,
}
