//! What maps should be, by the contract's own words: each update counts once. Maps, lists and a fold; no rows, no counts kept
//! beside what they count.
//!
//! Three things it must know of the kernel's way: a tick removes a bounded number of rows of what was deleted, so how many are left
//! (`unused`); the seals of an entry apply a bounded number of waiting updates, of so many bytes; and a key whose row is gone may
//! have been changed since any command up to the last that removed one (`forgotten`).

mod checkpoints;
mod conditions;
mod restores;
mod sweep;
mod updates;

use std::collections::{BTreeMap, BTreeSet};

use contract::keyed::limits::KEYED_POSITIONS_MAX;
use contract::keyed::{InputPosition, LogicalTime, MapSummary, Policy};
use contract::limits::SEALED_UPDATES_MAX;
use contract::{KeyedRejection, Rejection, Value};
use kernel::keyed::command::Commit;
use kernel::{KeyedAct, Op, OpOutcome, Transact};

pub(super) use self::updates::SealedLeft;
pub(crate) use self::updates::Waiting;
use super::{ANY_REASON, Id, Outcome, Reference, Undo};
use crate::model::drawn::encode;

/// Contents that wait to be removed.
const UNUSED_MAX: usize = 64;

/// A map, or what is left of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Map {
    /// None: it was deleted.
    pub(crate) content: Option<Content>,
    /// The last command that changed it, and when.
    pub(crate) commit: u64,
    pub(crate) updated_us: u64,
    /// The rows that are left of each content that it had.
    pub(crate) unused: Vec<usize>,
    /// When the next sweep is due, if one is.
    pub(crate) sweep_us: Option<u64>,
    /// What a restore has put aside: its number, and what it will be.
    pub(crate) aside: Option<(u32, Content)>,
    /// The command that made the map for that restore, if it did.
    made_by: Option<u64>,
    /// How many contents it had, with those that were put aside.
    contents: u32,
}

/// What a map holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    pub(crate) policy: Policy,
    pub(crate) keys: BTreeMap<Vec<u8>, Key>,
    pub(crate) positions: BTreeMap<String, InputPosition>,
    pub(crate) waiting: BTreeMap<(LogicalTime, Vec<u8>), Waiting>,
    pub(crate) seal: Option<LogicalTime>,
    /// The last numbered commit, if there was one.
    pub(crate) last: Option<Numbered>,
    /// Whether an answer is kept: at the end of the transaction, if the map is still the same.
    keeps_answer: bool,
    /// The last command that changed a key of which nothing is known any more.
    forgotten: u64,
    /// The command that restored it, by which every key was changed.
    pub(crate) since: u64,
    /// The commands that began the oldest checkpoint that counts, and the last one.
    pub(crate) checkpoints: Option<(u64, u64)>,
    /// Keys of which nothing is known any more, each with the checkpoint that was the last when they went.
    gone: BTreeSet<(u64, Vec<u8>)>,
}

/// What is known of a key.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// The command that changed its value last; 0 if it never had one.
    pub(crate) commit: u64,
    pub(crate) state: State,
    /// What its first update has made of it: whether it is merged.
    pub(crate) is_merged: Option<bool>,
    /// The largest size of an integer that waited to be merged by min or max, since updates began to wait.
    extreme: u64,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Put(Value, LogicalTime),
    Merged(i64),
    Deleted(LogicalTime),
    /// None, but updates wait.
    Nothing,
}

/// The last numbered commit of a map.
#[derive(Clone, Debug)]
pub(crate) struct Numbered {
    pub(crate) number: u64,
    /// Its whole transaction, without whoever sends it.
    pub(crate) transaction: Vec<u8>,
    commit: u64,
    outcomes: Vec<Outcome>,
}

impl State {
    pub(crate) fn value(&self) -> Option<Value> {
        match self {
            State::Put(value, _) => Some(value.clone()),
            State::Merged(integer) => Some(Value::Integer(*integer)),
            State::Deleted(_) | State::Nothing => None,
        }
    }

    pub(crate) fn version(&self) -> Option<LogicalTime> {
        if let State::Put(_, version) = self { Some(*version) } else { None }
    }
}

impl Content {
    fn seals(&self, version: LogicalTime) -> bool {
        self.seal.is_some_and(|seal| version <= seal)
    }

    pub(crate) fn last_number(&self) -> u64 {
        self.last.as_ref().map_or(0, |last| last.number)
    }

    /// The deleted keys that are remembered.
    pub(crate) fn deleted(&self) -> usize {
        self.keys.values().filter(|key| matches!(key.state, State::Deleted(_))).count()
    }

