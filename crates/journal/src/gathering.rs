//! One call for the appends of several threads: while a call of the log below is under way, the next appends gather, and
//! go there together when it is over. Shards whose owners append at the same time share a sync this way.
//!
//! It has no thread. Whoever waits longest makes the next call for everybody who waits. Before that it gives those whose
//! entries were in the last call a moment to come back, or two shards would take turns for ever, each waiting for the sync of
//! the other. Only shards that came back within a moment the last time are waited for: one that appends now and then holds
//! nobody up, and a shard that appends alone waits for nobody.
//!
//! Keeps: the duties of the log below, and the order of appends to a shard. Two entries of one shard are never in one call,
//! and each caller gets the outcomes of its own entries.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::JournalError;
use crate::frame::{Entry, EntryKind, ShardId};
use crate::log::{Append, Ends, EntryLog, Position, Verified};
use crate::meter::now;

/// A moment is as long as the last call, which it can save, within these bounds. On a busy machine it takes a shard
/// longer to come back than a quick disk takes to sync; after a sync of a slow one, callers have waited long enough.
const MOMENT_MIN: Duration = Duration::from_millis(1);
const MOMENT_MAX: Duration = Duration::from_millis(5);

/// What became of an entry.
type Outcome = Result<Position, JournalError>;

/// An [`EntryLog`] that gathers the appends of several threads.
pub struct GatheringLog {
    log: Arc<dyn EntryLog>,
    state: Mutex<State>,
    /// Told when nobody is expected any more.
    gathered: Condvar,
    calls: AtomicU64,
    entries: AtomicU64,
    in_vain: AtomicU64,
}

/// The figures of a [`GatheringLog`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatheringMeter {
    /// Calls of the log below: one sync each, if that is files.
    pub calls: u64,
    /// Entries in these calls.
    pub entries: u64,
    /// Calls that waited for a shard that did not come.
    pub in_vain: u64,
}

#[derive(Default)]
struct State {
    /// Whether a call is under way, or somebody was told to make the next one.
    is_busy: bool,
    /// The longest wait first.
    waiting: VecDeque<Waiting>,
    /// The shards of the last call that have not come back since, and are expected to.
    expected: Vec<ShardId>,
    /// How long the last call took.
    call: Duration,
    habits: BTreeMap<ShardId, Habit>,
}

/// How a shard has come back so far.
#[derive(Clone, Copy)]
struct Habit {
    /// When its last call was over.
    called: Instant,
    /// Whether it was back within a moment, the last time.
    is_prompt: bool,
}

/// A caller that waits.
struct Waiting {
    entries: Vec<CopiedAppend>,
    seat: Arc<Seat>,
}

/// Where a caller waits.
#[derive(Default)]
struct Seat {
    turn: Mutex<Turn>,
    changed: Condvar,
}

#[derive(Default)]
enum Turn {
    #[default]
    Wait,
    /// Make the next call, for everybody who waits.
    Call,
    Answered(Vec<Outcome>),
}

/// An append of a caller that waits: another thread may make the call.
struct CopiedAppend {
    shard: ShardId,
    after: Position,
    kind: EntryKind,
    term: u64,
    node: u64,
    history: u64,
    payload: Vec<u8>,
}

impl GatheringLog {
    /// Gathers appends to `log`. Whoever appends to it in another way has calls of its own.
    pub fn new(log: Arc<dyn EntryLog>) -> Self {
        Self {
            log,
            state: Mutex::default(),
            gathered: Condvar::new(),
            calls: AtomicU64::new(0),
            entries: AtomicU64::new(0),
            in_vain: AtomicU64::new(0),
        }
    }

