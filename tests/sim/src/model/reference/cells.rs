//! Cells: every version that was ever written stays in a list; what retention has given up is a count from its beginning.

use std::collections::{BTreeMap, BTreeSet};

use contract::cells::PastVersion;
use contract::{
    AsOf, CellRejection, History, HistoryPage, ListPage, Listed, Moment, NameInGroup, Rejection, Retention, Value,
    Versioned,
};
use kernel::command::act::Condition;
use kernel::names::InGroup;
use kernel::{CellAct, CellGuard, OpOutcome, Transact};

use super::feed::Fed;
use super::{Id, Outcome, Reference, Undo};

/// Old versions that one step of the walk removes of a cell that was deleted, or whose branch was.
const REMOVED_ROWS_MAX: usize = 64;

/// All versions of a cell: version `n` is `writes[n - 1]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) writes: Vec<Write>,
    /// How many, from the first on, are not kept any more.
    pub(crate) given_up: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Write {
    /// None for a deletion.
    pub(crate) value: Option<Value>,
    pub(crate) commit: u64,
    pub(crate) at_us: u64,
}

/// The highest version of cells that were forgotten, and the last command that changed one.
#[derive(Clone, Copy, Default)]
pub(crate) struct CellFloor {
    version: u64,
    commit: u64,
    at_us: u64,
}

impl Cell {
    /// A new cell whose first version comes after `floor`. The versions before it were never its own.
    fn starting_above(floor: u64) -> Self {
        let never = Write { value: None, commit: 0, at_us: u64::MAX };
        let given_up = usize::try_from(floor).expect("few versions");
        Self { writes: vec![never; given_up], given_up }
    }

    /// The newest version; 0 if there is none.
    pub(crate) fn newest(&self) -> u64 {
        self.writes.len() as u64
    }

    /// The oldest version that is kept.
    pub(crate) fn oldest(&self) -> u64 {
        self.given_up as u64 + 1
    }

    /// The version, if the cell exists.
    pub(crate) fn live_version(&self) -> Option<u64> {
        self.writes.last().filter(|write| write.value.is_some()).map(|_| self.newest())
    }

    /// A version with its value; none if it is a deletion or there is no such version.
    fn version(&self, version: u64) -> Option<Versioned> {
        let write = self.writes.get(usize::try_from(version).ok()?.checked_sub(1)?)?;
        Some(Versioned::new(write.value.clone()?, version, write.commit, write.at_us))
    }

    /// The newest version, if the cell exists.
    pub(crate) fn versioned(&self) -> Option<Versioned> {
        self.version(self.newest())
    }

    /// Whether the oldest version that is kept is to be given up: it is an old one, and either too many are newer
    /// or it was last current too long ago. It was current until the next one was written.
    pub(crate) fn oldest_is_due(&self, retention: Retention, now_us: u64) -> bool {
        let Some(next) = self.writes.get(self.given_up + 1) else {
            return false;
        };
        let kept = (self.writes.len() - self.given_up) as u64;
        kept > retention.versions_max || next.at_us.saturating_add(retention.age_us_max) < now_us
    }
}

impl Reference {
    /// A cell that nobody has written is one without versions.
    pub(crate) fn cell(&self, id: &Id) -> Cell {
        self.cells.get(id).cloned().unwrap_or_default()
    }

    /// A transaction on cells that was committed under the number and at the time that the reference has now.
    pub(crate) fn transact_cells(&mut self, transact: &Transact<'_>) -> Result<Vec<OpOutcome>, Vec<Rejection>> {
        self.undo.clear();
        let done = self.transact(transact, 0);
        if done.is_err() {
            self.undo_to(0);
        }
        let is = |outcome| match outcome {
            Outcome::Is(outcome) => outcome,
            Outcome::Claimed(..) => unreachable!("it is about cells"),
        };
        done.map(|outcomes| outcomes.into_iter().map(is).collect())
    }