    /// How many rows it has: of keys, positions, deleted keys, removed ones, answers, and waiting updates.
    pub(crate) fn rows(&self) -> [usize; 6] {
        let answers = usize::from(self.keeps_answer);
        [self.keys.len(), self.positions.len(), self.deleted(), self.gone.len(), answers, self.waiting.len()]
    }

    /// The last command that changed a key.
    pub(crate) fn changed_at(&self, key: &Key) -> u64 {
        key.commit.max(self.since)
    }
}

impl Map {
    /// The map as a whole, if it exists.
    pub(crate) fn summary(&self) -> Option<MapSummary> {
        let content = self.content.as_ref()?;
        let mut summary = MapSummary::default();
        summary.keys = content.keys.values().filter(|key| key.state.value().is_some()).count() as u64;
        summary.deleted = content.deleted() as u64;
        summary.policy = content.policy;
        summary.waiting = content.waiting.len() as u64;
        summary.last_number = content.last_number();
        summary.seal = content.seal;
        (summary.commit, summary.updated_at) = (self.commit, self.updated_us);
        summary.restored = Some(content.since).filter(|since| *since > 0);
        Some(summary)
    }
}

impl Reference {
    fn set_map(&mut self, id: &Id, map: Option<Map>) {
        let before = match map {
            Some(map) => self.maps.insert(id.clone(), map),
            None => self.maps.remove(id),
        };
        self.undo.push(Undo::Map(id.clone(), before.map(Box::new)));
    }

    /// What a map holds, if it exists.
    pub(crate) fn content(&self, id: &Id) -> Option<&Content> {
        self.maps.get(id)?.content.as_ref()
    }

    /// The map as it is about to be changed: a new one if there is none.
    fn opened(&self, id: &Id) -> (Map, Content) {
        let mut map = self.maps.get(id).cloned().unwrap_or_default();
        // Every key was changed when the map was deleted.
        let new = Content { forgotten: map.commit, ..Content::default() };
        let content = map.content.take().unwrap_or_else(|| {
            map.contents += 1;
            new
        });
        (map, content)
    }

    fn store_map(&mut self, id: &Id, map: Map, content: Content) -> u64 {
        let (commit, updated_us) = (self.commit, self.wall_us);
        self.set_map(id, Some(Map { content: Some(content), commit, updated_us, ..map }));
        commit
    }

    pub(super) fn map_act(&mut self, id: &Id, act: &KeyedAct<'_>) -> Result<OpOutcome, Rejection> {
        let (mut map, mut content) = self.opened(id);
        match act {
            KeyedAct::Update(updates) => {
                let updated = content.update(&id.name, updates, self.commit, false)?;
                if updated.applied() > 0 {
                    self.store_map(id, map, content);
                }
                Ok(OpOutcome::Updated(updated))
            }
            KeyedAct::Commit(commit) => self.commit_to(id, map, content, commit),
            KeyedAct::Seal(version) => match self.raise_seal(&mut map, &mut content, *version) {
                true => Ok(OpOutcome::Written(self.store_map(id, map, content))),
                false => Ok(OpOutcome::Existing(map.commit)),
            },
            KeyedAct::Create(policy) => {
                if self.content(id).is_some() {
                    let (name, is_ordered) = (id.name.clone(), content.policy == Policy::Ordered);
                    return match content.policy == *policy {
                        true => Ok(OpOutcome::Existing(map.commit)),
                        false => Err(KeyedRejection::OtherPolicy { map: name, is_ordered }.into()),
                    };
                }
                content.policy = *policy;
                Ok(OpOutcome::Written(self.store_map(id, map, content)))
            }
            KeyedAct::Delete => {
                if self.content(id).is_none() {
                    return Ok(OpOutcome::Nothing);
                }
                self.give_up_aside(&mut map)?;
                Rejection::check_limit("keyed_contents_max", UNUSED_MAX, map.unused.len() + 1)?;
                map.unused.push(content.rows().iter().sum());
                self.sweep_soon(&mut map);
                let (commit, updated_us) = (self.commit, self.wall_us);
                self.set_map(id, Some(Map { content: None, commit, updated_us, ..map }));
                Ok(OpOutcome::Written(commit))
            }
            KeyedAct::BeginRestore(restored) => self.begin_restore(id, map, content, restored),
            KeyedAct::RestoreRows(number, rows) => self.restore_rows(id, map, content, *number, rows),
            KeyedAct::EndRestore(number, counts) => self.end_restore(id, map, content, *number, counts),
            KeyedAct::AbandonRestore(number) => self.abandon_restore(id, map, content, *number),
            KeyedAct::BeginCheckpoint => self.begin_checkpoint(id, map, content),
            KeyedAct::EndCheckpoint(begun) => self.end_checkpoint(id, map, content, *begun),
        }
    }

