//! Runs a future on a thread.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::bell::Bell;

/// Runs a future on this thread. When no time is left, or after sleeping for as long as was left, it sets `time_over`,
/// polls once more, and still waits for the future to finish.
///
/// ```
/// use std::{cell::Cell, future::poll_fn, task::Poll, time::Duration};
/// let time_over = Cell::new(false);
/// let gives_up = poll_fn(|_| if time_over.get() { Poll::Ready("nothing came") } else { Poll::Pending });
/// assert_eq!(statehouse_waiting::block_on(gives_up, || Duration::from_millis(1), &time_over), "nothing came");
/// ```
pub fn block_on<T>(future: impl Future<Output = T>, left: impl Fn() -> Duration, time_over: &Cell<bool>) -> T {
    let mut future = pin!(future);
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(bell.clone());
    loop {
        if let Poll::Ready(ready) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return ready;
        }
        let left = if time_over.get() { Duration::MAX } else { left() };
        // By what was slept, too: a clock that a test holds does not show that time has passed.
        if left.is_zero() || bell.wait(left).is_none() {
            time_over.set(true);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[test]
    fn a_wake_that_is_not_needed_any_more_does_not_end_the_time() {
        let time_over = Cell::new(false);
        let polls = Cell::new(0);
        let future = poll_fn(|context| {
            polls.set(polls.get() + 1);
            // Twice before it sleeps: one of them is left over.
            context.waker().wake_by_ref();
            context.waker().wake_by_ref();
            if polls.get() < 100 { Poll::Pending } else { Poll::Ready(time_over.get()) }
        });
        assert!(!block_on(future, || Duration::from_secs(3_600), &time_over));
    }
}
