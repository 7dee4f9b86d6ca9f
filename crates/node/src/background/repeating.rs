//! A thread that does something again and again until it is dropped.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use contract::Error;

use crate::error::cannot_open;

/// A thread that repeats a task. Dropping it waits for the current run.
pub(crate) struct Repeating {
    /// Gone when the thread is to end.
    open: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Tells the thread to end.
pub(crate) struct Pauses(Receiver<()>);

impl Pauses {
    /// Pauses; false if the thread must end.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        self.0.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
    }
}

impl Repeating {
    /// Does `work` after every pause of `every`, on a thread of this name.
    pub(crate) fn start(
        name: &'static str,
        every: Duration,
        mut work: impl FnMut(&Pauses) + Send + 'static,
    ) -> Result<Self, Error> {
        let (open, closed) = channel::<()>();
        let pauses = Pauses(closed);
        let thread = std::thread::Builder::new()
            .name(name.into())
            .spawn(move || {
                while pauses.pause(every) {
                    work(&pauses);
                }
            })
            .map_err(|error| cannot_open(format!("could not start the thread {name}: {error}")))?;
        Ok(Self { open: Some(open), thread: Some(thread) })
    }
}

impl Drop for Repeating {
    fn drop(&mut self) {
        self.open = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread ends its background work; it affects nothing that was acknowledged.
            let _ = thread.join();
        }
    }
}
