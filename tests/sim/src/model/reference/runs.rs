//! What runs should be, in plain maps and vectors. A fork is a copy; nothing is shared, indexed or kept by heart. One thing
//! it must know of the kernel's way: how many rows a deleted run has left, because a tick removes a bounded number of them.

use std::collections::BTreeMap;
use std::rc::Rc;

use contract::runs::{NewEvent, RunSnapshot, RunStatus, StoredEvent, seq_of_derived_id};
use contract::{Json, Rejection, RunRejection};
use kernel::{Append, Duplicates, EventRef, OpOutcome, RunAct, RunGuard};

use super::{Id, Reference, Undo};

/// Forks of forks.
const DEPTH_MAX: usize = 16;

/// Rows of a deleted run that one step of a tick removes.
const REMOVED_ROWS_MAX: usize = 64;

/// Rows of a run besides its head: events, keys, ids, steps.
pub(crate) type RowCounts = [usize; 4];

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) run_type: String,
    pub(crate) created_us: u64,
    pub(crate) last: u64,
    /// All of them, those that it shares too; none when it is deleted.
    pub(crate) events: Vec<Rc<StoredEvent>>,
    keys: BTreeMap<String, u64>,
    /// Those that came with the events, and those that were made for the others.
    ids: BTreeMap<String, u64>,
    pub(crate) parent: Option<(Id, u64)>,
    pub(crate) depth: usize,
    pub(crate) last_event_us: u64,
    /// What the contract's replay gives.
    pub(crate) snapshot: RunSnapshot,
    pub(crate) life: Life,
}

/// How far a run is from its beginning to its end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Life {
    pub(crate) closed: bool,
    pub(crate) deleted: bool,
    /// Forks whose rows are not all gone.
    pub(crate) forks: u64,
    /// Since when its rows are to be removed.
    pub(crate) removing_us: Option<u64>,
    /// The rows that are its own and still there.
    pub(crate) rows: RowCounts,
}

/// What an append or the end of a run has changed, as it was before.
pub(super) enum RunUndo {
    /// It was not there.
    Made,
    /// It was one event shorter.
    Appended {
        snapshot: Box<RunSnapshot>,
        last_event_us: u64,
        life: Life,
    },
    /// It had these events, keys and ids.
    Deleted {
        events: Vec<Rc<StoredEvent>>,
        keys: BTreeMap<String, u64>,
        ids: BTreeMap<String, u64>,
        life: Life,
    },
    Lived(Life),
}

impl Reference {
    pub(super) fn run_act(&mut self, id: &Id, act: &RunAct<'_>) -> Result<OpOutcome, Rejection> {
        match act {
            RunAct::Append(append) => self.append(id, append),
            RunAct::Close => {
                let last = self.existing_run(id)?.last;
                self.change_life(id, |life| life.closed = true);
                Ok(OpOutcome::Written(last))
            }
            RunAct::Delete => {
                let wall_us = self.wall_us;
                let run = self.existing_run(id)?;
                let (last, life) = (run.last, run.life);
                run.life.deleted = true;
                if life.forks == 0 {
                    run.life.removing_us = Some(wall_us);
                }
                let (events, keys) = (std::mem::take(&mut run.events), std::mem::take(&mut run.keys));
                let ids = std::mem::take(&mut run.ids);
                self.undo.push(Undo::Run(id.clone(), RunUndo::Deleted { events, keys, ids, life }));
                Ok(OpOutcome::Written(last))
            }
            RunAct::Fork { from, at } => self.fork(id, &id.sibling(from), *at),
        }
    }

    fn change_life(&mut self, id: &Id, change: impl FnOnce(&mut Life)) {
        let life = &mut self.runs.get_mut(id).expect("a run that is known").life;
        self.undo.push(Undo::Run(id.clone(), RunUndo::Lived(*life)));
        change(life);
    }

    fn existing_run(&mut self, id: &Id) -> Result<&mut Run, Rejection> {
        match self.runs.get_mut(id) {
            None => Err(Rejection::Run(RunRejection::NoSuchRun { run: id.name.clone() })),
            Some(run) if run.life.deleted => {
                Err(Rejection::Run(RunRejection::Archived { run: id.name.clone(), last: run.last }))
            }
            Some(run) => Ok(run),
        }
    }

