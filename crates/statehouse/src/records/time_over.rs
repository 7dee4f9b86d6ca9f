//! How long a call waits: it blocks on what waits until the time is over.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use kernel::catalogue::types::micros;
use node::clock::Clock;
use waiting::block_on;

/// Ends when the time to wait is over.
pub(super) type TimeOver<'wait> = Pin<&'wait mut dyn Future<Output = ()>>;

/// Blocks on what waits for so long at most.
pub(super) fn block_for<T>(clock: &dyn Clock, wait: Duration, work: impl AsyncFnOnce(TimeOver<'_>) -> T) -> T {
    let until_us = clock.monotonic_us().saturating_add(micros(wait));
    let left = || Duration::from_micros(until_us.saturating_sub(clock.monotonic_us()));
    let time_over = Cell::new(wait.is_zero());
    let mut over = pin!(poll_fn(|_| if time_over.get() { Poll::Ready(()) } else { Poll::Pending }));
    block_on(work(over.as_mut()), left, &time_over)
}
