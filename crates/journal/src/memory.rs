//! A log in memory, shared by everybody who has a clone of it, as a service would be: it can delay its answers, lose an
//! answer, carry an append out late, and forget its end. It shows what a node does then; nothing in it survives the process.
//!
//! Keeps: J2, J6 and J7. Never: writes a file.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::JournalError;
use crate::frame::{Entry, EntryKind, ShardId};
use crate::log::{Append, Ends, EntryLog, Position, Verified, check_behind};

/// What a [`MemoryLog`] does now and then.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct MemoryHabits {
    /// Of so many appends, one is not answered ([`JournalError::Unanswered`]). The first of those is in the log, the second
    /// is not, and so on in turn. 0: never.
    pub unanswered_one_in: u64,
    /// Of the appends that are not answered, every third is carried out late: by one of the next so many calls, if nothing
    /// else is behind its position then. 0: never.
    pub late_by_calls: u64,
    /// How long an append takes.
    pub delay: Duration,
}

impl MemoryHabits {
    /// Sets [`unanswered_one_in`](Self::unanswered_one_in).
    pub fn unanswered_one_in(mut self, appends: u64) -> Self {
        self.unanswered_one_in = appends;
        self
    }

    /// Sets [`late_by_calls`](Self::late_by_calls).
    pub fn late_by_calls(mut self, calls: u64) -> Self {
        self.late_by_calls = calls;
        self
    }

    /// Sets [`delay`](Self::delay).
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    fn fate(&self, appends: u64) -> Fate {
        if self.unanswered_one_in == 0 || !appends.is_multiple_of(self.unanswered_one_in) {
            return Fate::Answered;
        }
        let unanswered = appends / self.unanswered_one_in;
        let fates = if self.late_by_calls > 0 { 3 } else { 2 };
        match unanswered % fates {
            1 => Fate::Appended,
            2 => Fate::Lost,
            _ if self.late_by_calls > 0 => Fate::Late { calls: 1 + unanswered / fates % self.late_by_calls },
            _ => Fate::Lost,
        }
    }
}

/// What becomes of an append that would succeed. Only the first kind is answered.
enum Fate {
    Answered,
    Appended,
    Lost,
    Late { calls: u64 },
}

/// A log in memory.
///
/// ```
/// # use statehouse_journal as journal;
/// use journal::memory::MemoryLog;
/// use journal::{Append, EntryKind, EntryLog, JournalError, Position};
///
/// let log = MemoryLog::default();
/// let kind = EntryKind::COMMANDS;
/// let first = Append { shard: 1, after: Position::START, kind, term: 1, node: 0, history: 7, payload: b"one" };
/// let position = log.append_behind(&[first]).remove(0)?;
/// assert_eq!(position.index, 1);
/// // At most one entry is ever behind another (J6).
/// let refused = log.append_behind(&[Append { payload: b"another", ..first }]).remove(0);
/// assert!(matches!(refused, Err(JournalError::Deposed { .. })));
/// # Ok::<(), JournalError>(())
/// ```
#[derive(Clone, Default)]
pub struct MemoryLog {
    state: Arc<Mutex<State>>,
    habits: MemoryHabits,
}

#[derive(Default)]
struct State {
    shards: BTreeMap<ShardId, Shard>,
    calls: u64,
    appends: u64,
    /// Appends on their way.
    late: Vec<LateAppend>,
}

struct LateAppend {
    due_at_call: u64,
    shard: ShardId,
    after: Position,
    kind: EntryKind,
    term: u64,
    node: u64,
    history: u64,
    payload: Vec<u8>,
}

impl LateAppend {
    fn new(append: &Append<'_>, due_at_call: u64) -> Self {
        let Append { shard, after, kind, term, node, history, payload } = *append;
        Self { due_at_call, shard, after, kind, term, node, history, payload: payload.to_vec() }
    }

    fn append(&self) -> Append<'_> {
        let Self { shard, after, kind, term, node, history, ref payload, .. } = *self;
        Append { shard, after, kind, term, node, history, payload }
    }
}

impl State {
    /// Carries out the late appends that are due.
    fn carry_out_late(&mut self) {
        let calls = self.calls;
        for due in self.late.extract_if(.., |late| late.due_at_call <= calls) {
            let found = self.shards.entry(due.shard).or_default();
            if found.check(&due.append()).is_ok() {
                found.push(&due.append());
            }
        }
    }
}

#[derive(Default)]
struct Shard {
    /// What the first entry is behind.
    start: Position,
    /// None if nobody has said yet.
    history: Option<u64>,
    entries: VecDeque<(Entry, Position)>,
}

impl Shard {
    fn last(&self) -> Position {
        self.entries.back().map_or(self.start, |(_, position)| *position)
    }

    fn first_kept(&self) -> Option<u64> {
        self.entries.front().map(|(entry, _)| entry.index)
    }

    fn check(&self, append: &Append<'_>) -> Result<(), JournalError> {
        check_behind(append, self.last(), self.history)
    }

    /// Adds an entry behind the last one.
    fn push(&mut self, append: &Append<'_>) -> Position {
        let Append { shard, after, kind, term, node, history, payload } = *append;
        let index = after.index + 1;
        let durable = self.first_kept().map_or(0, |_| after.index);
        let payload = payload.to_vec();
        let entry = Entry { index, shard, kind, term, node, history, durable, previous_hash: after.hash, payload };
        let position = Position { index, hash: entry.hash() };
        self.history = Some(history);
        self.entries.push_back((entry, position));
        position
    }

