//! Compares cells with the reference, by every read of cells there is.

use contract::{Followed, HistoryPage, ListPage, Moment, NameInGroup, Subject};
use kernel::cells::{ViewCells, at, get, history, list};
use kernel::changes::{Filter, changes_after};
use kernel::names::InGroup;
use kv::View;
use testkit::random::Random;

use super::names::{GROUPS, NAMES, PREFIXES};
use crate::model::compare::same;
use crate::model::instance::{Instance, halted, text};
use crate::model::reference::{Id, Reference};

/// Pages of the change feed that are followed at a time.
pub(crate) const FOLLOWED_PAGES_MAX: u64 = 200;

/// A store and the reference beside it.
pub(crate) struct Both<'both> {
    pub(crate) instance: &'both Instance,
    pub(crate) view: &'both dyn View,
    pub(crate) reference: &'both Reference,
}

impl Both<'_> {
    /// Compares everything in a store that holds cells alone. Gives how many reads that were.
    pub(crate) fn everything(&self, random: &mut Random) -> Result<u64, String> {
        let mut reads = 0;
        for place @ (space, branch) in self.reference.live_places() {
            for group in GROUPS.map(Some).into_iter().chain([None]) {
                for name in NAMES {
                    reads += self.cell(&Id::new(space, branch, group, name), random)?;
                }
                reads += self.lists(place, group.map_or(InGroup::Any, InGroup::Named), random)?;
            }
            reads += self.lists(place, InGroup::Own, random)?;
        }
        reads += self.feed(None, random)?;
        let (_, rows) = self.instance.image()?;
        same(|| "the number of rows in an image".into(), &rows, &self.reference.rows_of_cells())?;
        Ok(reads)
    }

    /// Follows the change feed of a branch from anywhere, to its end if that is not far (F1).
    /// Where other things than cells change too, the subject leaves them out.
    pub(crate) fn feed(&self, subject: Option<Subject>, random: &mut Random) -> Result<u64, String> {
        let (space, branch) = *random.choose(&self.reference.live_places());
        let filter = Filter { space, branch, subject, group: InGroup::Any, prefix: "" };
        let (oldest, newest) = (self.reference.feed.floor, self.reference.commit);
        let begin =
            if random.one_in(2) { oldest + random.below(newest - oldest + 1) } else { random.below(newest + 3) };
        let limit = *random.choose(&[1, 2, 7, 100, 1_000]);
        let (mut cursor, mut found, mut reads, mut more) = (begin, Vec::new(), 0, true);
        while more && reads < FOLLOWED_PAGES_MAX {
            reads += 1;
            match changes_after(self.view, &self.instance.keys, cursor, &filter, limit).map_err(halted)? {
                Followed::Page(page) => {
                    found.extend(page.changes);
                    cursor = page.next;
                    more = page.more;
                }
                gap => {
                    same(|| format!("following from {cursor}"), &gap, &Followed::Gap { oldest, newest })?;
                    return same(|| "a gap".into(), &(begin < oldest || begin > newest), &true).map(|()| reads);
                }
            }
        }
        let mut expected = self.reference.cell_changes_after((space, branch), begin);
        expected.retain(|change| change.commit <= cursor);
        same(|| format!("following from {begin} to {cursor}"), &found, &expected)?;
        same(|| "where following ends".into(), &(cursor == newest), &!more)?;
        same(|| "no gap".into(), &(oldest..=newest).contains(&begin), &true).map(|()| reads)
    }

    /// One cell, now and in the past. Gives how many reads that were.
    pub(crate) fn cell(&self, cell: &Id, random: &mut Random) -> Result<u64, String> {
        let catalogue = self.instance.kernel.catalogue();
        let id = catalogue.thing(cell.space, cell.branch, cell.group.as_deref(), &cell.name);
        if !self.reference.is_live(cell.space, cell.branch) {
            return id.map_or(Ok(1), |_| Err(format!("{cell:?} is found in a branch that is gone")));
        }
        let id = id.map_err(text)?;
        let cells = ViewCells { view: self.view, keys: self.instance.keys };
        let expected = self.reference.cell(cell);
        let found = get::get_versioned(&cells, &id).map_err(halted)?;
        same(|| format!("get_versioned {cell:?}"), &found, &expected.versioned())?;
        let found = get::get(&cells, &id).map_err(halted)?;
        same(|| format!("get {cell:?}"), &found, &expected.versioned().map(|found| found.value))?;
        let mut reads = 2;
        let mut page = HistoryPage { before: None, limit: *random.choose(&[1, 7, 100, 1_000]) };
        if page.limit == 1 {
            page.before = Some(random.below(expected.newest() + 3));
        }
        loop {
            let found = history::history(&cells, &id, page).map_err(halted)?;
            same(|| format!("history {cell:?} {page:?}"), &found, &self.reference.history(cell, page))?;
            reads += 1;
            page.before = found.next_before;
            // Pages of one are for the edges; a whole history of them would take too long.
            if page.before.is_none() || (page.limit == 1 && random.one_in(8)) {
                break;
            }
        }
        for moment in self.moments(cell, random) {
            let found = at::at(&cells, &id, moment).map_err(halted)?;
            same(|| format!("{cell:?} at {moment:?}"), &found, &self.reference.at(cell, moment))?;
            reads += 1;
        }
        Ok(reads)
    }

    /// Moments at the edges of what is kept, and some within. What was forgotten, or never was, has some too.
    fn moments(&self, cell: &Id, random: &mut Random) -> Vec<Moment> {
        let Some(cell) = self.reference.cells.get(cell) else {
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

    fn lists(&self, place: (u32, u32), groups: InGroup<'_>, random: &mut Random) -> Result<u64, String> {
        let mut reads = 0;
        for prefix in ["", *random.choose(&PREFIXES)] {
            let after = random.one_in(4).then(|| any_name(random));
            reads += self.list(place, groups, prefix, after, random)?;
        }
        Ok(reads)
    }

    /// A list, page by page to its end. Gives how many reads that were.
    pub(crate) fn list(
        &self,
        place: (u32, u32),
        groups: InGroup<'_>,
        prefix: &str,
        after: Option<NameInGroup>,
        random: &mut Random,
    ) -> Result<u64, String> {
        let mut page = ListPage { after, limit: *random.choose(&[1, 2, 5, 1_000]) };
        let mut reads = 0;
        loop {
            let (keys, catalogue) = (&self.instance.keys, self.instance.kernel.catalogue());
            let found = list::list(self.view, keys, catalogue, place, groups, prefix, &page).map_err(halted)?;
            let expected = self.reference.list_cells(place, groups, prefix, &page);
            same(|| format!("list {place:?} {groups:?} {prefix:?} {page:?}"), &found, &expected)?;
            reads += 1;
            page.after = found.next_after;
            if page.after.is_none() {
                return Ok(reads);
            }
        }
    }
}

/// A name in any group, there or not, for a list to go on after.
pub(crate) fn any_name(random: &mut Random) -> NameInGroup {
    let name = *random.choose(&NAMES);
    let group = *random.choose(&GROUPS);
    NameInGroup::new(name, (group != name && random.one_in(2)).then(|| group.to_owned()))
}
