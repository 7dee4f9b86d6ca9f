//! Interactive transactions: read from a view, buffer writes, commit as one command guarded by everything that was
//! read.
//!
//! Keeps: T1 (serialisable: whatever a transaction read, by name or in a range, is unchanged when it commits, or it
//! changes nothing and the cell that differs is named). One attempt; `Group::transact` tries again.

mod own;
mod range;
mod reads;

use std::sync::Arc;

use contract::limits::TRANSACTION_AGE_MAX;
use contract::{
    Deleted, Error, Expected, Initialised, ListPage, Listed, NameInGroup, Rejection, Swapped, Value, Versioned,
    Written, names,
};
use kernel::cells::row::Head;
use kernel::cells::{ReadCells, ViewCells};
use kernel::names::InGroup;
use kernel::{Answer, Body, Catalogue, CellGuard, Guard, Transact};
use kv::View;

use crate::admission::{Scope, ScopeIds};
use crate::cells::list_cells;
use crate::commit::Committed;
use crate::error::from_halt;
use crate::paging::check_page;
use crate::shard_keys::keys;
use own::{OwnOp, OwnWrites};
use range::{after_prefix, merge_own};
use reads::Reads;

/// What a transaction may miss of concurrent changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Nothing: it is as if it had run alone. Everything that it read is guarded.
    #[default]
    Serialisable,
    /// It reads one moment and does not overwrite others' writes, but what it only read may have changed.
    Snapshot,
}

/// An open transaction on the cells of one group. Dropping it rolls it back.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// let order = house.group("order-7");
/// let mut first = order.begin()?;
/// let mut second = order.begin()?;
/// assert_eq!(first.get("owner")?, None);
/// assert_eq!(second.get("owner")?, None);
/// first.set("owner", "ann")?;
/// second.set("owner", "bob")?;
/// first.commit()?;
/// let error = second.commit().expect_err("ann was first");
/// assert!(error.retryable() && error.to_string().contains("owner"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Transaction {
    scope: Scope,
    group: Option<String>,
    isolation: Isolation,
    view: Arc<dyn View>,
    catalogue: Arc<Catalogue>,
    ids: ScopeIds,
    /// The commit number of the view.
    commit: u64,
    started_us: u64,
    reads: Reads,
    own: OwnWrites,
}

/// A cell as the transaction sees it.
struct Seen {
    /// Counts the cell's writes, deletions included; 0 if there were none.
    counter: u64,
    versioned: Option<Versioned>,
}

impl Transaction {
    pub(crate) fn begin(scope: Scope, group: Option<String>, isolation: Isolation) -> Result<Self, Error> {
        let (view, catalogue) = scope.shard.view()?;
        let ids = scope.resolve(&catalogue)?;
        let commit = crate::image::applied(&*view)?.commit;
        let started_us = scope.shard.clock().monotonic_us();
        Ok(Self {
            scope,
            group,
            isolation,
            view,
            catalogue,
            ids,
            commit,
            started_us,
            reads: Reads::default(),
            own: OwnWrites::default(),
        })
    }

    /// The value of a cell, with this transaction's own writes.
    pub fn get(&mut self, cell: &str) -> Result<Option<Value>, Error> {
        Ok(self.get_versioned(cell)?.map(|versioned| versioned.value))
    }

    /// The value with its version. A cell that this transaction wrote has commit 0 and time 0 until it is committed.
    pub fn get_versioned(&mut self, cell: &str) -> Result<Option<Versioned>, Error> {
        self.touch(cell)?;
        Ok(self.see(cell)?.versioned)
    }

    /// The cells of the group whose names start with `prefix`, including this transaction's own writes.
    pub fn list(&mut self, prefix: &str, page: ListPage) -> Result<Listed, Error> {
        self.check_age()?;
        check_page(page.limit)?;
        let group = self.group.clone().ok_or(Rejection::TransactionState {
            reason: "a transaction without a group cannot list; start it with house.group(name)",
        })?;
        // Own deletions may remove cells from the page, so that many more are read.
        let wider = ListPage { after: page.after.clone(), limit: page.limit + self.own.cells() };
        let groups = InGroup::Named(&group);
        let stored = list_cells(&*self.view, &self.catalogue, self.ids, groups, prefix, &wider)?;
        self.reads.count(stored.cells.len())?;
        let named = |name: String| {
            let group = (*name != *group).then(|| group.to_string());
            NameInGroup::new(name, group)
        };
        let start = match &page.after {
            None => prefix.to_owned(),
            // In another group, the cell may precede the one of this group with the same name.
            Some(after) if *after < named(after.name.clone()) => after.name.clone(),
            Some(after) => format!("{}\0", after.name),
        };
        let start = start.max(prefix.to_owned());
        let end = match &stored.next_after {
            None => after_prefix(prefix),
            Some(last) => Some(format!("{}\0", last.name)),
        };
        self.reads.add_range(start.clone(), end.clone())?;
        let own = self.own.between(&start, end.as_deref());
        let mut versions = Vec::new();
        for (cell, written) in own {
            versions.push((cell.to_owned(), written.value.clone(), written.writes));
        }
        let mut merged = Vec::new();
        for (cell, value, writes) in versions {
            let counter = self.stored(&cell)?.counter;
            merged.push((named(cell), value.map(|value| Versioned::new(value, counter + writes, 0, 0))));
        }
        Ok(merge_own(stored, merged, page.limit))
    }

