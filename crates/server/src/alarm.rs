//! One timer for consecutive deadlines: each connection has three timers, for reads, writes and requests.
//!
//! Meeting a deadline costs only a comparison: the timer is reset only when it fires too early, or when a deadline is
//! before it. Setting a timer per request, like a timeout does, took a twentieth of the time of a read.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::{Instant, Sleep, sleep_until};

/// A timer for one deadline after another.
#[derive(Default)]
pub(crate) struct Alarm {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// Ready from `deadline` on.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if deadline < sleep.deadline() {
            sleep.as_mut().reset(deadline);
        }
        loop {
            ready!(sleep.as_mut().poll(context));
            if sleep.deadline() >= deadline {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(deadline);
        }
    }

    /// The result of `work`, or none if it is not done by `deadline`.
    pub(crate) async fn or_none<T>(&mut self, deadline: Instant, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => self.poll(context, deadline).map(|()| None),
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn deadlines_hold_in_any_order() {
        let mut alarm = Alarm::default();
        for (patience_ms, work_ms) in [(400, 20), (800, 40), (30, 600), (60, 600), (900, 100), (20, 600), (700, 50)] {
            let began = Instant::now();
            let work = tokio::time::sleep(Duration::from_millis(work_ms));
            let done = alarm.or_none(began + Duration::from_millis(patience_ms), work).await;
            assert_eq!(done.is_some(), work_ms < patience_ms, "{patience_ms} ms for {work_ms} ms");
            assert_eq!(began.elapsed(), Duration::from_millis(patience_ms.min(work_ms)), "it rang in time");
        }
    }
}
