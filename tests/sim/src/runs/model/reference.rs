//! What runs should be, in plain maps and vectors. A fork is a copy; nothing is shared, indexed or kept by heart.

use std::collections::BTreeMap;
use std::rc::Rc;

use contract::Rejection;
use contract::runs::{NewEvent, RunSnapshot, RunStatus, StoredEvent};
use kernel::{Duplicates, OpOutcome};

use super::command::{Act, Command, Id, NewAppend};

/// Forks of forks.
const DEPTH_MAX: usize = 16;

/// Rows of a run besides its head: events, keys, ids, steps.
pub(crate) type RowCounts = [usize; 4];

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) run_type: String,
    pub(crate) closed: bool,
    pub(crate) deleted: bool,
    pub(crate) last: u64,
    /// All of them, those that it shares too; none when it is deleted.
    pub(crate) events: Vec<Rc<StoredEvent>>,
    keys: BTreeMap<String, u64>,
    ids: BTreeMap<String, u64>,
    pub(crate) parent: Option<(Id, u64)>,
    pub(crate) depth: usize,
    pub(crate) last_event_us: u64,
    /// What the contract's replay gives.
    pub(crate) snapshot: RunSnapshot,
    /// As long as anybody needs them.
    pub(crate) rows: RowCounts,
}

/// What a command is to be answered.
pub(crate) type Expected = Result<Vec<OpOutcome>, Rejection>;

/// All runs that were ever made.
#[derive(Default)]
pub(crate) struct Reference {
    pub(crate) runs: BTreeMap<Id, Run>,
    /// In the order in which they were made.
    pub(crate) made: Vec<Id>,
    pub(crate) commit: u64,
    pub(crate) wall_us: u64,
    pub(crate) cluster_us: u64,
}

impl Reference {
    /// Wall time rises with every entry, cluster time does not fall.
    pub(crate) fn begin_entry(&mut self, wall_us: u64, cluster_us: u64) {
        self.wall_us = wall_us.max(self.wall_us + 1);
        self.cluster_us = cluster_us.max(self.cluster_us);
    }

    pub(crate) fn apply(&mut self, command: &Command) -> Expected {
        self.commit += 1;
        let Command::Transact(acts) = command else {
            return Ok(Vec::new());
        };
        // One act that is refused has changed nothing; of several, those before it have to be taken back.
        let mut before = BTreeMap::new();
        let mut outcomes = Vec::new();
        for (id, act) in acts {
            if acts.len() > 1 {
                before.entry(id.clone()).or_insert_with(|| self.runs.get(id).cloned());
            }
            match self.act(id, act) {
                Ok(outcome) => outcomes.push(outcome),
                Err(rejection) => {
                    for (id, run) in before {
                        match run {
                            Some(run) => self.runs.insert(id, run),
                            None => self.runs.remove(&id),
                        };
                    }
                    return Err(rejection);
                }
            }
        }
        Ok(outcomes)
    }

    fn act(&mut self, id: &Id, act: &Act) -> Result<OpOutcome, Rejection> {
        match act {
            Act::Append(append) => self.append(id, append),
            Act::Close => {
                let run = self.existing(id)?;
                run.closed = true;
                Ok(OpOutcome::Written(run.last))
            }
            Act::Delete => {
                let run = self.existing(id)?;
                run.deleted = true;
                run.events.clear();
                run.keys.clear();
                run.ids.clear();
                Ok(OpOutcome::Written(run.last))
            }
            Act::Fork { from, at } => self.fork(id, &id.sibling(from), *at),
        }
    }

    fn existing(&mut self, id: &Id) -> Result<&mut Run, Rejection> {
        match self.runs.get_mut(id) {
            None => Err(Rejection::NoSuchRun { run: id.name.clone() }),
            Some(run) if run.deleted => Err(Rejection::RunArchived { run: id.name.clone(), last: run.last }),
            Some(run) => Ok(run),
        }
    }

    fn append(&mut self, id: &Id, append: &NewAppend) -> Result<OpOutcome, Rejection> {
        let event = &append.event;
        let name = || id.name.clone();
        let last = self.runs.get(id).map_or(0, |run| run.last);
        if let Some(run) = self.runs.get(id) {
            if run.deleted {
                return Err(Rejection::RunArchived { run: name(), last });
            }
            if let Some(seq) = run.known(event) {
                let payload_mismatch = !same_content(&run.event(seq).event, event);
                let refused = match append.duplicates {
                    Duplicates::Answer => false,
                    Duplicates::RefuseOthers => payload_mismatch,
                    Duplicates::Refuse => true,
                };
                return match refused {
                    true => Err(Rejection::KeyReused { run: name(), seq }),
                    false => Ok(OpOutcome::Appended { seq, idempotent: true, payload_mismatch }),
                };
            }
            if run.closed {
                return Err(Rejection::RunClosed { run: name(), last });
            }
        }
        if let Some(expected) = append.expected_last.filter(|expected| *expected != last) {
            return Err(Rejection::SequenceConflict { run: name(), expected, last });
        }
        let seq = last + 1;
        let stored = StoredEvent::new(name(), seq, last, self.wall_us, self.commit, event.clone());
        let made = &mut self.made;
        let run = self.runs.entry(id.clone()).or_insert_with(|| {
            made.push(id.clone());
            Run::new(id, append.run_type)
        });
        run.push(Rc::new(stored));
        run.last_event_us = self.wall_us;
        run.rows[0] += 1;
        run.rows[1] += 1;
        run.rows[2] += usize::from(event.event_id.is_some());
        run.rows[3] = run.snapshot.steps.len();
        Ok(OpOutcome::Appended { seq, idempotent: false, payload_mismatch: false })
    }

