//! The progress of the scrub.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The progress of the scrub since the directory was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScrubProgress {
    /// Bytes that were read.
    pub bytes: u64,
    /// Passes over everything that were finished.
    pub passes: u64,
    /// When the last pass was finished, in wall µs; 0 for never.
    pub finished_us: u64,
}

/// The meter behind [`ScrubProgress`].
#[derive(Default)]
pub struct ScrubMeter {
    bytes: AtomicU64,
    passes: Mutex<(u64, u64)>,
}

impl ScrubMeter {
    /// So many bytes more were read.
    pub(crate) fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A pass was finished.
    pub(crate) fn finished(&self, wall_us: u64) {
        let mut passes = self.passes.lock().unwrap_or_else(PoisonError::into_inner);
        *passes = (passes.0 + 1, wall_us);
    }

    /// The progress so far.
    pub fn read(&self) -> ScrubProgress {
        let (passes, finished_us) = *self.passes.lock().unwrap_or_else(PoisonError::into_inner);
        ScrubProgress { bytes: self.bytes.load(Ordering::Relaxed), passes, finished_us }
    }
}
