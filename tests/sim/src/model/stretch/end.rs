//! The end of a stretch: everything that is due is done, and the same entries are applied again.

use kernel::{Body, Buckets};
use session::SessionCommand;

use super::Stretch;
use crate::model::again::apply_again;
use crate::model::compare::same;
use crate::model::drawn::Drawn;
use crate::model::habits::About;
use crate::model::instance::text;
use crate::model::mixed::upkeep::erase_from;
use crate::model::tally::add;

/// Ticks after which nothing may be due.
const TICKS_MAX: u32 = 100_000;

impl Stretch<'_> {
    /// Lets all time pass, until nothing is due any more.
    pub(super) fn drain(&mut self) -> Result<(), String> {
        if self.habits.about == About::Cells {
            self.walk()?;
        }
        self.check(false)?;
        self.unpin()?;
        self.end_sessions()?;
        let forever_us = 200_000_000 + 2 * self.reference.limits.tombstone_age_us;
        for _ in 0..TICKS_MAX {
            let view = self.instance.view()?;
            let next = self.instance.kernel.next_due(view.clone()).map_err(text)?;
            self.post.collect(&self.instance, &*view, self.reference.buckets.count())?;
            if next.wall_us.is_none() && next.cluster_us.is_none() {
                add(&self.tally.forgotten, self.reference.floors.len() as u64);
                self.check(true)?;
                self.count_executed()?;
                return self.forget_branches();
            }
            let (wall_us, cluster_us) = (self.reference.wall_us, self.reference.cluster_us);
            let later = |next: Option<u64>, now: u64| next.map_or(now, |next| next.max(now));
            let step = if self.random.one_in(20) { forever_us } else { 0 };
            self.reference.begin_entry(later(next.wall_us, wall_us) + step, later(next.cluster_us, cluster_us) + step);
            self.apply(vec![Drawn::plain(&Body::Tick)])?;
        }
        Err(format!("something is still due after {TICKS_MAX} ticks: {:?}", self.instance.next_due))
    }

    /// All sessions end: nothing may be left of any.
    fn end_sessions(&mut self) -> Result<(), String> {
        let sessions: Vec<u64> = self.reference.sessions.keys().copied().collect();
        if sessions.is_empty() {
            return Ok(());
        }
        self.pass_time();
        self.apply(vec![Drawn::sessions(SessionCommand::Expire { sessions })])
    }

    /// (1) What the books of the machines say that ended sessions have executed, and what the reference's own book says.
    fn count_executed(&self) -> Result<(), String> {
        let ended: u64 = self.reference.machines.values().map(|counters| counters.ended.requests).sum();
        same(|| "(1) how many requests were executed".into(), &ended, &(self.reference.executed.len() as u64))
    }

    /// The remains of deleted branches go, and nothing is left of them: a branch that has rows is not forgotten.
    fn forget_branches(&mut self) -> Result<(), String> {
        for place in self.reference.deleted_places() {
            self.pass_time();
            self.apply(vec![erase_from(&self.reference, place, None)])?;
        }
        same(|| "branches that were not forgotten".into(), &self.reference.deleted_places(), &Vec::new())?;
        add(&self.tally.branches_deleted, self.reference.happened.branches_deleted);
        add(&self.tally.branches_forgotten, self.reference.happened.branches_forgotten);
        add(&self.tally.restores, self.reference.happened.restores);
        add(&self.tally.keys_noted, self.reference.happened.keys_noted);
        self.check(true)
    }

    /// Applies the same entries again, with the kernel loaded anew at random: from the beginning, and with an image in the
    /// middle.
    pub(super) fn again(mut self, buckets: Buckets) -> Result<(), String> {
        let (image, _) = self.instance.image()?;
        let count = self.entries.len();
        for middle in [None, Some(self.random.index(count))] {
            apply_again(&mut self.random, &self.entries, &self.hashes, buckets, middle, &image)?;
        }
        add(&self.tally.replayed, count as u64);
        add(&self.tally.replayed_from_image, count as u64);
        Ok(())
    }
}
