//! What commands do to the reference, and how they are to be answered.

use contract::catalogue::MAIN_BRANCH;
use contract::{Rejection, Value};
use kernel::trim::TrimStep;
use kernel::{Answer, CatalogueChange, Guard, OpOutcome};

use super::{Cell, CellName, Reference, Write};
use crate::model::cells::command::{Action, Command, Op, Transaction};
use crate::model::cells::names::known;

/// Old versions of a deleted branch's cell that one step of the walk removes.
const REMOVED_ROWS_MAX: usize = 64;

/// How a command must be answered.
#[derive(Debug)]
pub(crate) enum Expected {
    Done {
        commit: u64,
        outcomes: Vec<OpOutcome>,
    },
    /// With one of these: a range guard names any cell of the range that has changed.
    Rejected(Vec<Rejection>),
    /// Nothing was executed, because no session can be known.
    NoSession,
}

impl Expected {
    /// Whether this is such an answer.
    pub(crate) fn allows(&self, answer: &Answer) -> bool {
        match (self, answer) {
            (Expected::Done { commit, outcomes }, Answer::Done { commit: c, outcomes: o }) => {
                (commit, outcomes) == (c, o)
            }
            (Expected::Rejected(any_of), Answer::Rejected(rejection)) => any_of.contains(rejection),
            _ => false,
        }
    }
}

impl Reference {
    /// Moves time to the entry that comes next. It never goes back.
    pub(crate) fn begin_entry(&mut self, wall_us: u64, cluster_us: u64) {
        self.wall_us = wall_us.max(self.wall_us + 1);
        self.cluster_us = cluster_us.max(self.cluster_us);
    }

    /// Applies a command whose body has this many bytes.
    pub(crate) fn apply(&mut self, command: &Command, body_bytes: usize) -> Expected {
        self.commit += 1;
        if command.session.is_some() {
            return Expected::NoSession;
        }
        if command.revision > self.revision {
            let (needed, have) = (command.revision, self.revision);
            return Expected::Rejected(vec![Rejection::CatalogueBehind { needed, have }]);
        }
        let done = match &command.action {
            Action::Transact(transaction) => self.transact(transaction, body_bytes),
            Action::Change(change) => self.change(change).map_err(|rejection| vec![rejection]),
            Action::Trim(steps) => {
                steps.iter().for_each(|step| self.trim(step));
                Ok(Vec::new())
            }
            Action::Level => {
                self.revision += 1;
                Ok(Vec::new())
            }
        };
        match done {
            Ok(outcomes) => Expected::Done { commit: self.commit, outcomes },
            Err(rejections) => Expected::Rejected(rejections),
        }
    }

    /// Guards first, then operations in order, all or nothing.
    pub(crate) fn transact(
        &mut self,
        transaction: &Transaction,
        body_bytes: usize,
    ) -> Result<Vec<OpOutcome>, Vec<Rejection>> {
        let exceeded = self.exceeded_limits(transaction, body_bytes);
        if !exceeded.is_empty() {
            return Err(exceeded);
        }
        let Transaction { space, branch, group, .. } = *transaction;
        if !self.spaces.contains_key(&space) {
            return Err(vec![Rejection::NoSuchSpace { space: format!("#{space}") }]);
        }
        if !self.is_live(space, branch) {
            return Err(vec![Rejection::NoSuchBranch { branch: format!("#{branch}") }]);
        }
        for guard in &transaction.guards {
            let broken = self.broken_by(transaction, guard);
            if !broken.is_empty() {
                return Err(broken);
            }
        }
        let mut outcomes = Vec::new();
        let mut undo = Vec::new();
        let fed = self.feed.len();
        for op in &transaction.ops {
            let cell = CellName::new(space, branch, group, op.name());
            let before = self.cells.get(&cell);
            undo.push((cell, before.map(|before| (before.writes.len(), before.given_up))));
            match self.execute(cell, op) {
                Ok(outcome) => outcomes.push(outcome),
                Err(rejection) => {
                    self.feed.undo(fed);
                    undo.into_iter().rev().for_each(|(cell, before)| self.undo(cell, before));
                    return Err(vec![rejection]);
                }
            }
        }
        Ok(outcomes)
    }

    fn exceeded_limits(&self, transaction: &Transaction, body_bytes: usize) -> Vec<Rejection> {
        let limits = &self.limits;
        let mut asked = vec![
            ("transaction_ops_max", limits.transaction_ops_max, transaction.ops.len()),
            ("transaction_bytes_max", limits.transaction_bytes_max, body_bytes),
        ];
        let values = transaction.ops.iter().filter_map(Op::value);
        asked.extend(values.map(|value| ("value_bytes_max", limits.value_bytes_max, value.len())));
        asked.retain(|(_, max, got)| *got > *max as usize);
        asked.iter().map(|(limit, max, got)| Rejection::too_large(limit, *max as usize, *got)).collect()
    }

