//! A small runtime of our own, for a caller that is an ordinary thread or a thread of another runtime.
//!
//! Touches: two threads and what the runtime starts to look up names. Keeps: waiting and dropping never panic, wherever the caller
//! runs. Never: runs a task on the caller's thread.

use std::future::Future;
use std::io;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use object_store::Error;
use tokio::runtime::{Builder, Runtime};

/// The runtime.
pub(super) struct Driver {
    /// There until it is dropped.
    runtime: Option<Runtime>,
}

/// A task that was started.
pub(super) struct Started<T> {
    done: Receiver<Result<T, Error>>,
}

impl Driver {
    pub(super) fn start() -> io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).max_blocking_threads(4).thread_name("objects").enable_all().build()?;
        Ok(Self { runtime: Some(runtime) })
    }

    /// Runs a task and waits for it.
    pub(super) fn run<T, F>(&self, task: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        self.spawn(task).wait()
    }

    /// Starts a task.
    pub(super) fn spawn<T, F>(&self, task: F) -> Started<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        // `Runtime::block_on` would panic on a thread of another runtime.
        let (sender, done) = sync_channel(1);
        if let Some(runtime) = &self.runtime {
            runtime.spawn(async move {
                // The caller may have given up.
                let _ = sender.send(task.await);
            });
        }
        Started { done }
    }
}

impl<T> Started<T> {
    /// Waits for its end.
    pub(super) fn wait(self) -> Result<T, Error> {
        self.done.recv().unwrap_or_else(|_| {
            Err(Error::Generic { store: "objects", source: "the task of the request panicked".into() })
        })
    }

    /// Waits for its end, but not for ever.
    pub(super) fn wait_at_most(self, time: Duration) {
        let _ = self.done.recv_timeout(time);
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // An ordinary drop waits for threads, and panics on a thread of another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
