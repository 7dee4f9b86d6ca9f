//! Known bugs that can be switched on to show that a test finds them. Only with the `canary` feature, which only the
//! simulator turns on.

use std::sync::OnceLock;
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

static SKIP_VERSIONS: AtomicBool = AtomicBool::new(false);

/// From now on puts and deletions of keys are applied whatever version the key has.
pub fn skip_versions(skip: bool) {
    SKIP_VERSIONS.store(skip, Ordering::SeqCst);
}

pub(crate) fn versions_are_skipped() -> bool {
    SKIP_VERSIONS.load(Ordering::Relaxed)
}

static PANIC_AT: OnceLock<String> = OnceLock::new();

/// From now on, applying an operation on a thing of this name panics, and so does a claim by this prefix.
pub fn panic_at(name: &str) {
    PANIC_AT.get_or_init(|| name.to_owned());
}

pub(crate) fn panic_if_planted(name: &str) {
    assert!(PANIC_AT.get().is_none_or(|planted| planted != name), "a planted panic at {name:?}");
}
