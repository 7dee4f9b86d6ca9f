//! What a run has done so far.

use std::sync::atomic::AtomicU64;

pub(super) use crate::tally::{add, sum};

/// Counts, shared by the threads of a run.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) commands: AtomicU64,
    pub(super) entries: AtomicU64,
    pub(super) executed: AtomicU64,
    pub(super) repeats: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) busy: AtomicU64,
    pub(super) expired: AtomicU64,
    pub(super) checks: AtomicU64,
    pub(super) restarts: AtomicU64,
    pub(super) images: AtomicU64,
}
