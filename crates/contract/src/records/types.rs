//! Record types: what a space declares for a prefix of record names.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::guards::OWNER;
use crate::limits::FIELD_NAME_BYTES_MAX;
use crate::reason::RefusalReason;

/// The meaning of a state to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateKind {
    /// Ready to be claimed.
    Ready,
    /// Held by a worker, under a lease.
    Held,
    /// Finished, for good.
    Terminal,
}

/// A state of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Its name, as stored in the state field.
    pub name: String,
    /// Its meaning.
    pub kind: StateKind,
}

/// The kind of an indexed field, which decides how it sorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// Bytes, by their bytes.
    Bytes,
    /// An integer that is not negative.
    Unsigned,
    /// An integer.
    Signed,
    /// Text, by its bytes.
    Text,
    /// A time in ms since 1970 in UTC.
    Time,
}

/// The order in which ready records are claimed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ReadyOrder {
    /// The record that has been ready longest comes first.
    #[default]
    Oldest,
    /// The record with the smallest integer in a field comes first, then the oldest. A missing field counts as 0.
    Field(String),
}

/// The pause of a failed record before it is ready again: `first`, doubled each time, up to `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The pause after the first attempt.
    pub first: Duration,
    /// The longest pause.
    pub max: Duration,
}

impl Backoff {
    /// The pause after an attempt, counted from 1.
    ///
    /// ```
    /// use statehouse_contract::records::types::Backoff;
    /// use std::time::Duration;
    /// let backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(5) };
    /// assert_eq!([1, 2, 3, 4, 99].map(|attempt| backoff.after(attempt).as_secs()), [1, 2, 4, 5, 5]);
    /// ```
    pub fn after(&self, attempt: u64) -> Duration {
        let doublings = u32::try_from(attempt.saturating_sub(1)).unwrap_or(u32::MAX).min(62);
        self.first.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX)).min(self.max)
    }
}

/// A declaration for a prefix of record names. States differ by their kind; the store itself moves records to the first
/// state of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordType {
    /// Its name.
    pub name: String,
    /// The field that shows the state.
    pub state_field: String,
    /// The states; a new record is in the first.
    pub states: Vec<State>,
    /// The terminal state of a completed record.
    pub completed: String,
    /// The terminal state of a record whose attempts are used up.
    pub failed: String,
    /// The indexed fields.
    pub indexes: Vec<(String, IndexKind)>,
    /// The TTL of a record put without one; none means forever.
    pub default_ttl: Option<Duration>,
    /// The TTL of a record once it reaches a terminal state; none leaves its TTL unchanged.
    pub terminal_ttl: Option<Duration>,
    /// The lease of a claim that does not set one.
    pub lease: Duration,
    /// The maximum number of attempts.
    pub attempts_max: u64,
    /// The pause between attempts.
    pub backoff: Backoff,
    /// The order in which ready records are claimed.
    pub ready_order: ReadyOrder,
    /// The queue that gets a message when a record was rescued; none sends no message.
    pub rescued_to: Option<String>,
    /// The queue that gets a message when a record's attempts are used up; none sends no message.
    pub exhausted_to: Option<String>,
    /// Whether, while an attempt holds a record, only writes with its fence may change it.
    pub guarded: bool,
}

/// The name of the built-in type.
pub const TASK: &str = "task";

/// The prefix that the built-in type is declared for in every space.
pub const TASK_PREFIX: &str = "gbe.state.tasks.";

