//! A node's line to the log, which can be cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use journal::memory::MemoryLog;
use journal::{Append, Ends, Entry, EntryLog, JournalError, Position, ShardId, Verified};

/// A line to the log. Cutting it is killing the node, for everybody but the node.
#[derive(Clone)]
pub(super) struct Line {
    log: MemoryLog,
    cut: Arc<AtomicBool>,
    calls: Arc<AtomicU64>,
}

impl Line {
    pub(super) fn new(log: &MemoryLog) -> Self {
        Self { log: log.clone(), cut: Arc::default(), calls: Arc::default() }
    }

    pub(super) fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
    }

    fn whole(&self) -> Result<&MemoryLog, JournalError> {
        match self.cut.load(Ordering::SeqCst) {
            false => Ok(&self.log),
            true => Err(JournalError::Io { action: "reach the log", reason: "the line is cut".into() }),
        }
    }
}

impl EntryLog for Line {
    fn append_behind(&self, entries: &[Append<'_>]) -> Vec<Result<Position, JournalError>> {
        let unanswered = |entry: &Append<'_>| JournalError::Unanswered { shard: entry.shard, after: entry.after };
        // What was under way when the line was cut has arrived, every other time.
        let arrives = self.calls.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
        let was_cut = self.cut.load(Ordering::SeqCst);
        let mut outcomes = match was_cut && !arrives {
            true => Vec::new(),
            false => self.log.append_behind(entries),
        };
        if was_cut || self.cut.load(Ordering::SeqCst) {
            outcomes = entries.iter().map(|entry| Err(unanswered(entry))).collect();
        }
        outcomes
    }

    fn read(&self, shard: ShardId, first: u64, bytes_max: usize) -> Result<Vec<(Entry, Position)>, JournalError> {
        self.whole()?.read(shard, first, bytes_max)
    }

    fn ends(&self, shard: ShardId) -> Result<Ends, JournalError> {
        self.whole()?.ends(shard)
    }

    fn start_after(&self, shard: ShardId, at: Position, history: u64) -> Result<(), JournalError> {
        self.whole()?.start_after(shard, at, history)
    }

    /// The other node may not have read what this one could do without.
    fn cut(&self, _: ShardId, _: u64) -> Result<(), JournalError> {
        self.whole().map(|_| ())
    }

    fn bytes(&self) -> u64 {
        self.log.bytes()
    }

    fn kept_bytes(&self) -> u64 {
        self.log.kept_bytes()
    }

    fn settle(&self) -> Result<(), JournalError> {
        self.whole()?.settle()
    }

    fn verify(&self) -> Result<Verified, JournalError> {
        self.whole()?.verify()
    }
}
