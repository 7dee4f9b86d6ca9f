//! What reads of the reference give.

use contract::cells::PastVersion;
use contract::{AsOf, History, HistoryPage, ListPage, Listed, Moment, NameInGroup, Versioned};
use kernel::names::InGroup;

use super::{Cell, CellName, Reference};

impl Cell {
    /// A version with its value; none if it is a deletion or there is no such version.
    fn version(&self, version: u64) -> Option<Versioned> {
        let write = self.writes.get(usize::try_from(version).ok()?.checked_sub(1)?)?;
        Some(Versioned::new(write.value.clone()?, version, write.commit, write.at_us))
    }

    /// The newest version, if the cell exists.
    pub(crate) fn versioned(&self) -> Option<Versioned> {
        self.version(self.newest())
    }
}

impl Reference {
    /// A cell that nobody has written is one without versions.
    pub(crate) fn cell(&self, cell: CellName) -> Cell {
        self.cells.get(&cell).cloned().unwrap_or_default()
    }

    /// The kept versions below `page.before`, newest first.
    pub(crate) fn history(&self, cell: CellName, page: HistoryPage) -> History {
        let Some(cell) = self.cells.get(&cell) else {
            return History::default();
        };
        let below = page.before.unwrap_or(u64::MAX);
        let kept = (cell.oldest()..=cell.newest()).rev().filter(|version| *version < below);
        let versions: Vec<_> = kept
            .clone()
            .take(page.limit)
            .map(|version| {
                let write = &cell.writes[usize::try_from(version).expect("it fits") - 1];
                PastVersion::new(version, write.value.clone(), write.commit, write.at_us)
            })
            .collect();
        let more = kept.count() > versions.len();
        let next_before = versions.last().map(|last| last.version).filter(|_| more);
        History { versions, next_before }
    }

    /// The cell as it was.
    pub(crate) fn at(&self, cell: CellName, moment: Moment) -> AsOf {
        let Some(cell) = self.cells.get(&cell) else {
            let floor = self.floor(cell);
            let may_be_forgotten = match moment {
                Moment::Version(version) => (1..=floor.version).contains(&version),
                Moment::Time(time_us) => time_us < floor.at_us,
            };
            return if may_be_forgotten { AsOf::Unavailable { oldest: floor.version + 1 } } else { AsOf::Absent };
        };
        let (newest, oldest) = (cell.newest(), cell.oldest());
        let version = match moment {
            Moment::Version(version) => version,
            Moment::Time(time_us) => {
                let written = cell.writes.iter().rposition(|write| write.at_us <= time_us);
                match written {
                    Some(index) => index as u64 + 1,
                    // Before the first version. Once that is given up, nobody can tell any more.
                    None if oldest > 1 => return AsOf::Unavailable { oldest },
                    None => return AsOf::Absent,
                }
            }
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
    pub(crate) fn list(&self, space: u32, branch: u32, groups: InGroup<'_>, prefix: &str, page: &ListPage) -> Listed {
        let of_branch = self.cells.iter().filter(|(cell, _)| (cell.space, cell.branch) == (space, branch));
        let of_groups = of_branch.filter(|(cell, _)| match groups {
            InGroup::Any => true,
            InGroup::Own => cell.group.is_none(),
            InGroup::Named(group) => cell.group == Some(group) || (cell.group.is_none() && cell.name == group),
        });
        let wanted = of_groups.filter(|(cell, _)| cell.name.starts_with(prefix));
        let existing = wanted.filter_map(|(cell, kept)| {
            Some((NameInGroup::new(cell.name, cell.group.map(str::to_owned)), kept.versioned()?))
        });
        let after = |name: &NameInGroup| page.after.as_ref().is_none_or(|after| name > after);
        let mut cells: Vec<_> = existing.filter(|(name, _)| after(name)).collect();
        cells.sort_by(|(one, _), (other, _)| one.cmp(other));
        let more = cells.len() > page.limit;
        cells.truncate(page.limit);
        let next_after = cells.last().map(|(name, _)| name.clone()).filter(|_| more);
        Listed { cells, next_after }
    }
}