    /// Creates the cell if it does not exist.
    pub fn init(&mut self, cell: &str, value: impl Into<Value>) -> Result<Initialised, Error> {
        self.touch(cell)?;
        let seen = self.see(cell)?;
        match seen.versioned {
            Some(versioned) => Ok(Initialised { version: versioned.version, created: false }),
            None => {
                self.write(cell, OwnOp::Init(value.into()))?;
                Ok(Initialised { version: seen.counter + 1, created: true })
            }
        }
    }

    /// Writes the value unconditionally. This alone does not guard the cell.
    pub fn set(&mut self, cell: &str, value: impl Into<Value>) -> Result<(), Error> {
        self.touch(cell)?;
        self.write(cell, OwnOp::Set(value.into()))
    }

    /// Writes the value unconditionally, and returns the version it will have. To know that, it reads the cell.
    pub fn set_versioned(&mut self, cell: &str, value: impl Into<Value>) -> Result<u64, Error> {
        self.touch(cell)?;
        let counter = self.see(cell)?.counter;
        self.write(cell, OwnOp::Set(value.into()))?;
        Ok(counter + 1)
    }

    /// Writes the value if the cell is as expected.
    pub fn cas(&mut self, cell: &str, expected: Expected, value: impl Into<Value>) -> Result<Swapped, Error> {
        self.touch(cell)?;
        let seen = self.see(cell)?;
        let current = seen.versioned.map(|versioned| versioned.version);
        let expected = match expected {
            Expected::Absent => None,
            Expected::Version(version) => Some(version),
        };
        if current != expected {
            return Ok(Swapped::Conflict { current });
        }
        self.write(cell, OwnOp::Cas(expected, value.into()))?;
        Ok(Swapped::Written(Written { version: seen.counter + 1, commit: 0 }))
    }

    /// Deletes the cell, if it exists.
    pub fn delete(&mut self, cell: &str) -> Result<Deleted, Error> {
        self.touch(cell)?;
        let seen = self.see(cell)?;
        if seen.versioned.is_none() {
            return Ok(Deleted { version: None });
        }
        self.write(cell, OwnOp::Delete)?;
        Ok(Deleted { version: Some(seen.counter + 1) })
    }

    /// Commits everything, or changes nothing and names the conflict.
    pub fn commit(self) -> Result<Committed, Error> {
        self.check_age()?;
        if self.own.is_empty() {
            // A transaction that only read has read one consistent view.
            return Ok(Committed { commit: self.commit });
        }
        let guards = match self.isolation {
            Isolation::Serialisable => self.reads.guards(self.commit),
            Isolation::Snapshot => {
                self.own.names().map(|name| Guard::Cell(CellGuard::UnchangedSince(name, self.commit))).collect()
            }
        };
        let transact = Transact {
            space: self.ids.space,
            branch: self.ids.branch,
            group: self.group.as_deref(),
            fence: None,
            guards,
            ops: self.own.ops(),
        };
        let done = |answer| match answer {
            Answer::Done { commit, .. } => Ok(Committed { commit }),
            Answer::Rejected(rejection) => Err(rejection.into()),
        };
        self.scope.propose(&self.catalogue, &Body::Transact(transact), done).wait()
    }

    /// Rolls the transaction back. Dropping it does the same.
    pub fn rollback(self) {}

    /// Checks a name, and that it is in this transaction's group.
    fn touch(&mut self, cell: &str) -> Result<(), Error> {
        self.check_age()?;
        names::check_cell(cell)?;
        let only = self.reads.names().chain(self.own.names()).next();
        if let (None, Some(only)) = (&self.group, only.filter(|only| *only != cell)) {
            return Err(Rejection::TwoGroups { group: only.to_owned(), other: cell.to_owned() }.into());
        }
        Ok(())
    }

    /// The cell with own writes, remembered as read.
    fn see(&mut self, cell: &str) -> Result<Seen, Error> {
        self.reads.add_name(cell)?;
        let stored = self.stored(cell)?;
        Ok(match self.own.get(cell) {
            None => stored,
            Some(own) => {
                let counter = stored.counter + own.writes;
                let versioned = own.value.clone().map(|value| Versioned::new(value, counter, 0, 0));
                Seen { counter, versioned }
            }
        })
    }

    /// The cell as the view has it.
    fn stored(&self, cell: &str) -> Result<Seen, Error> {
        let id = self.catalogue.thing(self.ids.space, self.ids.branch, self.group.as_deref(), cell)?;
        let cells = ViewCells { view: &*self.view, keys: keys() };
        let row = cells.head(&id).map_err(|halt| from_halt(&halt))?;
        let Some(row) = row else {
            return Ok(Seen { counter: 0, versioned: None });
        };
        let head = Head::decode(&row).map_err(|halt| from_halt(&halt))?;
        Ok(Seen { counter: head.version, versioned: head.versioned() })
    }

    fn write(&mut self, cell: &str, op: OwnOp) -> Result<(), Error> {
        let ops_max = self.catalogue.limits.transaction_ops_max as usize;
        Rejection::check_limit("transaction_ops_max", ops_max, self.own.len() + 1)?;
        self.own.push(cell, op);
        Ok(())
    }

    fn check_age(&self) -> Result<(), Rejection> {
        let age_us = self.scope.shard.clock().monotonic_us().saturating_sub(self.started_us);
        if u128::from(age_us) > TRANSACTION_AGE_MAX.as_micros() {
            return Err(Rejection::TransactionLost { reason: "it was open for longer than transaction_age_max" });
        }
        Ok(())
    }
}