    fn fork(&mut self, id: &Id, from: &Id, at: u64) -> Result<OpOutcome, Rejection> {
        if let Some(run) = self.runs.get(id) {
            let name = id.name.clone();
            return Err(match run.deleted {
                true => Rejection::RunArchived { run: name, last: run.last },
                false => Rejection::AlreadyExists { what: "run", name },
            });
        }
        let parent = self.existing(from)?.clone();
        if at == 0 || at > parent.last {
            return Err(Rejection::SequenceConflict { run: from.name.clone(), expected: at, last: parent.last });
        }
        if parent.depth >= DEPTH_MAX {
            return Err(Rejection::too_large("run_fork_depth_max", DEPTH_MAX, parent.depth + 1));
        }
        let mut fork = Run::new(id, &parent.run_type);
        for shared in parent.events.iter().take_while(|event| event.run_seq <= at) {
            let StoredEvent { run_seq, prev_seq, persisted_at, commit, event, .. } = &**shared;
            let name = id.name.clone();
            fork.push(Rc::new(StoredEvent::new(name, *run_seq, *prev_seq, *persisted_at, *commit, event.clone())));
        }
        fork.last_event_us = self.wall_us;
        fork.depth = parent.depth + 1;
        fork.parent = Some((from.clone(), at));
        fork.rows[3] = fork.snapshot.steps.len();
        self.runs.insert(id.clone(), fork);
        self.made.push(id.clone());
        Ok(OpOutcome::Written(at))
    }

    /// Whether a run is there, or one that shares events of it, at whatever remove.
    pub(crate) fn is_needed(&self, id: &Id) -> bool {
        let is_child = |run: &Run| run.parent.as_ref().is_some_and(|(parent, _)| parent == id);
        self.runs.get(id).is_some_and(|run| !run.deleted)
            || self.runs.iter().any(|(child, run)| is_child(run) && self.is_needed(child))
    }

    /// Runs of a place that exist.
    pub(crate) fn live(&self, place: (u32, u32)) -> impl Iterator<Item = (&Id, &Run)> {
        self.runs.iter().filter(move |(id, run)| id.place() == place && !run.deleted)
    }

    /// How many runs of each kind are in each status.
    pub(crate) fn counts(&self, place: (u32, u32)) -> BTreeMap<(String, RunStatus), u64> {
        let mut counts = BTreeMap::new();
        for (_, run) in self.live(place) {
            *counts.entry((run.run_type.clone(), run.snapshot.status)).or_default() += 1;
        }
        counts
    }
}

impl Run {
    fn new(id: &Id, run_type: &str) -> Self {
        Self {
            run_type: run_type.to_owned(),
            closed: false,
            deleted: false,
            last: 0,
            events: Vec::new(),
            keys: BTreeMap::new(),
            ids: BTreeMap::new(),
            parent: None,
            depth: 0,
            last_event_us: 0,
            snapshot: RunSnapshot::empty(&id.name),
            rows: [0; 4],
        }
    }

    fn push(&mut self, event: Rc<StoredEvent>) {
        self.last = event.run_seq;
        self.keys.insert(event.event.idempotency_key.clone(), event.run_seq);
        if let Some(event_id) = &event.event.event_id {
            self.ids.insert(event_id.clone(), event.run_seq);
        }
        self.snapshot.apply(&event);
        self.events.push(event);
    }

    /// The event with this key, or else with this id.
    fn known(&self, event: &NewEvent) -> Option<u64> {
        let by_id = || event.event_id.as_ref().and_then(|event_id| self.ids.get(event_id));
        self.keys.get(&event.idempotency_key).or_else(by_id).copied()
    }

    pub(crate) fn event(&self, seq: u64) -> &Rc<StoredEvent> {
        &self.events[usize::try_from(seq - 1).expect("it fits")]
    }
}

/// When or by whom it was emitted does not matter.
fn same_content(one: &NewEvent, other: &NewEvent) -> bool {
    one.event_type == other.event_type
        && one.step_id == other.step_id
        && one.logical_attempt_id == other.logical_attempt_id
        && one.data == other.data
}
