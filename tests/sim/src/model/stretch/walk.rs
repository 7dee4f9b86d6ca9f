//! The walk for what retention gives up, as far as it is about cells: some of what it finds is proposed later and in another
//! order, and a whole walk leaves nothing that is due.

use kernel::Body;
use kernel::RecordTrim;
use kernel::trim::{TRIM_STEPS_MAX, TrimStep, find_due};

use super::Stretch;
use crate::model::drawn::Drawn;
use crate::model::instance::halted;
use crate::model::mixed;
use crate::model::records::generator::filled;
use crate::model::tally::add;

/// Rounds after which a walk must have found everything.
const WALK_ROUNDS_MAX: usize = 10_000;

impl Stretch<'_> {
    /// Everything about cells against the reference.
    pub(super) fn check_cells(&mut self) -> Result<(), String> {
        let view = self.instance.view()?;
        let mut random = self.random.clone();
        let reads = self.cells(&*view).everything(&mut random)?;
        self.random = random;
        mixed::compare::catalogue(&self.instance, &self.reference)?;
        self.count_reads(reads);
        add(&self.tally.checks, 1);
        Ok(())
    }

    /// One step of the walk; what it finds is proposed among later commands.
    pub(super) fn look_for_due(&mut self) -> Result<(), String> {
        let heads_max = self.random.pick(&[1, 10, 50, 2_000]);
        let forgets = self.random.one_in(8);
        let (steps, next) = self.find_due(self.walk_after.clone(), heads_max, forgets)?;
        self.walk_after = next;
        // Those that fill indexes are not cut into pieces here: see the reference.
        self.due
            .extend(steps.into_iter().filter(|step| !matches!(step, TrimStep::Record(RecordTrim::FillIndexes { .. }))));
        self.due.truncate(TRIM_STEPS_MAX);
        Ok(())
    }

    fn find_due(
        &self,
        after: Option<Vec<u8>>,
        heads_max: usize,
        forgets: bool,
    ) -> Result<(Vec<TrimStep>, Option<Vec<u8>>), String> {
        let (kernel, view) = (&self.instance.kernel, self.instance.view()?);
        let now_us = self.reference.wall_us;
        find_due(&*view, kernel.catalogue(), &self.instance.keys, now_us, after.as_deref(), heads_max, forgets)
            .map_err(halted)
    }

    /// Walks until nothing is found, after which nothing may be due.
    pub(super) fn walk(&mut self) -> Result<(), String> {
        for _ in 0..WALK_ROUNDS_MAX {
            let heads_max = 1 + self.random.index(200);
            let mut found = false;
            let mut after = None;
            loop {
                let (steps, next) = self.find_due(after, heads_max, false)?;
                if !steps.is_empty() {
                    found = true;
                    self.pass_time();
                    let (filling, steps): (Vec<_>, Vec<_>) = steps
                        .into_iter()
                        .partition(|step| matches!(step, TrimStep::Record(RecordTrim::FillIndexes { .. })));
                    for step in filling.into_iter().take(1) {
                        let TrimStep::Record(RecordTrim::FillIndexes { space, record_type }) = step else { continue };
                        self.apply(vec![Drawn::plain(&Body::Trim(filled(space, record_type)))])?;
                    }
                    self.apply(vec![Drawn::plain(&Body::Trim(steps))])?;
                }
                after = next;
                if after.is_none() {
                    break;
                }
            }
            if !found {
                add(&self.tally.walks, 1);
                return self.nothing_is_due();
            }
        }
        Err("a walk for what is due does not end".into())
    }

    fn nothing_is_due(&self) -> Result<(), String> {
        let reference = &self.reference;
        for (name, cell) in &reference.cells {
            let retention = reference.spaces[&name.space].retention;
            if cell.oldest_is_due(retention, reference.wall_us) {
                let (oldest, newest) = (cell.oldest(), cell.newest());
                return Err(format!("a walk left {name:?} with versions {oldest} to {newest} by {retention:?}"));
            }
        }
        match reference.deleted_places().first() {
            Some(branch) => Err(format!("a walk left the deleted {branch:?}")),
            None => Ok(()),
        }
    }
}