    /// The conflicts that a guard sees; none if it holds.
    fn broken_by(&self, transaction: &Transaction, guard: &Guard<'static>) -> Vec<Rejection> {
        let Transaction { space, branch, group, .. } = *transaction;
        let live = |cell: Option<&Cell>| cell.and_then(Cell::live_version);
        let changed = |cell: Option<&Cell>, since| {
            cell.and_then(|cell| cell.writes.last()).is_some_and(|write| write.commit > since)
        };
        let conflict = |name: &str, cell| Rejection::Conflict { cell: name.to_owned(), current: live(cell) };
        if let Guard::CellsUnchangedSince(from, to, since) = *guard {
            let members = self.members(space, branch, group);
            let is_inside = |name: &str| name >= from && to.is_none_or(|to| name < to);
            let inside = members.iter().filter(|(name, _)| is_inside(name));
            let changed = inside.filter(|(_, cell)| changed(Some(cell), since));
            let mut broken: Vec<_> = changed.map(|(name, cell)| conflict(name, Some(cell))).collect();
            if self.floor(CellName::new(space, branch, group, "")).commit > since {
                // Something that was forgotten may have been inside; also the cell that has the group's own name.
                broken.push(conflict(from, None));
                let own = group.filter(|own| {
                    is_inside(own) && !self.cells.contains_key(&CellName::new(space, branch, group, own))
                });
                broken.extend(own.map(|own| conflict(own, None)));
            }
            return broken;
        }
        let name = guard.name().expect("ranges are answered above");
        let cell = self.cells.get(&CellName::new(space, branch, group, name));
        let holds = match *guard {
            Guard::CellAbsent(_) => live(cell).is_none(),
            Guard::CellExists(_) => live(cell).is_some(),
            Guard::CellVersionIs(_, version) => live(cell) == Some(version),
            Guard::CellVersionBelow(_, version) => live(cell).is_none_or(|live| live < version),
            Guard::CellUnchangedSince(_, since) if cell.is_none() => {
                self.floor(CellName::new(space, branch, group, name)).commit <= since
            }
            Guard::CellUnchangedSince(_, since) => !changed(cell, since),
            _ => unreachable!("answered above, or not about cells"),
        };
        if holds { Vec::new() } else { vec![conflict(name, cell)] }
    }

    fn execute(&mut self, cell: CellName, op: &Op) -> Result<OpOutcome, Rejection> {
        let current = self.cells.get(&cell).and_then(Cell::live_version);
        let value = op.value().cloned();
        match (op, current) {
            (Op::Init(..), Some(version)) => return Ok(OpOutcome::Existing(version)),
            (Op::Delete(_), None) => return Ok(OpOutcome::Nothing),
            (Op::Cas(_, expected, _), _) if *expected != current => {
                return Err(Rejection::Conflict { cell: cell.name.to_owned(), current });
            }
            _ => {}
        }
        Ok(OpOutcome::Written(self.write(cell, value)))
    }

    fn write(&mut self, cell: CellName, value: Option<Value>) -> u64 {
        let deleted = value.is_none();
        let write = Write { value, commit: self.commit, at_us: self.wall_us };
        let floor = self.floor(cell).version;
        self.cells.entry(cell).or_insert_with(|| Cell::starting_above(floor)).writes.push(write);
        self.give_up(cell);
        let version = self.cells[&cell].newest();
        self.feed.write(self.commit, self.wall_us, cell, version, deleted);
        version
    }

    /// Gives up old versions that are due, oldest first, at most as many as one write may.
    fn give_up(&mut self, cell: CellName) {
        let retention = self.spaces[&cell.space].retention;
        let Some(cell) = self.cells.get_mut(&cell) else {
            return;
        };
        for _ in 0..=self.limits.write_trim_rows_max {
            if cell.oldest_is_due(retention, self.wall_us) {
                cell.given_up += 1;
            }
        }
    }

    fn undo(&mut self, cell: CellName, before: Option<(usize, usize)>) {
        match before {
            None => drop(self.cells.remove(&cell)),
            Some((writes, given_up)) => {
                let cell = self.cells.get_mut(&cell).expect("it was there before");
                cell.writes.truncate(writes);
                cell.given_up = given_up;
            }
        }
    }

