//! What the verifier of runs has found.

use std::sync::atomic::AtomicU64;

/// The findings since the directory was opened.
#[derive(Default)]
pub struct Findings {
    /// Runs that were compared.
    pub verified: AtomicU64,
    /// Those that differed.
    pub differences: AtomicU64,
}
