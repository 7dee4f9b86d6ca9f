//! Compares cells with the reference, by every read of cells there is.

use contract::{Followed, HistoryPage, ListPage, Moment, NameInGroup, Subject};
use kernel::cells::{ViewCells, at, get, history, list};
use kernel::changes::{Filter, changes_after};
use kernel::keys::ThingId;
use kernel::names::InGroup;
use kv::View;
use testkit::random::Random;

use crate::model::compare::same;
use crate::model::instance::{Instance, halted};
use crate::model::places::GROUPS;
use crate::model::records::names::{NAMES, PREFIXES};
use crate::model::reference::{Id, Reference};

/// A store and the reference beside it.
pub(crate) struct Both<'both> {
    pub(crate) instance: &'both Instance,
    pub(crate) view: &'both dyn View,
    pub(crate) reference: &'both Reference,
}

impl Both<'_> {
    /// One cell, now and in the past. Gives how many reads that were.
    pub(crate) fn cell(&self, id: &Id, random: &mut Random) -> Result<u64, String> {
        let cells = ViewCells { view: self.view, keys: self.instance.keys };
        let (space, branch, group, name) = (id.space, id.branch, id.group.as_deref(), id.name.as_str());
        let thing = ThingId { bucket: self.reference.bucket(id), space, branch, group, name };
        let expected = self.reference.cells.get(id);
        let versioned = expected.and_then(|cell| cell.versioned());
        let found = get::get_versioned(&cells, &thing).map_err(halted)?;
        same(|| format!("get_versioned {id:?}"), &found, &versioned)?;
        let found = get::get(&cells, &thing).map_err(halted)?;
        same(|| format!("get {id:?}"), &found, &versioned.map(|found| found.value))?;
        let mut page = HistoryPage { before: None, limit: random.pick(&[1, 7, 100, 1_000]) };
        let mut reads = 3;
        loop {
            let found = history::history(&cells, &thing, page).map_err(halted)?;
            same(|| format!("history {id:?} {page:?}"), &found, &self.reference.history(id, page))?;
            reads += 1;
            page.before = found.next_before;
            // Pages of one are for the edges; a whole history of them would take too long.
            if page.before.is_none() || (page.limit == 1 && random.one_in(8)) {
                break;
            }
        }
        for moment in self.moments(id, random) {
            let found = at::at(&cells, &thing, moment).map_err(halted)?;
            same(|| format!("{id:?} at {moment:?}"), &found, &self.reference.at(id, moment))?;
            reads += 1;
        }
        Ok(reads)
    }

    /// Moments at the edges of what is kept, and some within.
    fn moments(&self, id: &Id, random: &mut Random) -> Vec<Moment> {
        let Some(cell) = self.reference.cells.get(id) else {
            return vec![Moment::Version(random.below(4)), Moment::Time(random.below(self.reference.wall_us + 1))];
        };
        let (oldest, newest) = (cell.oldest(), cell.newest());
        let within = oldest + random.below(newest - oldest + 1);
        let versions = [0, oldest - 1, oldest, within, newest, newest + 1];
        let mut moments = versions.map(Moment::Version).to_vec();
        for version in [oldest, within, newest] {
            let written = cell.writes[usize::try_from(version).expect("it fits") - 1].at_us;
            moments.extend([written - 1, written, written + 1].map(Moment::Time));
        }
        moments.extend([0, u64::MAX].map(Moment::Time));
        moments
    }

    /// A list, page by page to its end.
    pub(crate) fn list(&self, random: &mut Random) -> Result<(), String> {
        let place = *random.choose(&self.reference.live_places());
        let groups = match random.below(4) {
            0 => InGroup::Own,
            1 => InGroup::Named(random.pick(&GROUPS)),
            _ => InGroup::Any,
        };
        let prefix = random.pick(&PREFIXES);
        let after = random.one_in(4).then(|| {
            let (name, group) = (random.pick(&NAMES), random.pick(&GROUPS));
            NameInGroup::new(name, (group != name && random.one_in(2)).then(|| group.to_owned()))
        });
        let mut page = ListPage { after, limit: random.pick(&[1, 2, 5, 1_000]) };
        loop {
            let (keys, catalogue) = (&self.instance.keys, self.instance.kernel.catalogue());
            let found = list::list(self.view, keys, catalogue, place, groups, prefix, &page).map_err(halted)?;
            let expected = self.reference.list_cells(place, groups, prefix, &page);
            same(|| format!("cells of {place:?} {groups:?} {prefix:?} {page:?}"), &found, &expected)?;
            page.after = found.next_after;
            if page.after.is_none() {
                return Ok(());
            }
        }
    }

    /// Follows what the change feed tells of cells, from anywhere to its end.
    pub(crate) fn feed(&self, random: &mut Random) -> Result<(), String> {
        let place = *random.choose(&self.reference.live_places());
        let subject = Some(Subject::Cell);
        let filter = Filter { space: place.0, branch: place.1, subject, group: InGroup::Any, prefix: "" };
        let begin = random.below(self.reference.commit + 1);
        let limit = random.pick(&[3, 100, 10_000]);
        let (mut cursor, mut found) = (begin, Vec::new());
        loop {
            match changes_after(self.view, &self.instance.keys, cursor, &filter, limit).map_err(halted)? {
                Followed::Page(page) => {
                    found.extend(page.changes);
                    cursor = page.next;
                    if !page.more {
                        break;
                    }
                }
                gap => return Err(format!("following from {cursor}: {gap:?}")),
            }
        }
        let expected = self.reference.cell_changes_after(place, begin);
        same(|| format!("following the cells of {place:?} from {begin}"), &found, &expected)
    }
}