    fn change(&mut self, change: &CatalogueChange) -> Result<Vec<OpOutcome>, Rejection> {
        let missing = |space: &u32| Rejection::NoSuchSpace { space: format!("#{space}") };
        let mut assigned = Vec::new();
        match change {
            CatalogueChange::RegisterMachine { .. } => unreachable!("the model brings no machine"),
            CatalogueChange::CreateSpace { name } => {
                if self.spaces.values().any(|space| space.name == *name) {
                    return Err(Rejection::AlreadyExists { what: "space", name: name.clone() });
                }
                let (max, got) = (self.limits.spaces_max as usize, self.spaces.len() + 1);
                if got > max {
                    return Err(Rejection::too_large("spaces_max", max, got));
                }
                assigned.push(OpOutcome::Assigned(self.add_space(name)));
            }
            CatalogueChange::CreateBranch { space, name } => {
                let found = self.spaces.get(space).ok_or_else(|| missing(space))?;
                let live = found.branches.values().filter(|branch| !branch.deleted);
                if live.clone().any(|branch| branch.name == *name) {
                    return Err(Rejection::AlreadyExists { what: "branch", name: name.clone() });
                }
                let (max, got) = (self.limits.branches_per_space_max as usize, live.count() + 1);
                if got > max {
                    return Err(Rejection::too_large("branches_per_space_max", max, got));
                }
                assigned.push(OpOutcome::Assigned(self.add_branch(*space, name)));
            }
            CatalogueChange::DeleteBranch { space, branch } => {
                let found = self.spaces.get_mut(space).ok_or_else(|| missing(space))?;
                let live = found.branches.get_mut(branch).filter(|branch| !branch.deleted);
                let live = live.ok_or_else(|| Rejection::NoSuchBranch { branch: format!("#{branch}") })?;
                if live.name == MAIN_BRANCH {
                    return Err(Rejection::MainBranch);
                }
                live.deleted = true;
            }
            CatalogueChange::SetRetention { space, retention } => {
                self.spaces.get_mut(space).ok_or_else(|| missing(space))?.retention = *retention;
            }
            CatalogueChange::SetLimits(limits) => self.limits = *limits,
            CatalogueChange::DeclareType { .. } => unreachable!("the model of cells declares no record types"),
        }
        self.revision += 1;
        Ok(assigned)
    }

    fn trim(&mut self, step: &TrimStep) {
        match step {
            TrimStep::Records { .. } | TrimStep::Lanes { .. } | TrimStep::ForgetRecord(_) => {
                unreachable!("the model of cells has no records")
            }
            TrimStep::ForgetCell(key) => {
                let group = key.group.as_deref().map(known);
                self.forget(CellName::new(key.space, key.branch, group, known(&key.name)), key.bucket);
            }
            TrimStep::Cell(key) => {
                let group = key.group.as_deref().map(known);
                let cell = CellName::new(key.space, key.branch, group, known(&key.name));
                if self.is_live(key.space, key.branch) {
                    self.give_up(cell);
                } else {
                    self.remove_some(cell);
                }
            }
            TrimStep::Branch { space, branch } => self.forget_branch(*space, *branch),
        }
    }

    /// Forgets a deleted cell, or some of its old versions.
    fn forget(&mut self, name: CellName, bucket: u16) {
        let Some(cell) = self.cells.get_mut(&name).filter(|cell| cell.live_version().is_none()) else {
            return;
        };
        let old = cell.writes.len() - 1 - cell.given_up;
        if old > REMOVED_ROWS_MAX {
            cell.given_up += REMOVED_ROWS_MAX;
            return;
        }
        let floor = self.floors.entry((bucket, name.space, name.branch)).or_default();
        floor.version = floor.version.max(cell.newest());
        let deletion = cell.writes.last().expect("it was deleted");
        floor.commit = floor.commit.max(deletion.commit);
        floor.at_us = floor.at_us.max(deletion.at_us);
        self.cells.remove(&name);
    }

    /// Removes a part of a cell whose branch was deleted.
    fn remove_some(&mut self, name: CellName) {
        let Some(cell) = self.cells.get_mut(&name) else {
            return;
        };
        let old = cell.writes.len() - 1 - cell.given_up;
        if old <= REMOVED_ROWS_MAX {
            self.cells.remove(&name);
        } else {
            cell.given_up += REMOVED_ROWS_MAX;
        }
    }

    fn forget_branch(&mut self, space: u32, branch: u32) {
        let has_cells = self.cells.keys().any(|cell| (cell.space, cell.branch) == (space, branch));
        let branches = &mut self.spaces.get_mut(&space).expect("spaces are never deleted").branches;
        if !has_cells && branches.get(&branch).is_some_and(|branch| branch.deleted) {
            branches.remove(&branch);
            self.floors.retain(|(_, of_space, of_branch), _| (*of_space, *of_branch) != (space, branch));
            self.revision += 1;
        }
    }

    /// What a whole walk does: gives up everything that is due now, and forgets every deleted branch.
    pub(crate) fn walk(&mut self) {
        let deleted = |space: u32, branch: u32| !self.is_live(space, branch);
        let gone: Vec<_> = self.cells.keys().filter(|cell| deleted(cell.space, cell.branch)).copied().collect();
        gone.iter().for_each(|cell| drop(self.cells.remove(cell)));
        for (name, cell) in &mut self.cells {
            while cell.oldest_is_due(self.spaces[&name.space].retention, self.wall_us) {
                cell.given_up += 1;
            }
        }
        for space in self.spaces.values_mut() {
            let before = space.branches.len();
            space.branches.retain(|_, branch| !branch.deleted);
            self.revision += (before - space.branches.len()) as u64;
        }
        let spaces = &self.spaces;
        self.floors.retain(|(_, space, branch), _| spaces[space].branches.contains_key(branch));
    }
}