    pub(super) fn cell_act(&mut self, id: &Id, act: &CellAct<'_>) -> Result<OpOutcome, Rejection> {
        let current = self.cell_version(id);
        let value = match (act, current) {
            (CellAct::Init(_), Some(version)) => return Ok(OpOutcome::Existing(version)),
            (CellAct::Delete, None) => return Ok(OpOutcome::Nothing),
            (CellAct::Cas(expected, _), _) if *expected != current => {
                return Err(Rejection::Cell(CellRejection::Conflict { cell: id.name.clone(), current }));
            }
            (CellAct::Init(value) | CellAct::Set(value) | CellAct::Cas(_, value), _) => Some(value.to_value()),
            (CellAct::Delete, Some(_)) => None,
        };
        Ok(OpOutcome::Written(self.write_cell(id, value)))
    }

    fn write_cell(&mut self, id: &Id, value: Option<Value>) -> u64 {
        let floor = self.cell_floor(id).version;
        let before = self.cells.get(id).map(|cell| (cell.writes.len(), cell.given_up));
        self.undo.push(Undo::Cell(id.clone(), before));
        let deleted = value.is_none();
        let (commit, at_us) = (self.commit, self.wall_us);
        let cell = self.cells.entry(id.clone()).or_insert_with(|| Cell::starting_above(floor));
        cell.writes.push(Write { value, commit, at_us });
        let version = cell.newest();
        self.feed.write(Fed { commit, at_us, id: id.clone(), version, deleted });
        self.give_up(id);
        version
    }

    pub(super) fn undo_cell(&mut self, id: &Id, before: Option<(usize, usize)>) {
        self.feed.undo();
        match before {
            None => drop(self.cells.remove(id)),
            Some((writes, given_up)) => {
                let cell = self.cells.get_mut(id).expect("it was there before");
                cell.writes.truncate(writes);
                cell.given_up = given_up;
            }
        }
    }

    pub(super) fn cell_version(&self, id: &Id) -> Option<u64> {
        self.cells.get(id).and_then(Cell::live_version)
    }

    /// What is known of the forgotten cells that a cell may have been one of.
    fn cell_floor(&self, id: &Id) -> CellFloor {
        self.cell_floors.get(&(self.bucket(id), id.space, id.branch)).copied().unwrap_or_default()
    }

    /// Gives up old versions that are due, oldest first, at most as many as one write may.
    pub(super) fn give_up(&mut self, id: &Id) {
        let retention = self.spaces[&id.space].retention;
        let Some(cell) = self.cells.get_mut(id) else {
            return;
        };
        for _ in 0..=self.limits.write_trim_rows_max {
            if cell.oldest_is_due(retention, self.wall_us) {
                cell.given_up += 1;
            }
        }
    }

    /// Forgets a deleted cell, or some of its old versions.
    pub(super) fn forget_cell(&mut self, id: &Id) {
        let bucket = self.bucket(id);
        let Some(cell) = self.cells.get_mut(id).filter(|cell| cell.live_version().is_none()) else {
            return;
        };
        let old = cell.writes.len() - 1 - cell.given_up;
        if old > REMOVED_ROWS_MAX {
            cell.given_up += REMOVED_ROWS_MAX;
            return;
        }
        let floor = self.cell_floors.entry((bucket, id.space, id.branch)).or_default();
        floor.version = floor.version.max(cell.newest());
        let deletion = cell.writes.last().expect("it was deleted");
        floor.commit = floor.commit.max(deletion.commit);
        floor.at_us = floor.at_us.max(deletion.at_us);
        self.cells.remove(id);
    }

    /// Removes a part of a cell whose branch was deleted.
    pub(super) fn remove_some_of_cell(&mut self, id: &Id) {
        let Some(cell) = self.cells.get_mut(id) else {
            return;
        };
        let old = cell.writes.len() - 1 - cell.given_up;
        if old <= REMOVED_ROWS_MAX {
            self.cells.remove(id);
        } else {
            cell.given_up += REMOVED_ROWS_MAX;
        }
    }