    /// Its figures so far.
    pub fn meter(&self) -> GatheringMeter {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        GatheringMeter { calls: count(&self.calls), entries: count(&self.entries), in_vain: count(&self.in_vain) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(&self, entries: &[Append<'_>]) -> Vec<Outcome> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.entries.fetch_add(entries.len() as u64, Ordering::Relaxed);
        let began = now();
        let outcomes = self.log.append_behind(entries);
        self.lock().end_call(began, entries);
        assert_eq!(outcomes.len(), entries.len(), "a log answers each entry");
        outcomes
    }

    /// Waits a moment for those of the last call who are expected, and takes everybody who waits then.
    fn gather(&self) -> Vec<Waiting> {
        let mut state = self.lock();
        let moment = state.moment();
        let began = now();
        while !state.expected.is_empty() {
            let Some(left) = moment.checked_sub(began.elapsed()) else {
                state.expected.clear();
                self.in_vain.fetch_add(1, Ordering::Relaxed);
                break;
            };
            let waited = self.gathered.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.take_gathered()
    }

    /// Makes a call for everybody who waits, of whom the caller is one.
    fn call_for_all(&self) {
        let mut answering = Answering { gathering: self, waiting: self.gather() };
        let entries: Vec<Append<'_>> =
            answering.waiting.iter().flat_map(|waiting| &waiting.entries).map(CopiedAppend::append).collect();
        let mut outcomes = self.call(&entries).into_iter();
        for Waiting { entries, seat } in answering.waiting.drain(..) {
            seat.set(Turn::Answered(outcomes.by_ref().take(entries.len()).collect()));
        }
    }
}

impl State {
    /// How long a call waits at most for those who are expected.
    fn moment(&self) -> Duration {
        self.call.clamp(MOMENT_MIN, MOMENT_MAX)
    }

    /// A call with these entries is over.
    fn end_call(&mut self, began: Instant, entries: &[Append<'_>]) {
        let called = now();
        self.call = called - began;
        self.expected.clear();
        for shard in entries.iter().map(|entry| entry.shard) {
            let habit = self.habits.entry(shard).or_insert(Habit { called, is_prompt: false });
            habit.called = called;
            if habit.is_prompt && !self.waits(shard) {
                self.expected.push(shard);
            }
        }
    }

    /// Notes whether these shards are back within a moment.
    fn note_habits(&mut self, entries: &[Append<'_>]) {
        let moment = self.moment();
        for entry in entries {
            if let Some(habit) = self.habits.get_mut(&entry.shard) {
                habit.is_prompt = habit.called.elapsed() <= moment;
            }
        }
    }

    /// Whether these entries are a call of their own, at once.
    fn begins_alone(&mut self, entries: &[Append<'_>]) -> bool {
        let alone = |shard: &ShardId| entries.iter().any(|entry| entry.shard == *shard);
        let begins = !self.is_busy && self.expected.iter().all(alone);
        self.is_busy |= begins;
        begins
    }

    /// Somebody appends to these shards.
    fn come_back(&mut self, entries: &[Append<'_>]) {
        self.expected.retain(|shard| entries.iter().all(|entry| entry.shard != *shard));
    }

    fn waits(&self, shard: ShardId) -> bool {
        self.waiting.iter().flat_map(|waiting| &waiting.entries).any(|entry| entry.shard == shard)
    }

    /// Takes the callers whose entries go into the next call. A second entry of a shard stays, and none overtakes it.
    fn take_gathered(&mut self) -> Vec<Waiting> {
        let mut shards = BTreeSet::new();
        let mut taken = Vec::with_capacity(self.waiting.len());
        for waiting in std::mem::take(&mut self.waiting) {
            let is_first = waiting.entries.iter().all(|entry| !shards.contains(&entry.shard));
            shards.extend(waiting.entries.iter().map(|entry| entry.shard));
            match is_first {
                true => taken.push(waiting),
                false => self.waiting.push_back(waiting),
            }
        }
        taken
    }
}

impl Seat {
    fn set(&self, turn: Turn) {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = turn;
        self.changed.notify_one();
    }

    /// Waits until there is something to do, or an answer.
    fn wait(&self) -> Turn {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        while matches!(*turn, Turn::Wait) {
            turn = self.changed.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::take(&mut turn)
    }
}

/// Callers whose entries are in a call. However the call ends, including by a panic, each is answered, and the next call is
/// made.
struct Answering<'log> {
    gathering: &'log GatheringLog,
    waiting: Vec<Waiting>,
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        // What the call has left behind is not known.
        let failed = |_: &CopiedAppend| Err(JournalError::io("append", "the thread that appended has panicked"));
        for Waiting { entries, seat } in self.waiting.drain(..) {
            seat.set(Turn::Answered(entries.iter().map(failed).collect()));
        }
        let mut state = self.gathering.lock();
        match state.waiting.front() {
            Some(next) => next.seat.set(Turn::Call),
            None => state.is_busy = false,
        }
    }
}

impl CopiedAppend {
    fn new(append: &Append<'_>) -> Self {
        let Append { shard, after, kind, term, node, history, payload } = *append;
        Self { shard, after, kind, term, node, history, payload: payload.to_vec() }
    }

    fn append(&self) -> Append<'_> {
        let Self { shard, after, kind, term, node, history, ref payload } = *self;
        Append { shard, after, kind, term, node, history, payload }
    }
}

impl EntryLog for GatheringLog {
    fn append_behind(&self, entries: &[Append<'_>]) -> Vec<Outcome> {
        if entries.is_empty() {
            return Vec::new();
        }
        let begins_alone = {
            let mut state = self.lock();
            state.note_habits(entries);
            state.begins_alone(entries)
        };
        if begins_alone {
            let _next = Answering { gathering: self, waiting: Vec::new() };
            return self.call(entries);
        }
        // Copied while nobody is kept waiting by it; the call that was under way may be over by then.
        let (seat, copied) = (Arc::<Seat>::default(), entries.iter().map(CopiedAppend::new).collect());
        let mut state = self.lock();
        let begins = !std::mem::replace(&mut state.is_busy, true);
        state.waiting.push_back(Waiting { entries: copied, seat: seat.clone() });
        state.come_back(entries);
        if state.expected.is_empty() {
            self.gathered.notify_one();
        }
        drop(state);
        if begins {
            self.call_for_all();
        }
        loop {
            match seat.wait() {
                Turn::Answered(outcomes) => return outcomes,
                Turn::Call | Turn::Wait => self.call_for_all(),
            }
        }
    }

    fn read(&self, shard: ShardId, first: u64, bytes_max: usize) -> Result<Vec<(Entry, Position)>, JournalError> {
        self.log.read(shard, first, bytes_max)
    }

    fn ends(&self, shard: ShardId) -> Result<Ends, JournalError> {
        self.log.ends(shard)
    }

    fn bytes_from(&self, shard: ShardId, first: u64) -> Option<u64> {
        self.log.bytes_from(shard, first)
    }

    fn start_after(&self, shard: ShardId, at: Position, history: u64) -> Result<(), JournalError> {
        self.log.start_after(shard, at, history)
    }

    fn cut(&self, shard: ShardId, first_kept: u64) -> Result<(), JournalError> {
        self.log.cut(shard, first_kept)
    }

    fn upkeep(&self) -> Result<(), JournalError> {
        self.log.upkeep()
    }

    fn keep_spares(&self, keep: bool) -> Result<(), JournalError> {
        self.log.keep_spares(keep)
    }

    fn bytes(&self) -> u64 {
        self.log.bytes()
    }

    fn kept_bytes(&self) -> u64 {
        self.log.kept_bytes()
    }

    fn settle(&self) -> Result<(), JournalError> {
        self.log.settle()
    }

    fn verify(&self) -> Result<Verified, JournalError> {
        self.log.verify()
    }
}
