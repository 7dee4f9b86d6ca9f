//! The walk over cells for history that retention has given up, and over what deleted branches left.
//!
//! It reads views, a bounded number of cells at a time, and proposes a command only for what is due. So an idle store
//! is never written to.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use contract::Error;
use kernel::trim::find_due;
use kernel::{Body, trim::TrimStep};

use crate::error::{cannot_open, from_halt};
use crate::shard::{Shard, keys};

/// Cells that are looked at before others get a turn.
const HEADS_PER_STEP: usize = 2_000;

/// Times that one step is proposed again while it still finds something, before the walk goes on.
const PASSES_MAX: usize = 64;

pub(crate) struct Walker {
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Walker {
    pub(crate) fn start(shard: Weak<Shard>, every: Duration) -> Result<Self, Error> {
        let (wake, woken) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("retention-walk".into())
            .spawn(move || run(&shard, every, &woken))
            .map_err(|error| cannot_open(format!("could not start the retention thread: {error}")))?;
        Ok(Self { wake: Some(wake), thread: Some(thread) })
    }

    /// Begins a walk now, unless one is already due.
    pub(crate) fn wake(&self) {
        if let Some(wake) = &self.wake {
            let _ = wake.try_send(());
        }
    }
}

impl Drop for Walker {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            // The walk may be what dropped the last handle; a thread does not wait for itself.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

fn run(shard: &Weak<Shard>, every: Duration, woken: &Receiver<()>) {
    loop {
        match woken.recv_timeout(every) {
            Err(RecvTimeoutError::Disconnected) => return,
            Ok(()) | Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(error) = walk(shard, woken) {
            tracing::warn!(%error, "the retention walk was cut short");
        }
    }
}

fn walk(shard: &Weak<Shard>, woken: &Receiver<()>) -> Result<(), Error> {
    let mut cursor: Option<Vec<u8>> = None;
    loop {
        let mut next = None;
        for _ in 0..PASSES_MAX {
            // The shard is held only for one step, so that dropping the last handle closes it.
            let Some(shard) = shard.upgrade() else {
                return Ok(());
            };
            let steps;
            (steps, next) = look(&shard, cursor.as_deref())?;
            if steps.is_empty() {
                break;
            }
            let (_, catalogue) = shard.view()?;
            shard.propose(&catalogue, &Body::Trim(steps), |_| Ok(())).wait()?;
            if is_closing(woken) {
                return Ok(());
            }
        }
        if next.is_none() || is_closing(woken) {
            return Ok(());
        }
        cursor = next;
    }
}

fn look(shard: &Arc<Shard>, cursor: Option<&[u8]>) -> Result<(Vec<TrimStep>, Option<Vec<u8>>), Error> {
    let (view, catalogue) = shard.view()?;
    let now_us = shard.clock().wall_us();
    find_due(&*view, &catalogue, &keys(), now_us, cursor, HEADS_PER_STEP).map_err(|halt| from_halt(&halt))
}

fn is_closing(woken: &Receiver<()>) -> bool {
    matches!(woken.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected))
}