impl RecordType {
    /// The built-in type: a job that is pending, claimed, running, and finally completed, failed or cancelled.
    ///
    /// ```
    /// use statehouse_contract::records::types::{RecordType, StateKind};
    /// let task = RecordType::task();
    /// assert_eq!(task.states.iter().filter(|state| state.kind == StateKind::Terminal).count(), 3);
    /// ```
    pub fn task() -> Self {
        let state = |name: &str, kind| State { name: name.to_owned(), kind };
        Self {
            name: TASK.to_owned(),
            state_field: "state".to_owned(),
            states: vec![
                state("pending", StateKind::Ready),
                state("claimed", StateKind::Held),
                state("running", StateKind::Held),
                state("completed", StateKind::Terminal),
                state("failed", StateKind::Terminal),
                state("cancelled", StateKind::Terminal),
            ],
            completed: "completed".to_owned(),
            failed: "failed".to_owned(),
            indexes: vec![(UPDATED_AT.to_owned(), IndexKind::Time)],
            default_ttl: None,
            terminal_ttl: Some(Duration::from_secs(7 * 24 * 60 * 60)),
            lease: Duration::from_secs(300),
            attempts_max: 4,
            backoff: Backoff { first: Duration::from_secs(1), max: Duration::from_secs(300) },
            ready_order: ReadyOrder::Oldest,
            rescued_to: None,
            exhausted_to: None,
            guarded: false,
        }
    }

    /// The built-in type of the records that own groups: free, or owned under a lease. It has no terminal state, no pause
    /// between attempts, and no end of them.
    ///
    /// ```
    /// use statehouse_contract::records::types::{RecordType, StateKind};
    /// let owner = RecordType::owner();
    /// assert!(owner.states.iter().all(|state| state.kind != StateKind::Terminal) && owner.fault().is_none());
    /// ```
    pub fn owner() -> Self {
        let state = |name: &str, kind| State { name: name.to_owned(), kind };
        Self {
            name: OWNER.to_owned(),
            states: vec![state("free", StateKind::Ready), state("owned", StateKind::Held)],
            completed: String::new(),
            failed: String::new(),
            indexes: Vec::new(),
            terminal_ttl: None,
            lease: Duration::from_secs(30),
            attempts_max: u64::MAX,
            backoff: Backoff { first: Duration::ZERO, max: Duration::ZERO },
            guarded: true,
            ..Self::task()
        }
    }

    /// The type, with writes to a held record for its holder only.
    pub fn guarded(mut self) -> Self {
        self.guarded = true;
        self
    }

    /// Whether its records are never finished: it has no terminal states, and no end of attempts.
    pub fn never_ends(&self) -> bool {
        let terminal = self.states.iter().any(|state| state.kind == StateKind::Terminal);
        let named = self.states.iter().all(|state| !state.name.is_empty());
        named && !terminal && self.completed.is_empty() && self.failed.is_empty() && self.attempts_max == u64::MAX
    }

    /// The type under another name.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The type with another lease.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// The type with another number of attempts.
    pub fn attempts_max(mut self, attempts: u64) -> Self {
        self.attempts_max = attempts;
        self
    }

    /// The type with another pause between attempts.
    pub fn backoff(mut self, first: Duration, max: Duration) -> Self {
        self.backoff = Backoff { first, max };
        self
    }

    /// The type with one more index, or with another kind for one that it has.
    pub fn index(mut self, field: impl Into<String>, kind: IndexKind) -> Self {
        let field = field.into();
        match self.indexes.iter_mut().find(|(indexed, _)| *indexed == field) {
            Some((_, known)) => *known = kind,
            None => self.indexes.push((field, kind)),
        }
        self
    }

    /// The type, with messages to these queues when a record is rescued and when its attempts are used up.
    pub fn sweep_to(mut self, rescued: impl Into<String>, exhausted: impl Into<String>) -> Self {
        self.rescued_to = Some(rescued.into());
        self.exhausted_to = Some(exhausted.into());
        self
    }

    /// Every name in it: its own, those of its states and fields, and of the queues it sends to.
    fn names(&self) -> impl Iterator<Item = &str> {
        let order = match &self.ready_order {
            ReadyOrder::Oldest => None,
            ReadyOrder::Field(field) => Some(field),
        };
        let states = self.states.iter().map(|state| &state.name);
        let fields = self.indexes.iter().map(|(field, _)| field);
        let queues = self.rescued_to.iter().chain(&self.exhausted_to);
        let own = [&self.name, &self.state_field].into_iter();
        own.chain(states).chain(fields).chain(queues).chain(order).map(String::as_str)
    }

