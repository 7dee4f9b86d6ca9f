//! What a run has done so far.

use std::sync::atomic::AtomicU64;

pub(crate) use crate::tally::{add, sum};

/// Counts, shared by the threads of a run.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) operations: AtomicU64,
    pub(crate) rejections: AtomicU64,
    pub(crate) entries: AtomicU64,
    pub(crate) reads: AtomicU64,
    pub(crate) restarts: AtomicU64,
    pub(crate) images: AtomicU64,
    pub(crate) walks: AtomicU64,
    pub(crate) conflicts: AtomicU64,
    pub(crate) transactions: AtomicU64,
    pub(crate) replayed: AtomicU64,
    pub(crate) replayed_from_image: AtomicU64,
}
