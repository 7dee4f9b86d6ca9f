//! Reads of the library, compared with the reference.

use contract::{Followed, HistoryPage, ListPage, Moment};
use kernel::names::InGroup;

use super::{Place, Stretch};
use crate::model::cells::compare::{FOLLOWED_PAGES_MAX, any_name};
use crate::model::cells::generator;
use crate::model::cells::names::{GROUPS, NAMES, PREFIXES};
use crate::model::compare::same;
use crate::model::instance::{rows_beside_feed, text};
use crate::model::tally::add;

impl Stretch<'_> {
    /// One read.
    pub(super) fn read(&mut self) -> Result<u64, String> {
        let (place, name) = (self.place(), generator::name(&mut self.random));
        match self.random.below(3) {
            0 => self.compare_list(place)?,
            _ => self.compare_cell(place, name)?,
        }
        Ok(1)
    }

    /// Every cell and list there is.
    pub(super) fn compare_everything(&mut self) -> Result<u64, String> {
        for (space, branch) in self.reference.live_places() {
            for group in GROUPS.map(Some).into_iter().chain([None]) {
                let place = Place { space, branch, group };
                for name in NAMES {
                    self.compare_cell(place, name)?;
                }
                self.compare_list(place)?;
            }
        }
        self.compare_feed()?;
        let rows = self.rows()?;
        same(|| "the number of rows in an image".into(), &rows, &self.reference.rows_of_cells())?;
        self.compare_catalogue()?;
        Ok(1)
    }

    /// How many rows there are beside those of the change feed. Those depend on which commands shared an entry.
    pub(super) fn rows(&self) -> Result<u64, String> {
        let mut image = Vec::new();
        self.house().write_image(&mut image).map_err(text)?;
        rows_beside_feed(&image)
    }

    /// Follows the change feed of a branch from anywhere, or from where it is kept, to its end if that is not far (F1).
    fn compare_feed(&mut self) -> Result<(), String> {
        let place = self.place();
        let (changes, limit) = (self.space(place).changes(), *self.random.choose(&[1, 7, 1_000]));
        let mut begin = self.random.below(self.reference.commit + 1);
        let (mut cursor, mut found, mut more) = (begin, Vec::new(), true);
        for _ in 0..FOLLOWED_PAGES_MAX {
            if !more {
                break;
            }
            match changes.read(cursor, limit).map_err(text)? {
                Followed::Gap { oldest, newest } if cursor < oldest && oldest <= newest && found.is_empty() => {
                    (begin, cursor) = (oldest, oldest);
                }
                Followed::Gap { oldest, newest } => return Err(format!("a gap after {cursor}: {oldest}, {newest}")),
                Followed::Page(page) => {
                    found.extend(page.changes);
                    (cursor, more) = (page.next, page.more);
                }
            }
        }
        let mut expected = self.reference.cell_changes_after((place.space, place.branch), begin);
        expected.retain(|change| change.commit <= cursor);
        for change in found.iter_mut().chain(&mut expected) {
            change.updated_at = 0; // Known only by the clock's bounds, and compared with each cell.
        }
        same(|| format!("following from {begin} to {cursor}"), &found, &expected)?;
        same(|| "where following ends".into(), &(cursor == self.reference.commit), &!more)
    }

    fn compare_cell(&mut self, place: Place, name: &'static str) -> Result<(), String> {
        let (cells, cell) = (self.cells(place), place.cell(name));
        let expected = self.reference.cell(&cell);
        let found = cells.get_versioned(name).map_err(text)?;
        same(|| format!("get_versioned {cell:?}"), &found, &expected.versioned())?;
        let found = cells.get(name).map_err(text)?;
        same(|| format!("get {cell:?}"), &found, &expected.versioned().map(|found| found.value))?;
        let before = self.random.one_in(3).then(|| self.random.below(expected.newest() + 2));
        let mut page = HistoryPage { before, limit: *self.random.choose(&[3, 100]) };
        loop {
            let found = cells.history(name, page).map_err(text)?;
            same(|| format!("history {cell:?} {page:?}"), &found, &self.reference.history(&cell, page))?;
            page.before = found.next_before;
            if page.before.is_none() {
                break;
            }
        }
        let random = &mut self.random;
        let time_us = match expected.writes.as_slice() {
            [] => 5,
            writes => random.choose(writes).at_us + random.below(3) - 1,
        };
        let version = random.below(expected.newest() + 2);
        for moment in [Moment::Version(version), Moment::Time(time_us)] {
            let found = cells.at(name, moment).map_err(text)?;
            same(|| format!("{cell:?} at {moment:?}"), &found, &self.reference.at(&cell, moment))?;
        }
        add(&self.tally.reads, 5);
        Ok(())
    }

    fn compare_list(&mut self, place: Place) -> Result<(), String> {
        let prefix = *self.random.choose(&PREFIXES);
        let after = self.random.one_in(4).then(|| any_name(&mut self.random));
        let mut page = ListPage { after, limit: *self.random.choose(&[1, 4, 1_000]) };
        let Place { space, branch, group } = place;
        let groups = group.map_or(InGroup::Any, InGroup::Named);
        loop {
            let found = self.cells(place).list(prefix, page.clone()).map_err(text)?;
            let expected = self.reference.list_cells((space, branch), groups, prefix, &page);
            same(|| format!("list {place:?} {prefix:?} {page:?}"), &found, &expected)?;
            add(&self.tally.reads, 1);
            page.after = found.next_after;
            if page.after.is_none() {
                return Ok(());
            }
        }
    }

    fn compare_catalogue(&self) -> Result<(), String> {
        let found = self.house().spaces().map_err(text)?;
        let expected = self.reference.spaces.values().map(|space| space.name.clone());
        same(|| "the spaces".into(), &found, &expected.collect())?;
        for space in self.reference.spaces.values() {
            let handle = self.house().space(&space.name);
            let found = (handle.branches().map_err(text)?, handle.retention().map_err(text)?);
            let live = space.branches.values().filter(|branch| !branch.deleted);
            let expected = (live.map(|branch| branch.name.clone()).collect(), space.retention);
            same(|| format!("branches and retention of {:?}", space.name), &found, &expected)?;
        }
        let found = self.house().limits().map_err(text)?;
        same(|| "the limits".into(), &found, &self.reference.limits)
    }
}
