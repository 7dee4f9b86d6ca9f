//! Looks between entries: at what an entry has named, and at anything.

use std::collections::BTreeSet;

use kernel::{Body, Op};
use session::SessionCommand;

use super::{Judges, Stretch};
use crate::model::drawn::{Drawn, What};
use crate::model::habits::About;
use crate::model::records::names::NAMES;
use crate::model::reference::{Expected, Id};
use crate::model::tally::add;
use crate::model::{mixed, sessions};

impl Stretch<'_> {
    /// Compares some of the cells that an entry named.
    pub(super) fn look_at_cells(&mut self, expected: &[(Drawn, Expected)]) -> Result<(), String> {
        let view = self.instance.view()?;
        let mut random = self.random.clone();
        for (drawn, _) in expected {
            let Some(Body::Transact(transact)) = drawn.body() else {
                continue;
            };
            if let Some(name) = transact.ops.first().and_then(Op::name).filter(|_| random.one_in(4)) {
                let id = Id::new(transact.space, transact.branch, transact.group, name);
                self.count_reads(self.cells(&*view).cell(&id, &mut random)?);
            }
        }
        self.random = random;
        Ok(())
    }

    /// Compares the sessions that an entry named.
    pub(super) fn look_at_sessions(&mut self, expected: &[(Drawn, Expected)]) -> Result<(), String> {
        if self.judges != Judges::All {
            return Ok(());
        }
        let view = self.instance.view()?;
        for (drawn, _) in expected {
            let named = match &drawn.what {
                What::Sessions(SessionCommand::Acknowledge { session, .. }) => Some(*session),
                _ => drawn.sender.map(|sender| sender.session),
            };
            if let Some(session) = named {
                sessions::compare::session(&self.instance, &*view, &self.reference, session)?;
                self.count_reads(1);
            }
        }
        Ok(())
    }

    /// Compares the runs that an entry named.
    pub(super) fn look_at_runs(&mut self, expected: &[(Drawn, Expected)]) -> Result<(), String> {
        let mut touched = BTreeSet::new();
        for (drawn, _) in expected {
            if let Some(Body::Transact(transact)) = drawn.body() {
                let (space, branch, group) = (transact.space, transact.branch, transact.group);
                let runs = transact.ops.iter().filter(|op| matches!(op, Op::Run(..))).filter_map(Op::name);
                touched.extend(runs.map(|run| Id::new(space, branch, group, run)));
            }
        }
        touched.retain(|id| self.reference.is_live(id.space, id.branch));
        if self.judges != Judges::All {
            return Ok(());
        }
        let view = self.instance.view()?;
        let mut random = self.random.clone();
        for id in &touched {
            self.runs(&*view).run(id, &mut random)?;
        }
        self.random = random;
        self.count_reads(touched.len() as u64);
        if self.habits.about == About::Runs {
            // Reads of runs are operations of their model.
            self.done += touched.len() as u64;
            add(&self.tally.operations, touched.len() as u64);
        }
        Ok(())
    }

    /// Compares the maps that an entry named.
    pub(super) fn look_at_maps(&mut self, expected: &[(Drawn, Expected)]) -> Result<(), String> {
        let mut touched = BTreeSet::new();
        for (drawn, _) in expected {
            if let Some(Body::Transact(transact)) = drawn.body() {
                let maps = transact.ops.iter().filter(|op| matches!(op, Op::Map(..))).filter_map(Op::name);
                touched.extend(maps.map(|map| Id::new(transact.space, transact.branch, transact.group, map)));
            }
        }
        touched.retain(|id| self.reference.is_live(id.space, id.branch));
        if self.judges != Judges::All {
            return Ok(());
        }
        let view = self.instance.view()?;
        let mut random = self.random.clone();
        for id in &touched {
            self.maps(&*view).map(id, &mut random)?;
        }
        self.random = random;
        self.count_reads(touched.len() as u64);
        Ok(())
    }

    /// Some things, a scan and a list.
    pub(super) fn look_around(&mut self) -> Result<(), String> {
        if matches!(self.habits.about, About::Cells | About::Sessions | About::Keyed) {
            return Ok(());
        }
        let view = self.instance.view()?;
        let mut random = self.random.clone();
        if self.habits.about != About::Runs {
            for _ in 0..3 {
                let (space, branch, group) = self.habits.focus.place(&mut random, &self.reference);
                let id = Id::new(space, branch, group, random.pick(&NAMES));
                self.records(&*view).thing(&id)?;
                self.cells(&*view).cell(&id, &mut random)?;
            }
            self.records(&*view).scan(&mut random)?;
            let listed = mixed::compare::list_of_cells(&self.cells(&*view), &mut random)?;
            self.count_reads(7 + listed);
        }
        if self.habits.about != About::Records && random.one_in(4) {
            self.runs(&*view).list(&mut random)?;
            self.count_reads(1);
        }
        self.random = random;
        Ok(())
    }
}