    /// What a guard is refused with; nothing if it holds. Of a range any cell that has changed may be named.
    pub(super) fn check_cell_guard(&self, transact: &Transact<'_>, guard: &CellGuard<'_>) -> Vec<Rejection> {
        let Transact { space, branch, group, .. } = *transact;
        let conflict =
            |name: &str, current| Rejection::Cell(CellRejection::Conflict { cell: name.to_owned(), current });
        let changed = |cell: &Cell, since| cell.writes.last().is_some_and(|write| write.commit > since);
        if let CellGuard::RangeUnchangedSince(from, to, since) = *guard {
            let members = self.members(space, branch, group);
            let is_inside = |name: &str| name >= from && to.is_none_or(|to| name < to);
            let inside = members.iter().filter(|(name, _)| is_inside(name));
            let changed = inside.filter(|(_, cell)| changed(cell, since));
            let mut broken: Vec<_> = changed.map(|(name, cell)| conflict(name, cell.live_version())).collect();
            if self.cell_floor(&Id::new(space, branch, group, "")).commit > since {
                // Something that was forgotten may have been inside; also the cell that has the group's own name.
                broken.push(conflict(from, None));
                let is_gone = |own: &&str| !self.cells.contains_key(&Id::new(space, branch, group, own));
                let own = group.filter(|own| is_inside(own)).filter(is_gone);
                broken.extend(own.map(|own| conflict(own, None)));
            }
            return broken;
        }
        let name = guard.name().expect("ranges are answered above");
        let id = Id::new(space, branch, group, name);
        let (cell, current) = (self.cells.get(&id), self.cell_version(&id));
        let holds = match guard {
            CellGuard::Absent(_) => current.is_none(),
            CellGuard::Exists(_) => current.is_some(),
            CellGuard::VersionIs(_, version) => current == Some(*version),
            CellGuard::VersionBelow(_, version) => current.is_none_or(|current| current < *version),
            CellGuard::UnchangedSince(_, since) => match cell {
                None => self.cell_floor(&id).commit <= *since,
                Some(cell) => !changed(cell, *since),
            },
            CellGuard::RangeUnchangedSince(..) => unreachable!("answered above"),
        };
        if holds { Vec::new() } else { vec![conflict(name, current)] }
    }

    /// The cells of a group, or those of a branch that are their own group, by name.
    pub(crate) fn members(&self, space: u32, branch: u32, group: Option<&str>) -> BTreeMap<&str, &Cell> {
        let of_group = |id: &Id| match group {
            None => id.group.is_none(),
            Some(group) => id.home() == group,
        };
        let here = self.cells.iter().filter(|(id, _)| id.place() == (space, branch) && of_group(id));
        here.map(|(id, cell)| (id.name.as_str(), cell)).collect()
    }

    /// What a whole walk does: gives up everything that is due now, and forgets every deleted branch.
    pub(crate) fn walk_cells(&mut self) {
        let spaces = &self.spaces;
        let is_live = |space: u32, branch: u32| spaces[&space].branches.get(&branch).is_some_and(|one| !one.deleted);
        self.cells.retain(|id, _| is_live(id.space, id.branch));
        for (id, cell) in &mut self.cells {
            while cell.oldest_is_due(spaces[&id.space].retention, self.wall_us) {
                cell.given_up += 1;
            }
        }
        for space in self.spaces.values_mut() {
            let before = space.branches.len();
            space.branches.retain(|_, branch| !branch.deleted);
            self.revision += (before - space.branches.len()) as u64;
        }
        let spaces = &self.spaces;
        self.cell_floors.retain(|(_, space, branch), _| spaces[space].branches.contains_key(branch));
    }

