//! Known bugs that can be switched on to show that a test finds them. Only with the `canary` feature, which only the
//! simulator turns on.

use std::sync::atomic::{AtomicBool, Ordering};

static SKIP_EARLY_CHECKS: AtomicBool = AtomicBool::new(false);
static SKIP_OWNER_CHECKS: AtomicBool = AtomicBool::new(false);

/// From now on a handle that owns a group proposes every write, whoever owns the group by then, so that the store must refuse it.
pub fn skip_early_checks(skip: bool) {
    SKIP_EARLY_CHECKS.store(skip, Ordering::SeqCst);
}

/// From now on no handle ever looks whether it still owns its group, even where the store is not asked.
pub fn skip_owner_checks(skip: bool) {
    SKIP_OWNER_CHECKS.store(skip, Ordering::SeqCst);
}

pub(crate) fn early_checks_are_skipped() -> bool {
    SKIP_EARLY_CHECKS.load(Ordering::Relaxed)
}

pub(crate) fn owner_checks_are_skipped() -> bool {
    SKIP_OWNER_CHECKS.load(Ordering::Relaxed)
}
