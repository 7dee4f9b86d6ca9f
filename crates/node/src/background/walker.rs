//! The walk over cells for expired history, over the remains of deleted branches, over records whose type has a new index,
//! and, while disk space is short, over what else is deleted.
//!
//! It reads views, a bounded number of cells at a time, and proposes a command only if something is due. An idle store
//! is therefore never written to.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use contract::Error;
use kernel::Body;
use kernel::trim::{TrimStep, find_due, find_in_catalogue};
use kv::Readable;

use crate::access::Access;
use crate::error::{cannot_open, from_halt};

/// Cells examined before others get a turn.
const HEADS_PER_STEP: usize = 2_000;

/// How often one step is repeated while it still finds something, before the walk continues.
const PASSES_MAX: usize = 64;

/// Types whose indexes are filled at the same time.
const FILLED_TYPES_MAX: usize = 4;

pub(crate) struct Walker {
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Walker {
    pub(crate) fn start(access: Access, every: Duration) -> Result<Self, Error> {
        let (wake, woken) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("retention-walk".into())
            .spawn(move || run(&access, every, Signals { woken, again: false }))
            .map_err(|error| cannot_open(format!("could not start the retention thread: {error}")))?;
        Ok(Self { wake: Some(wake), thread: Some(thread) })
    }

    /// Begins a walk now, unless one is already due.
    pub(crate) fn wake(&self) {
        if let Some(wake) = &self.wake {
            let _ = wake.try_send(());
        }
    }

    /// The same for somebody else, who must be gone before the walker is.
    pub(crate) fn waker(&self) -> impl Fn() + Send + 'static {
        let wake = self.wake.clone();
        move || {
            let _ = wake.as_ref().map(|wake| wake.try_send(()));
        }
    }
}

impl Drop for Walker {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread ends the walks; it affects nothing that was acknowledged.
            let _ = thread.join();
        }
    }
}

fn run(access: &Access, every: Duration, mut signals: Signals) {
    // What an earlier process has begun to fill. The walk itself may wait.
    fill(access, &mut signals);
    while signals.wait(every) {
        fill(access, &mut signals);
        if let Err(error) = walk(access, &mut signals) {
            tracing::warn!(%error, "the retention walk was interrupted");
        }
    }
}

fn fill(access: &Access, signals: &mut Signals) {
    if let Err(error) = fill_indexes(access, signals) {
        tracing::warn!(%error, "the filling of indexes was interrupted");
    }
}

/// Fills new indexes. Each command looks at a bounded number of records, and others get their turns in between.
fn fill_indexes(access: &Access, signals: &mut Signals) -> Result<(), Error> {
    loop {
        let (_, catalogue) = access.view()?;
        let steps: Vec<TrimStep> = find_in_catalogue(&catalogue).into_iter().take(FILLED_TYPES_MAX).collect();
        // It takes space, and a walk that was asked for meanwhile may free some.
        let waits = access.disk.is_short(access.clock()) || signals.is_closing() || signals.again;
        if steps.is_empty() || waits {
            return Ok(());
        }
        access.propose(&catalogue, &Body::Trim(steps), |_| Ok(())).wait()?;
    }
}

fn walk(access: &Access, signals: &mut Signals) -> Result<(), Error> {
    let mut cursor: Option<Vec<u8>> = None;
    loop {
        let mut next = None;
        for _ in 0..PASSES_MAX {
            let steps;
            (steps, next) = look(access, cursor.as_deref())?;
            if steps.is_empty() {
                break;
            }
            let (_, catalogue) = access.view()?;
            access.propose(&catalogue, &Body::Trim(steps), |_| Ok(())).wait()?;
            if signals.is_closing() {
                return Ok(());
            }
        }
        if next.is_none() || signals.is_closing() {
            return Ok(());
        }
        cursor = next;
    }
}

fn look(access: &Access, cursor: Option<&[u8]>) -> Result<(Vec<TrimStep>, Option<Vec<u8>>), Error> {
    let (view, catalogue) = access.view()?;
    // The time of stamps, not the machine's clock, which may jump: a step found too early would trim nothing.
    let now_us = access.time().now().wall_us;
    let forgets = access.disk.is_short(access.clock());
    // Whatever cannot be read is kept.
    find_due(&Readable(&*view), &catalogue, &access.keys(), now_us, cursor, HEADS_PER_STEP, forgets)
        .map_err(|halt| from_halt(&halt))
}

/// Signals to the walk.
struct Signals {
    woken: Receiver<()>,
    /// Woken while walking: the requested part may be behind the walk's position.
    again: bool,
}

impl Signals {
    /// Waits for the next walk; false if there is none.
    fn wait(&mut self, every: Duration) -> bool {
        let again = std::mem::take(&mut self.again);
        again || !matches!(self.woken.recv_timeout(every), Err(RecvTimeoutError::Disconnected))
    }

    fn is_closing(&mut self) -> bool {
        let signal = self.woken.try_recv();
        self.again |= signal.is_ok();
        signal == Err(TryRecvError::Disconnected)
    }
}