    /// A change that readers do not see, unless the map is new.
    fn store_unseen(&mut self, id: &Id, map: Map, content: Content) {
        match self.content(id).is_some() {
            true => self.set_map(id, Some(Map { content: Some(content), ..map })),
            false => drop(self.store_map(id, map, content)),
        }
    }

    fn commit_to(
        &mut self,
        id: &Id,
        mut map: Map,
        mut content: Content,
        commit: &Commit<'_>,
    ) -> Result<OpOutcome, Rejection> {
        let Commit { number, positions, seal, updates } = commit;
        in_order(id, content.last_number(), *number)?;
        Rejection::check_limit("keyed_positions_max", KEYED_POSITIONS_MAX, positions.len())?;
        for (input, position) in positions {
            let current = content.positions.get(*input).map_or(0, |known| known.position);
            if *position < current {
                let (map, input) = (id.name.clone(), (*input).to_owned());
                return Err(KeyedRejection::PositionBehind { map, input, current, given: *position }.into());
            }
            let after = InputPosition::new(*position, self.commit, self.wall_us);
            content.positions.insert((*input).to_owned(), after);
        }
        let updated = content.update(&id.name, updates, self.commit, true)?;
        // What it is answered is known at the end of its transaction.
        let (commit, transaction, outcomes) = (self.commit, Vec::new(), Vec::new());
        content.last = Some(Numbered { number: *number, transaction, commit, outcomes });
        if let Some(seal) = seal {
            self.raise_seal(&mut map, &mut content, *seal);
        }
        self.store_map(id, map, content);
        Ok(OpOutcome::Updated(updated))
    }

    /// Whether that changed something.
    fn raise_seal(&mut self, map: &mut Map, content: &mut Content, seal: LogicalTime) -> bool {
        if content.seals(seal) {
            return false;
        }
        content.seal = Some(seal);
        let mut left = SEALED_UPDATES_MAX;
        content.apply_sealed(self.commit, &mut left, &mut self.sealed_left);
        if content.deleted() > 0 || left == 0 {
            self.sweep_soon(map);
        }
        true
    }

    /// The first answer to a transaction with a number, if it was applied before.
    pub(super) fn first_answer(
        &self,
        id: &Id,
        number: u64,
        transact: &Transact<'_>,
    ) -> Result<Option<(u64, Vec<Outcome>)>, Rejection> {
        match self.content(id).and_then(|content| content.last.as_ref()) {
            Some(last) if last.number == number => match last.transaction == without_sender(transact) {
                true => Ok(Some((last.commit, last.outcomes.clone()))),
                false => Err(KeyedRejection::CommitReused { map: id.name.clone(), number }.into()),
            },
            last => in_order(id, last.map_or(0, |last| last.number), number).map(|()| None),
        }
    }

    /// Keeps the answer to a transaction with a number, unless its map is another one by now.
    pub(super) fn keep_answer(&mut self, id: &Id, number: u64, transact: &Transact<'_>, outcomes: &[Outcome]) {
        let Some(map) = self.maps.get(id) else { return };
        let mut map = map.clone();
        let Some(content) = &mut map.content else { return };
        if let Some(last) = content.last.as_mut().filter(|last| last.number == number) {
            // A restore in the same transaction may have brought another commit under this number.
            (last.transaction, last.commit, last.outcomes) = (without_sender(transact), self.commit, outcomes.to_vec());
            content.keeps_answer = true;
            self.set_map(id, Some(map));
        }
    }
}

fn in_order(id: &Id, last: u64, number: u64) -> Result<(), Rejection> {
    match last + 1 {
        next if next == number => Ok(()),
        next => Err(KeyedRejection::CommitOutOfOrder { map: id.name.clone(), number, next }.into()),
    }
}

/// The number of a transaction, with the name of the map that gives it.
pub(super) fn number_of<'name>(transact: &Transact<'name>) -> Result<Option<(&'name str, u64)>, Rejection> {
    let mut numbers = transact.ops.iter().filter_map(|op| match op {
        Op::Map(name, KeyedAct::Commit(commit)) => Some((*name, commit.number)),
        _ => None,
    });
    match (numbers.next(), numbers.next()) {
        (_, Some(_)) => Err(Rejection::InvalidDeclaration { what: "a transaction".to_owned(), reason: ANY_REASON }),
        (number, None) => Ok(number),
    }
}

fn without_sender(transact: &Transact<'_>) -> Vec<u8> {
    encode(&kernel::Body::Transact(Transact { fences: Vec::new(), force: false, ..transact.clone() }))
}
