//! The journal of one process: all commands in a bounded queue become one entry and one sync.
//!
//! Callers that arrive during a sync share the next one; there is no timer and no artificial wait. Keeps: J1 (no
//! command is acknowledged before its entry is durable), J4 (after the first failure nothing more is done) and J5
//! (commands are entered, and handed on, in the order they were submitted).

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::JournalError;
use crate::frame::{EntryKind, ShardId};
use crate::log::{Append, EntryLog, Position};
use crate::meter::{JournalMeter, Meter, now};
use crate::queue::{Queue, Work};

/// Bounds of a [`LocalJournal`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LocalOptions {
    /// Commands that wait for the writer.
    pub queue_commands_max: usize,
    /// Bytes of the commands that wait.
    pub queue_bytes_max: usize,
    /// Bytes of commands in one entry, unless a single command is larger.
    pub entry_bytes_max: usize,
    /// Bytes of the entries in the files that are not discarded yet; commands are refused while they take more. The files
    /// themselves are larger by the room that is reserved ahead.
    pub files_bytes_max: u64,
    /// The maximum age of the watermark on disk.
    pub watermark_age_max: Duration,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self {
            queue_commands_max: 16_384,
            queue_bytes_max: 64 << 20,
            entry_bytes_max: 4 << 20,
            files_bytes_max: 1 << 30,
            watermark_age_max: Duration::from_secs(1),
        }
    }
}

impl LocalOptions {
    /// Sets [`queue_commands_max`](Self::queue_commands_max).
    pub fn queue_commands_max(mut self, commands: usize) -> Self {
        self.queue_commands_max = commands;
        self
    }

    /// Sets [`queue_bytes_max`](Self::queue_bytes_max).
    pub fn queue_bytes_max(mut self, bytes: usize) -> Self {
        self.queue_bytes_max = bytes;
        self
    }

    /// Sets [`entry_bytes_max`](Self::entry_bytes_max).
    pub fn entry_bytes_max(mut self, bytes: usize) -> Self {
        self.entry_bytes_max = bytes;
        self
    }

    /// Sets [`files_bytes_max`](Self::files_bytes_max).
    pub fn files_bytes_max(mut self, bytes: u64) -> Self {
        self.files_bytes_max = bytes;
        self
    }
}

/// A command on its way into the journal.
pub trait Queued: Send + 'static {
    /// Its size in an entry, in bytes.
    fn bytes(&self) -> usize;
}

/// Builds entries from commands, and learns their fate. It runs on the writer thread.
pub trait Consumer<C>: Send + 'static {
    /// The payload of an entry that holds `commands`.
    fn seal(&mut self, commands: &[C]) -> Vec<u8>;

    /// The entry is durable, here.
    fn committed(&mut self, at: Position, payload: Vec<u8>, commands: Vec<C>);

    /// The commands will not be committed by this process. If they were `written`, they may yet be in the journal
    /// when it is next opened.
    fn lost(&mut self, commands: Vec<C>, written: bool, error: &JournalError);
}

/// Why a command was not taken. It is not in the journal and never will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueFull {
    /// Too many commands wait already.
    #[error("{commands_max} commands are already waiting for the journal (queue_commands_max); retry shortly")]
    Commands {
        /// The limit.
        commands_max: usize,
    },
    /// Too many bytes wait already.
    #[error("{bytes_max} bytes are already waiting for the journal (queue_bytes_max); retry shortly")]
    Bytes {
        /// The limit.
        bytes_max: usize,
    },
    /// The journal's files are as large as they may be, until the store has caught up.
    #[error("the journal has grown to {bytes} bytes (files_bytes_max); retry when the store has caught up")]
    JournalBytes {
        /// The size of the entries that are not discarded yet.
        bytes: u64,
    },
    /// The journal was closed, or stopped at a failure.
    #[error("the journal is closed")]
    Closed,
}

/// Who appends to a shard, and behind what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// The shard.
    pub shard: ShardId,
    /// The last entry that the owner has applied. The journal does not ask the log for its end: an entry that somebody else
    /// has appended since would then be passed over, and the owner would go on without it.
    pub after: Position,
    /// The term of the owner.
    pub term: u64,
    /// The node that owns the shard; 0 in a library.
    pub node: u64,
    /// The history of the shard that the owner has applied, and continues.
    pub history: u64,
}