    fn kept_bytes(&self) -> u64 {
        // The last one always stays.
        let bytes: usize = self.entries.iter().map(|(entry, _)| entry.payload.len()).sum();
        if self.entries.len() > 1 { bytes as u64 } else { 0 }
    }
}

impl MemoryLog {
    /// An empty log with habits.
    pub fn with_habits(habits: MemoryHabits) -> Self {
        Self { state: Arc::default(), habits }
    }

    /// Forgets the last entries of a shard, although they were durable, and every append to it that is on its way.
    pub fn forget(&self, shard: ShardId, entries: usize) {
        let mut state = self.lock();
        state.late.retain(|late| late.shard != shard);
        if let Some(shard) = state.shards.get_mut(&shard) {
            let left = shard.entries.len().saturating_sub(entries);
            if let Some((first, _)) = shard.entries.front().filter(|_| left == 0) {
                shard.start = Position { index: first.index - 1, hash: first.previous_hash };
            }
            shard.entries.truncate(left);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, for a call of the log other than for its sizes. Late appends arrive before it.
    fn begin_call(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        state.calls += 1;
        state.carry_out_late();
        state
    }

    fn append(&self, append: &Append<'_>) -> Result<Position, JournalError> {
        let Append { shard, after, .. } = *append;
        let mut state = self.begin_call();
        state.appends += 1;
        let fate = self.habits.fate(state.appends);
        let found = state.shards.entry(shard).or_default();
        found.check(append)?;
        match fate {
            Fate::Answered => return Ok(found.push(append)),
            Fate::Appended => {
                found.push(append);
            }
            Fate::Lost => {}
            Fate::Late { calls } => {
                let due_at_call = state.calls + calls;
                state.late.push(LateAppend::new(append, due_at_call));
            }
        }
        Err(JournalError::Unanswered { shard, after })
    }
}

impl EntryLog for MemoryLog {
    fn append_behind(&self, entries: &[Append<'_>]) -> Vec<Result<Position, JournalError>> {
        if !self.habits.delay.is_zero() {
            std::thread::sleep(self.habits.delay);
        }
        entries.iter().map(|entry| self.append(entry)).collect()
    }

    fn read(&self, shard: ShardId, first: u64, bytes_max: usize) -> Result<Vec<(Entry, Position)>, JournalError> {
        let state = self.begin_call();
        let Some(found) = state.shards.get(&shard) else { return Ok(Vec::new()) };
        let Some(first_kept) = found.first_kept().filter(|_| first <= found.last().index) else {
            return Ok(Vec::new());
        };
        let Some(skipped) = first.checked_sub(first_kept) else {
            let what = format!("the entry was given up; entries are kept from {first_kept} on");
            return Err(JournalError::damaged(format!("shard {shard}, entry {first}"), what));
        };
        let (mut read, mut bytes) = (Vec::new(), 0);
        for (entry, position) in found.entries.iter().skip(usize::try_from(skipped).unwrap_or(usize::MAX)) {
            bytes += entry.payload.len();
            if !read.is_empty() && bytes > bytes_max {
                break;
            }
            read.push((entry.clone(), *position));
        }
        Ok(read)
    }

    fn ends(&self, shard: ShardId) -> Result<Ends, JournalError> {
        let state = self.begin_call();
        Ok(state.shards.get(&shard).map_or(Ends::default(), |shard| Ends {
            first_kept: shard.first_kept(),
            last: shard.last(),
            history: shard.history,
        }))
    }

    fn start_after(&self, shard: ShardId, at: Position, history: u64) -> Result<(), JournalError> {
        let mut state = self.begin_call();
        let found = state.shards.entry(shard).or_default();
        if !found.entries.is_empty() {
            let what = "cannot set the start of a shard that already has entries";
            return Err(JournalError::damaged(format!("shard {shard}"), what));
        }
        (found.start, found.history) = (at, Some(history));
        Ok(())
    }

    fn cut(&self, shard: ShardId, first_kept: u64) -> Result<(), JournalError> {
        if let Some(found) = self.begin_call().shards.get_mut(&shard) {
            while found.entries.len() > 1 && found.first_kept().is_some_and(|first| first < first_kept) {
                found.entries.pop_front();
            }
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.lock().shards.values().flat_map(|shard| &shard.entries).map(|(entry, _)| entry.payload.len() as u64).sum()
    }

    fn kept_bytes(&self) -> u64 {
        self.lock().shards.values().map(Shard::kept_bytes).sum()
    }

    fn settle(&self) -> Result<(), JournalError> {
        Ok(())
    }

    fn verify(&self) -> Result<Verified, JournalError> {
        let state = self.begin_call();
        let mut verified = Verified::default();
        for (shard, found) in &state.shards {
            let mut before = None;
            for (entry, position) in &found.entries {
                let follows = before.is_none_or(|before: Position| {
                    (before.index + 1, before.hash) == (entry.index, entry.previous_hash)
                });
                if !follows || entry.hash() != position.hash {
                    let place = format!("shard {shard}, entry {}", entry.index);
                    return Err(JournalError::damaged(place, "it does not follow the previous entry"));
                }
                before = Some(*position);
                verified.entries += 1;
                verified.payload_bytes += entry.payload.len() as u64;
            }
        }
        Ok(verified)
    }
}
