//! The reference: what cells promise, in the plainest form, written from the contract and not from the kernel.
//!
//! Every version that was ever written stays in a list; what retention has given up is a count from its beginning.
//! Nothing is encoded, nothing is indexed, nothing is cleverly put off.

mod apply;
mod feed;
mod read;

use std::collections::BTreeMap;

use contract::catalogue::{DEFAULT_SPACE, MAIN_BRANCH};
use contract::{Limits, Retention, Value};
use kernel::Buckets;

pub(crate) use apply::Expected;

/// Everything a shard knows.
pub(crate) struct Reference {
    /// How many commands were applied.
    pub(crate) commit: u64,
    /// The wall time of the entry that is being applied.
    pub(crate) wall_us: u64,
    /// Its other time.
    pub(crate) cluster_us: u64,
    /// Counts the changes of the catalogue.
    pub(crate) revision: u64,
    pub(crate) limits: Limits,
    pub(crate) spaces: BTreeMap<u32, Space>,
    pub(crate) cells: BTreeMap<CellName, Cell>,
    /// What is known of the cells that were forgotten, by bucket, space and branch.
    floors: BTreeMap<(u16, u32, u32), Floor>,
    buckets: Buckets,
    pub(crate) feed: feed::Feed,
    next_space: u32,
    next_branch: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Space {
    pub(crate) name: String,
    pub(crate) retention: Retention,
    /// With the names of deleted ones, until they are forgotten.
    pub(crate) branches: BTreeMap<u32, Branch>,
}

#[derive(Clone, Debug)]
pub(crate) struct Branch {
    pub(crate) name: String,
    pub(crate) deleted: bool,
}

/// Which cell. Make it with [`CellName::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CellName {
    pub(crate) space: u32,
    pub(crate) branch: u32,
    pub(crate) group: Option<&'static str>,
    pub(crate) name: &'static str,
}

impl CellName {
    /// A cell in a group; one that has the group's name is the cell that is its own group.
    pub(crate) fn new(space: u32, branch: u32, group: Option<&'static str>, name: &'static str) -> Self {
        let group = if group == Some(name) { None } else { group };
        Self { space, branch, group, name }
    }
}

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
struct Floor {
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

    /// Whether the oldest version that is kept is to be given up: it is an old one, and either too many are newer
    /// or it was last current too long ago. It was current until the next one was written.
    pub(crate) fn oldest_is_due(&self, retention: Retention, now_us: u64) -> bool {
        let Some(next) = self.writes.get(self.given_up + 1) else {
            return false;
        };
        let kept = (self.writes.len() - self.given_up) as u64;
        let too_many = kept > retention.versions_max;
        let too_old = next.at_us.saturating_add(retention.age_us_max) < now_us;
        too_many || too_old
    }
}

impl Reference {
    /// A new shard: one space with one branch.
    pub(crate) fn new(buckets: Buckets) -> Self {
        let mut reference = Self {
            commit: 0,
            wall_us: 0,
            cluster_us: 0,
            revision: 1,
            limits: Limits::default(),
            spaces: BTreeMap::new(),
            cells: BTreeMap::new(),
            floors: BTreeMap::new(),
            buckets,
            feed: feed::Feed::default(),
            next_space: 1,
            next_branch: 1,
        };
        reference.add_space(DEFAULT_SPACE);
        reference
    }

    fn add_space(&mut self, name: &str) -> u32 {
        let space = self.next_space;
        self.next_space += 1;
        let retention = Retention::default();
        self.spaces.insert(space, Space { name: name.to_owned(), retention, branches: BTreeMap::new() });
        self.add_branch(space, MAIN_BRANCH);
        space
    }

    fn add_branch(&mut self, space: u32, name: &str) -> u32 {
        let branch = self.next_branch;
        self.next_branch += 1;
        let branches = &mut self.spaces.get_mut(&space).expect("the caller has looked").branches;
        branches.insert(branch, Branch { name: name.to_owned(), deleted: false });
        branch
    }

    /// What is known of the forgotten cells that a cell may have been one of.
    fn floor(&self, cell: CellName) -> Floor {
        let space = &self.spaces[&cell.space].name;
        let bucket = self.buckets.of_group(space.as_bytes(), cell.group.unwrap_or(cell.name).as_bytes());
        self.floors.get(&(bucket, cell.space, cell.branch)).copied().unwrap_or_default()
    }

    /// Whether the branch exists and was not deleted.
    pub(crate) fn is_live(&self, space: u32, branch: u32) -> bool {
        let branch = self.spaces.get(&space).and_then(|space| space.branches.get(&branch));
        branch.is_some_and(|branch| !branch.deleted)
    }

    /// The space and branch of every branch that was not deleted.
    pub(crate) fn live_branches(&self) -> Vec<(u32, u32)> {
        let branches = self.spaces.iter().flat_map(|(space, found)| {
            let live = found.branches.iter().filter(|(_, branch)| !branch.deleted);
            live.map(|(branch, _)| (*space, *branch))
        });
        branches.collect()
    }

    /// The cells of a group, or those of a branch that are their own group, by name.
    pub(crate) fn members(
        &self,
        space: u32,
        branch: u32,
        group: Option<&'static str>,
    ) -> BTreeMap<&'static str, &Cell> {
        let first = CellName { space, branch, group, name: "" };
        let same = |cell: &CellName| (cell.space, cell.branch, cell.group) == (space, branch, group);
        let range = self.cells.range(first..).take_while(|(cell, _)| same(cell));
        let mut members: BTreeMap<_, _> = range.map(|(cell, state)| (cell.name, state)).collect();
        if let Some(group) = group {
            let own = CellName { space, branch, group: None, name: group };
            members.extend(self.cells.get(&own).map(|state| (group, state)));
        }
        members
    }

    /// How many rows a store needs for all of this: one for what was applied, one for the catalogue and for each
    /// space, branch and kept version, and for the name of each cell of a named group that exists (K8). Those of the change
    /// feed are not counted.
    pub(crate) fn rows(&self) -> u64 {
        let branches: usize = self.spaces.values().map(|space| space.branches.len()).sum();
        let versions: usize = self.cells.values().map(|cell| cell.writes.len() - cell.given_up).sum();
        let grouped = self.cells.iter().filter(|(name, _)| name.group.is_some());
        let names = grouped.filter(|(_, cell)| cell.live_version().is_some()).count();
        (2 + self.spaces.len() + branches + versions + names + self.floors.len()) as u64
    }
}