/// The journal of one process.
pub struct LocalJournal<C: Queued> {
    queue: Arc<Queue<C>>,
    failure: Arc<Mutex<Option<JournalError>>>,
    meter: Arc<Meter>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl<C: Queued> LocalJournal<C> {
    /// Starts the writer thread of an owner. Its first entry is appended behind [`Ownership::after`].
    pub fn start(
        log: Arc<dyn EntryLog>,
        owner: Ownership,
        options: &LocalOptions,
        consumer: impl Consumer<C>,
    ) -> Result<Self, JournalError> {
        let queue = Arc::new(Queue::new(options));
        let failure = Arc::new(Mutex::new(None));
        let meter = Arc::new(Meter::new(owner.after.index));
        let writer = Writer {
            log,
            owner,
            last: owner.after,
            options: options.clone(),
            queue: queue.clone(),
            failure: failure.clone(),
            meter: meter.clone(),
            consumer,
        };
        let writer = std::thread::Builder::new()
            .name("journal-write".into())
            .spawn(move || writer.run())
            .map_err(|error| JournalError::io("start the writer thread", error))?;
        Ok(Self { queue, failure, meter, writer: Mutex::new(Some(writer)) })
    }

    /// Hands a command to the writer, or returns it with the reason.
    pub fn submit(&self, command: C) -> Result<(), (C, QueueFull)> {
        self.queue.push(command)
    }

    /// Lets the writer discard the entries before `first_kept`.
    pub fn cut(&self, first_kept: u64) {
        self.queue.cut(first_kept);
    }

    /// The failure that stopped the journal, if one did.
    pub fn failure(&self) -> Option<JournalError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Its current figures.
    pub fn meter(&self) -> JournalMeter {
        self.queue.measure(self.meter.read())
    }

    /// Accepts no more commands and returns the waiting ones: none of them is written. An entry being written now still
    /// becomes durable.
    pub fn stop(&self) -> Vec<C> {
        let abandoned = self.queue.abandon();
        self.queue.close();
        abandoned
    }

    /// Writes what still waits and ends the writer thread.
    pub fn close(&self) {
        self.queue.close();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // A panic of the writer thread has left its commands unanswered; their waiters see them dropped.
            let _ = writer.join();
        }
    }
}

impl<C: Queued> Drop for LocalJournal<C> {
    fn drop(&mut self) {
        self.close();
    }
}

struct Writer<C: Queued, K> {
    log: Arc<dyn EntryLog>,
    owner: Ownership,
    /// The entry that the next one is appended behind.
    last: Position,
    options: LocalOptions,
    queue: Arc<Queue<C>>,
    failure: Arc<Mutex<Option<JournalError>>>,
    meter: Arc<Meter>,
    consumer: K,
}

impl<C: Queued, K: Consumer<C>> Writer<C, K> {
    fn run(mut self) {
        // However this thread ends, including by a panic of the consumer, nobody is left waiting for it.
        let _abandon = AbandonAtEnd(self.queue.clone());
        if let Err(error) = self.write_until_closed() {
            tracing::error!(%error, "the journal stopped");
            // Set first: a caller that learns that the journal is closed can ask why.
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
            let abandoned = self.queue.abandon();
            self.consumer.lost(abandoned, false, &error);
        }
    }

    fn write_until_closed(&mut self) -> Result<(), JournalError> {
        let mut watermark_written = now();
        let mut watermark_stale = false;
        self.check_size();
        loop {
            // Without anything new, the thread sleeps until there is.
            let patience = watermark_stale.then_some(self.options.watermark_age_max);
            match self.queue.next(patience) {
                Work::Append(commands) => {
                    self.append(commands)?;
                    put_off_without_room(self.log.upkeep())?;
                    watermark_stale = true;
                }
                Work::Cut(first_kept) => {
                    watermark_stale |= put_off_without_room(self.log.cut(self.owner.shard, first_kept))?;
                    self.check_size();
                }
                Work::Nothing => {}
                Work::Close => return put_off_without_room(self.log.settle()).map(|_| ()),
            }
            if watermark_stale && watermark_written.elapsed() >= self.options.watermark_age_max {
                watermark_stale = put_off_without_room(self.log.settle())?;
                watermark_written = now();
                self.check_size();
            }
        }
    }

    fn append(&mut self, commands: Vec<C>) -> Result<(), JournalError> {
        let payload = self.consumer.seal(&commands);
        let began = now();
        let (Ownership { shard, term, node, history, .. }, kind) = (self.owner, EntryKind::COMMANDS);
        let entry = Append { shard, after: self.last, kind, term, node, history, payload: &payload };
        let appended = self.log.append_behind(&[entry]).pop().expect("an answer for each entry");
        match appended {
            Ok(position) => {
                self.last = position;
                self.meter.synced(position.index, began.elapsed());
                self.consumer.committed(position, payload, commands);
                self.check_size();
                Ok(())
            }
            Err(error @ JournalError::NoSpace { .. }) => {
                tracing::debug!(%error, commands = commands.len(), "commands were refused");
                self.consumer.lost(commands, false, &error);
                Ok(())
            }
            Err(error) => {
                self.consumer.lost(commands, error.may_be_appended(), &error);
                Err(error)
            }
        }
    }

    fn check_size(&self) {
        let bytes = self.log.kept_bytes();
        self.queue.files_full((bytes > self.options.files_bytes_max).then_some(bytes));
    }
}

/// Whether there was no room for what can be done later. No entry is lost by that.
fn put_off_without_room(done: Result<(), JournalError>) -> Result<bool, JournalError> {
    match done {
        Ok(()) => Ok(false),
        Err(error @ JournalError::NoSpace { .. }) => {
            tracing::debug!(%error, "the journal's watermark is written later");
            Ok(true)
        }
        Err(error) => Err(error),
    }
}

struct AbandonAtEnd<C: Queued>(Arc<Queue<C>>);

impl<C: Queued> Drop for AbandonAtEnd<C> {
    fn drop(&mut self) {
        drop(self.0.abandon());
    }
}
