//! Steps of the walk: history that is given up, what was deleted, and the remains of deleted branches.

use kernel::keys::things::ThingKey;
use kernel::trim::TrimStep;
use kernel::{CellTrim, RecordTrim};

use super::{Id, Reference};

impl Reference {
    pub(super) fn trim(&mut self, step: &TrimStep) {
        let id = |key: &ThingKey| Id::new(key.space, key.branch, key.group.as_deref(), &key.name);
        match step {
            TrimStep::Record(RecordTrim::Lanes { space, branch, queue, bucket }) => {
                self.trim_lanes(*space, *branch, queue, *bucket)
            }
            TrimStep::Record(RecordTrim::Forget(key)) => {
                let id = id(key);
                if self.records.get(&id).is_some_and(|kept| kept.live.is_none()) {
                    self.forget(&id);
                }
            }
            TrimStep::Cell(CellTrim::Forget(key)) => self.forget_cell(&id(key)),
            TrimStep::Cell(CellTrim::Due(key)) => match self.is_live(key.space, key.branch) {
                true => self.give_up(&id(key)),
                false => self.remove_some_of_cell(&id(key)),
            },
            TrimStep::Erase { bucket, space, branch } => self.erase_things(*bucket, (*space, *branch)),
            TrimStep::Branch { space, branch } => self.forget_branch((*space, *branch)),
            TrimStep::Record(RecordTrim::FillIndexes { space, record_type }) => self.fill_indexes(*space, *record_type),
            TrimStep::Run(step) => match *step {},
            TrimStep::Map(step) => match *step {},
        }
    }

    /// Fills the indexes of a type. The kernel does some of it in a step, and whoever draws the command repeats the step until
    /// that is all.
    fn fill_indexes(&mut self, space: u32, record_type: u32) {
        let types = &mut self.spaces.get_mut(&space).expect("a space that is known").types;
        let declared = types.get_mut(record_type as usize - 1).expect("a type that is known");
        if declared.filled.len() < declared.definition.indexes.len() {
            declared.filled.clone_from(&declared.definition.indexes);
            self.revision += 1;
        }
    }

    /// Removes the records, runs, maps and dead letters of a deleted branch from a bucket. The kernel removes some of them in a step, and whoever
    /// draws the command repeats the step until that is all.
    fn erase_things(&mut self, bucket: u16, place: (u32, u32)) {
        if self.is_live(place.0, place.1) {
            return;
        }
        let here = |reference: &Self, id: &&Id| id.place() == place && reference.bucket(id) == bucket;
        let records: Vec<_> = self.records.keys().filter(|id| here(self, id)).cloned().collect();
        records.iter().for_each(|id| self.erase(id));
        let letters: Vec<_> = self.letters_of(place).filter(|(of, _)| *of == bucket).copied().collect();
        letters.into_iter().for_each(|key| self.remove_letter(key));
        let maps: Vec<_> = self.maps.keys().filter(|id| here(self, id)).cloned().collect();
        for id in &maps {
            let sweep_us = self.maps.remove(id).expect("just found").sweep_us;
            self.orphaned_maps.extend(sweep_us.map(|at_us| (at_us, id.clone())));
        }
        let runs: Vec<_> = self.runs.keys().filter(|id| here(self, id)).cloned().collect();
        for id in &runs {
            // The tick that finds it there has nothing to do but that.
            let removing_us = self.runs.remove(id).expect("just found").life.removing_us;
            self.orphaned.extend(removing_us.map(|at_us| (at_us, id.clone())));
            self.made.retain(|made| made != id);
        }
    }

    /// Removes a record of a deleted branch.
    pub(super) fn erase(&mut self, id: &Id) {
        self.set_record(id, None);
    }

    /// Forgets a deleted branch, if nothing is left of it.
    fn forget_branch(&mut self, place: (u32, u32)) {
        if self.is_live(place.0, place.1) {
            return;
        }
        self.lanes.retain(|(space, branch, ..), _| (*space, *branch) != place);
        let has_things = self.cells.keys().chain(self.records.keys()).chain(self.runs.keys()).chain(self.maps.keys());
        if has_things.into_iter().any(|id| id.place() == place) || self.letters_of(place).next().is_some() {
            return;
        }
        let branches = &mut self.spaces.get_mut(&place.0).expect("spaces are never deleted").branches;
        if branches.remove(&place.1).is_some() {
            self.cell_floors.retain(|(_, space, branch), _| (*space, *branch) != place);
            self.revision += 1;
            self.happened.branches_forgotten += 1;
        }
    }
}
