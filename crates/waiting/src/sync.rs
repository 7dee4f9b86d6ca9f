//! The locks, atomics and threads that everything here is made of: those of the standard library, or loom's.

#[cfg(loom)]
pub(crate) use loom::{
    sync::atomic::{AtomicBool, AtomicUsize, fence},
    sync::{Condvar, Mutex, MutexGuard},
    thread::{Thread, current, park},
};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::atomic::{AtomicBool, AtomicUsize, fence},
    sync::{Condvar, Mutex, MutexGuard},
    thread::{Thread, current, park},
};

use std::sync::PoisonError;
use std::time::Duration;

/// Takes a lock. What it guards is whole between any two statements, so a panic elsewhere spoils nothing.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits while the condition holds, at most for so long.
#[cfg(not(loom))]
pub(crate) fn wait_while<'lock, T>(
    changed: &Condvar,
    guard: MutexGuard<'lock, T>,
    timeout: Duration,
    condition: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'lock, T> {
    changed.wait_timeout_while(guard, timeout, condition).unwrap_or_else(PoisonError::into_inner).0
}

/// The same where no time passes: who is not woken waits for ever, and loom says so.
#[cfg(loom)]
pub(crate) fn wait_while<'lock, T>(
    changed: &Condvar,
    mut guard: MutexGuard<'lock, T>,
    _timeout: Duration,
    mut condition: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'lock, T> {
    while condition(&mut guard) {
        guard = changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
    }
    guard
}
