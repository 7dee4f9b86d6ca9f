//! Known bugs that can be switched on, so that a test can show that it would find them. Only with the `canary` feature,
//! which nothing but the simulator turns on.

use std::sync::atomic::{AtomicBool, Ordering};

static SKIP_GUARDS: AtomicBool = AtomicBool::new(false);

/// From now on transactions are applied whether or not their guards hold.
pub fn skip_guards(skip: bool) {
    SKIP_GUARDS.store(skip, Ordering::SeqCst);
}

pub(crate) fn guards_are_skipped() -> bool {
    SKIP_GUARDS.load(Ordering::Relaxed)
}

static SKIP_FENCES: AtomicBool = AtomicBool::new(false);

/// From now on transactions are applied whether or not the attempt that they belong to is live.
pub fn skip_fences(skip: bool) {
    SKIP_FENCES.store(skip, Ordering::SeqCst);
}

pub(crate) fn fences_are_skipped() -> bool {
    SKIP_FENCES.load(Ordering::Relaxed)
}