    /// How many rows a store needs for a catalogue without declarations and for cells: one for what was applied, one for the
    /// catalogue and for each space, branch and kept version, and for the name of each cell of a named group that exists
    /// (K8), and for what each space takes that has a cell (U1). Those of the change feed are not counted.
    pub(crate) fn rows_of_cells(&self) -> u64 {
        let branches: usize = self.spaces.values().map(|space| space.branches.len()).sum();
        let versions: usize = self.cells.values().map(|cell| cell.writes.len() - cell.given_up).sum();
        let grouped = self.cells.iter().filter(|(id, _)| id.group.is_some());
        let names = grouped.filter(|(_, cell)| cell.live_version().is_some()).count();
        let types: usize = self.spaces.values().map(|space| space.types.len()).sum();
        let kept = self.cells.iter().filter(|(_, cell)| cell.writes.len() > cell.given_up);
        let used = kept.map(|(id, _)| id.space).collect::<BTreeSet<_>>().len();
        (2 + self.spaces.len() + branches + types + versions + names + used + self.cell_floors.len()) as u64
    }

    /// The kept versions below `page.before`, newest first.
    pub(crate) fn history(&self, id: &Id, page: HistoryPage) -> History {
        let Some(cell) = self.cells.get(id) else {
            return History::default();
        };
        let below = page.before.unwrap_or(u64::MAX);
        let kept = (cell.oldest()..=cell.newest()).rev().filter(|version| *version < below);
        let past = |version: u64| {
            let write = &cell.writes[usize::try_from(version).expect("it fits") - 1];
            PastVersion::new(version, write.value.clone(), write.commit, write.at_us)
        };
        let versions: Vec<_> = kept.clone().take(page.limit).map(past).collect();
        let more = kept.count() > versions.len();
        let next_before = versions.last().map(|last| last.version).filter(|_| more);
        History { versions, next_before }
    }

    /// The cell as it was.
    pub(crate) fn at(&self, id: &Id, moment: Moment) -> AsOf {
        let Some(cell) = self.cells.get(id) else {
            let floor = self.cell_floor(id);
            let may_be_forgotten = match moment {
                Moment::Version(version) => (1..=floor.version).contains(&version),
                Moment::Time(time_us) => time_us < floor.at_us,
            };
            return if may_be_forgotten { AsOf::Unavailable { oldest: floor.version + 1 } } else { AsOf::Absent };
        };
        let (newest, oldest) = (cell.newest(), cell.oldest());
        let version = match moment {
            Moment::Version(version) => version,
            Moment::Time(time_us) => match cell.writes.iter().rposition(|write| write.at_us <= time_us) {
                Some(index) => index as u64 + 1,
                // Before the first version. Once that is given up, nobody can tell any more.
                None if oldest > 1 => return AsOf::Unavailable { oldest },
                None => return AsOf::Absent,
            },
        };
        if version > 0 && version < oldest {
            return AsOf::Unavailable { oldest };
        }
        if version > newest {
            return AsOf::Absent;
        }
        cell.version(version).map_or(AsOf::Absent, AsOf::Value)
    }

    /// The cells whose names begin with `prefix`, of all groups, of one, or those that are their own.
    pub(crate) fn list_cells(&self, place: (u32, u32), groups: InGroup<'_>, prefix: &str, page: &ListPage) -> Listed {
        let of_groups = |id: &Id| match groups {
            InGroup::Any => true,
            InGroup::Own => id.group.is_none(),
            InGroup::Named(group) => id.home() == group,
        };
        let wanted = |id: &Id| id.place() == place && of_groups(id) && id.name.starts_with(prefix);
        let wanted = self.cells.iter().filter(|(id, _)| wanted(id));
        let existing =
            wanted.filter_map(|(id, cell)| Some((NameInGroup::new(&*id.name, id.group.clone()), cell.versioned()?)));
        let after = |name: &NameInGroup| page.after.as_ref().is_none_or(|after| name > after);
        let mut cells: Vec<_> = existing.filter(|(name, _)| after(name)).collect();
        cells.sort_by(|(one, _), (other, _)| one.cmp(other));
        let more = cells.len() > page.limit;
        cells.truncate(page.limit);
        let next_after = cells.last().map(|(name, _)| name.clone()).filter(|_| more);
        Listed { cells, next_after }
    }
}
