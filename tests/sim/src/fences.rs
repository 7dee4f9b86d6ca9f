//! What refuses an owner that was replaced: its handle, which looks at who owns the group before it proposes a write, and the store.

/// Runs something while nothing refuses an owner that was replaced: the canary of the tests about owners.
pub(crate) fn skipped<T>(run: impl FnOnce() -> T) -> T {
    skip(true);
    let ran = run();
    skip(false);
    ran
}

/// Runs something while handles propose every write, so that the store must refuse it.
pub(crate) fn in_store_alone<T>(run: impl FnOnce() -> T) -> T {
    statehouse::canary::skip_early_checks(true);
    let ran = run();
    statehouse::canary::skip_early_checks(false);
    ran
}

/// Switches everything that refuses an owner that was replaced off, or on again.
pub(crate) fn skip(skips: bool) {
    kernel::canary::skip_fences(skips);
    statehouse::canary::skip_early_checks(skips);
    statehouse::canary::skip_owner_checks(skips);
}