    pub(super) fn check_run_guard(&self, id: &Id, guard: RunGuard<'_>) -> Result<(), Rejection> {
        let RunGuard::LastIs(_, expected) = guard;
        let run = id.name.clone();
        match self.runs.get(id) {
            Some(Run { life: Life { deleted: true, .. }, last, .. }) => {
                Err(Rejection::Run(RunRejection::Archived { run, last: *last }))
            }
            known => match known.map_or(0, |known| known.last) {
                last if last == expected => Ok(()),
                last => Err(Rejection::Run(RunRejection::SequenceConflict { run, expected, last })),
            },
        }
    }

    fn append(&mut self, id: &Id, append: &Append<'_>) -> Result<OpOutcome, Rejection> {
        let event = owned(&append.event);
        let name = || id.name.clone();
        let last = self.runs.get(id).map_or(0, |run| run.last);
        if let Some(run) = self.runs.get(id) {
            if run.life.deleted {
                return Err(Rejection::Run(RunRejection::Archived { run: name(), last }));
            }
            if let Some(seq) = run.known(&event) {
                let payload_mismatch = !same_content(&run.event(seq).event, &event);
                let refused = match append.duplicates {
                    Duplicates::Answer => false,
                    Duplicates::RefuseOthers => payload_mismatch,
                    Duplicates::Refuse => true,
                };
                return match refused {
                    true => Err(Rejection::Run(RunRejection::KeyReused { run: name(), seq })),
                    false => Ok(OpOutcome::Appended { seq, idempotent: true, payload_mismatch }),
                };
            }
            if run.life.closed {
                return Err(Rejection::Run(RunRejection::Closed { run: name(), last }));
            }
        }
        if let Some(expected) = append.expected_last.filter(|expected| *expected != last) {
            return Err(Rejection::Run(RunRejection::SequenceConflict { run: name(), expected, last }));
        }
        let created_us = self.runs.get(id).map_or(self.wall_us, |run| run.created_us);
        let event_id = event.event_id.as_deref();
        let derived_seq = event_id.and_then(|event_id| seq_of_derived_id(&id.name, created_us, event_id));
        if let Some(seq) = derived_seq.filter(|seq| *seq > last) {
            return Err(Rejection::Run(RunRejection::KeyReused { run: name(), seq }));
        }
        let seq = last + 1;
        let has_id = event.event_id.is_some();
        let stored = StoredEvent::new(name(), created_us, seq, last, self.wall_us, self.commit, event);
        if !self.runs.contains_key(id) {
            self.make_run(id, Run::new(id, append.run_type, created_us));
        }
        let run = self.runs.get_mut(id).expect("just made, or known");
        let snapshot = Box::new(run.snapshot.clone());
        let before = RunUndo::Appended { snapshot, last_event_us: run.last_event_us, life: run.life };
        self.undo.push(Undo::Run(id.clone(), before));
        run.push(Rc::new(stored));
        run.last_event_us = self.wall_us;
        let rows = &mut run.life.rows;
        rows[0] += 1;
        rows[1] += 1;
        rows[2] += usize::from(has_id);
        rows[3] = run.snapshot.steps.len();
        Ok(OpOutcome::Appended { seq, idempotent: false, payload_mismatch: false })
    }

    fn make_run(&mut self, id: &Id, run: Run) {
        self.runs.insert(id.clone(), run);
        self.made.push(id.clone());
        self.undo.push(Undo::Run(id.clone(), RunUndo::Made));
    }

    fn fork(&mut self, id: &Id, from: &Id, at: u64) -> Result<OpOutcome, Rejection> {
        if let Some(run) = self.runs.get(id) {
            let name = id.name.clone();
            return Err(match run.life.deleted {
                true => Rejection::Run(RunRejection::Archived { run: name, last: run.last }),
                false => Rejection::AlreadyExists { what: "run", name },
            });
        }
        let parent = self.existing_run(from)?;
        if at == 0 || at > parent.last {
            return Err(Rejection::Run(RunRejection::SequenceConflict {
                run: from.name.clone(),
                expected: at,
                last: parent.last,
            }));
        }
        if parent.depth >= DEPTH_MAX {
            return Err(Rejection::too_large("run_fork_depth_max", DEPTH_MAX, parent.depth + 1));
        }
        let (run_type, depth, events) = (parent.run_type.clone(), parent.depth, parent.events.clone());
        let mut fork = Run::new(id, &run_type, self.wall_us);
        for shared in events.iter().take_while(|event| event.run_seq <= at) {
            let StoredEvent { run_seq, prev_seq, persisted_at, commit, event, .. } = &**shared;
            let (name, event) = (id.name.clone(), event.clone());
            let stored = StoredEvent::new(name, fork.created_us, *run_seq, *prev_seq, *persisted_at, *commit, event);
            fork.push(Rc::new(stored));
        }
        fork.depth = depth + 1;
        fork.last_event_us = self.wall_us;
        fork.parent = Some((from.clone(), at));
        fork.life.rows[3] = fork.snapshot.steps.len();
        self.change_life(from, |life| life.forks += 1);
        self.make_run(id, fork);
        Ok(OpOutcome::Written(at))
    }