    /// The state with this name, and its number.
    pub fn state(&self, name: &str) -> Option<(usize, &State)> {
        self.states.iter().enumerate().find(|(_, state)| state.name == name)
    }

    /// Why this type is invalid, if it is.
    pub fn fault(&self) -> Option<RefusalReason> {
        let kind_of = |name: &str| self.state(name).map(|(_, state)| state.kind);
        let has = |kind| self.states.iter().any(|state| state.kind == kind);
        if self.name.is_empty() || self.state_field.is_empty() {
            Some(RefusalReason::EmptyName)
        } else if self.states.len() > STATES_MAX || self.indexes.len() > INDEXES_MAX {
            Some(RefusalReason::TooManyStates)
        } else if self.names().any(|name| name.len() > FIELD_NAME_BYTES_MAX) {
            Some(RefusalReason::LongName)
        } else if has_twice(self.states.iter().map(|state| &*state.name)) {
            Some(RefusalReason::RepeatedState)
        } else if has_twice(self.indexes.iter().map(|(field, _)| &**field)) {
            Some(RefusalReason::RepeatedIndex)
        } else if self.states.first().is_none_or(|state| state.kind != StateKind::Ready) {
            Some(RefusalReason::FirstStateNotReady)
        } else if !has(StateKind::Held) {
            Some(RefusalReason::NoHeldState)
        } else if !self.never_ends()
            && [&self.completed, &self.failed].into_iter().any(|name| kind_of(name) != Some(StateKind::Terminal))
        {
            Some(RefusalReason::EndNotTerminal)
        } else if self.indexes.iter().any(|(field, _)| field == TIMEOUT_AT) {
            Some(RefusalReason::IndexOnLease)
        } else if self.lease.is_zero() || self.attempts_max == 0 {
            Some(RefusalReason::NoLease)
        } else {
            None
        }
    }
}

/// Whether a name occurs twice.
fn has_twice<'name>(mut names: impl Iterator<Item = &'name str>) -> bool {
    let mut seen = BTreeSet::new();
    !names.all(|name| seen.insert(name))
}

/// The field with the creation time, ms.
pub const CREATED_AT: &str = "created_at";

/// The field with the time of the last write, ms.
pub const UPDATED_AT: &str = "updated_at";

/// The field with the end of the lease, ms, while the record is held.
pub const TIMEOUT_AT: &str = "timeout_at";

/// The field with the worker that holds the record, or held it when it finished.
pub const WORKER: &str = "worker";

/// The state of a record that is not there, where a refused attempt names its record's state.
pub const GONE: &str = "gone";

/// Maximum number of states of a type.
pub const STATES_MAX: usize = 32;

/// Maximum number of indexes of a type.
pub const INDEXES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_found() {
        assert_eq!(RecordType::task().fault(), None);
        let mut no_held = RecordType::task();
        no_held.states.retain(|state| state.kind != StateKind::Held);
        let mut twice = RecordType::task();
        twice.states.push(State { name: "pending".into(), kind: StateKind::Held });
        let mut terminal_first = RecordType::task();
        terminal_first.states.reverse();
        let mut elsewhere = RecordType::task();
        elsewhere.completed = "pending".into();
        let mut indexed_twice = RecordType::task();
        indexed_twice.indexes.extend(RecordType::task().indexes);
        let indexed_once = RecordType::task().index("n", IndexKind::Text).index("n", IndexKind::Signed);
        assert_eq!((indexed_once.fault(), indexed_once.indexes.len()), (None, 2));
        for broken in [no_held, twice, terminal_first, elsewhere, indexed_twice, RecordType::task().attempts_max(0)] {
            assert!(broken.fault().is_some(), "{broken:?}");
        }
    }
}
