//! What the verifier of runs has found.

use std::sync::atomic::AtomicU64;

/// The findings since the directory was opened.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) verified: AtomicU64,
    pub(crate) differences: AtomicU64,
}