    /// A step of a tick: removes some rows of a deleted run; after the last, the run that it shared events with needs them
    /// no longer.
    pub(super) fn remove_rows(&mut self, id: &Id) {
        let mut left = REMOVED_ROWS_MAX;
        self.change_life(id, |life| {
            for rows in &mut life.rows {
                let removed = left.min(*rows);
                *rows -= removed;
                left -= removed;
            }
        });
        if left == 0 {
            return;
        }
        self.change_life(id, |life| life.removing_us = None);
        if let Some((parent, _)) = self.runs[id].parent.clone() {
            let wall_us = self.wall_us;
            self.change_life(&parent, |life| {
                life.forks -= 1;
                if life.deleted && life.forks == 0 {
                    life.removing_us = Some(wall_us);
                }
            });
        }
    }

    pub(super) fn undo_run(&mut self, id: &Id, undo: RunUndo) {
        if let RunUndo::Made = undo {
            self.runs.remove(id);
            self.made.pop();
            return;
        }
        let run = self.runs.get_mut(id).expect("a run that was changed");
        match undo {
            RunUndo::Made => unreachable!("it was dealt with above"),
            RunUndo::Lived(life) => run.life = life,
            RunUndo::Deleted { events, keys, ids, life } => {
                (run.events, run.keys, run.ids, run.life) = (events, keys, ids, life);
            }
            RunUndo::Appended { snapshot, last_event_us, life } => {
                let event = run.events.pop().expect("it was appended");
                run.last = event.prev_seq;
                run.keys.remove(&event.event.idempotency_key);
                run.ids.remove(&event.event_id);
                (run.snapshot, run.last_event_us, run.life) = (*snapshot, last_event_us, life);
            }
        }
    }

    /// Runs of a place that exist.
    pub(crate) fn live_runs(&self, place: (u32, u32)) -> impl Iterator<Item = (&Id, &Run)> {
        self.runs.iter().filter(move |(id, run)| id.place() == place && !run.life.deleted)
    }

    /// How many runs of each kind are in each status.
    pub(crate) fn run_counts(&self, place: (u32, u32)) -> BTreeMap<(String, RunStatus), u64> {
        let mut counts = BTreeMap::new();
        for (_, run) in self.live_runs(place) {
            *counts.entry((run.run_type.clone(), run.snapshot.status)).or_default() += 1;
        }
        counts
    }
}

impl Run {
    fn new(id: &Id, run_type: &str, created_us: u64) -> Self {
        Self {
            run_type: run_type.to_owned(),
            created_us,
            last: 0,
            events: Vec::new(),
            keys: BTreeMap::new(),
            ids: BTreeMap::new(),
            parent: None,
            depth: 0,
            last_event_us: 0,
            snapshot: RunSnapshot::empty(&id.name),
            life: Life::default(),
        }
    }

    fn push(&mut self, event: Rc<StoredEvent>) {
        self.last = event.run_seq;
        self.keys.insert(event.event.idempotency_key.clone(), event.run_seq);
        self.ids.insert(event.event_id.clone(), event.run_seq);
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

/// The event of a command. The store says when it was emitted if the sender does not.
fn owned(event: &EventRef<'_>) -> NewEvent {
    let text = |text: Option<&str>| text.map(str::to_owned);
    let json = |text: Option<&str>| text.map(|text| Json::from_checked(text.to_owned()));
    let data = Json::from_checked(event.data.to_owned());
    let mut owned = NewEvent::new(event.event_type, event.idempotency_key, "", data);
    owned.emitted_at = text(event.emitted_at);
    owned.event_id = text(event.event_id);
    owned.step_id = text(event.step_id);
    owned.engine_attempt_id = text(event.engine_attempt_id);
    owned.logical_attempt_id = text(event.logical_attempt_id);
    owned.adapter_version = text(event.adapter_version);
    owned.engine_run_ref = json(event.engine_run_ref);
    owned.caused_by_signal_id = text(event.caused_by_signal_id);
    owned.parent_event_id = text(event.parent_event_id);
    owned.extra = json(event.extra);
    owned
}
