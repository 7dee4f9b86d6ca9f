//! Cells: the handle on named values, and each of their operations.

mod after_prefix;
pub(crate) mod commit;
pub(crate) mod export;
mod handles;
pub(crate) mod import;
mod overview;
mod retention;
pub mod seed;
mod transaction;
mod watch;

use std::sync::Arc;

use contract::{
    AsOf, CellRejection, Cells as CellsContract, Deleted, Error, Expected, History, HistoryPage, Initialised, ListPage,
    Listed, Moment, Rejection, Swapped, Value, Versioned, Written, names,
};
use kernel::cells::{ViewCells, at, get, history, list};
use kernel::keys::ThingId;
use kernel::names::InGroup;
use kernel::{Answer, Body, Catalogue, CellAct, Op, OpOutcome, Transact, ValueRef};
use kv::View;
use node::error::{from_halt, unexpected_answer};
use node::pending::Pending;

pub use commit::CellDone;
pub use overview::CellsOverview;

use crate::admission::{Scope, ScopeIds};
use crate::commit::{outcome, written};
use crate::paging::{check_page, listed_groups};
use crate::transaction::{Isolation, Transaction};

/// Cells of a branch, or of a group in it. Each call is atomic and durable when it returns.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// use statehouse::{Expected, Swapped};
/// let cells = house.cells();
/// assert_eq!(cells.init("state", "idle")?.version, 1);
/// assert_eq!(cells.set("state", "busy")?.version, 2);
/// assert_eq!(cells.cas("state", Expected::Version(1), "idle")?, Swapped::Conflict { current: Some(2) });
/// assert_eq!(cells.history("state", Default::default())?.versions.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Cells {
    pub(crate) scope: Scope,
    pub(crate) group: Option<Arc<str>>,
}

impl Cells {
    pub(crate) fn new(scope: Scope, group: Option<Arc<str>>) -> Self {
        Self { scope, group }
    }

    /// Creates the cell if it does not exist; otherwise changes nothing and returns the existing version.
    pub fn init(&self, cell: &str, value: impl Into<Value>) -> Result<Initialised, Error> {
        self.init_later(cell, value).wait()
    }

    /// [`init`](Self::init), answered later.
    pub fn init_later(&self, cell: &str, value: impl Into<Value>) -> Pending<Initialised> {
        let value = value.into();
        self.propose(cell, Op::Cell(cell, CellAct::Init(ValueRef::from(&value))), |answer| match outcome(answer)? {
            (_, OpOutcome::Written(version)) => Ok(Initialised { version, created: true }),
            (_, OpOutcome::Existing(version)) => Ok(Initialised { version, created: false }),
            other => Err(unexpected_answer("an init", &other)),
        })
    }

    /// The value, or none if the cell does not exist.
    pub fn get(&self, cell: &str) -> Result<Option<Value>, Error> {
        self.read(cell, |cells, id| get::get(cells, id))
    }

    /// The value with its version, commit number and time.
    pub fn get_versioned(&self, cell: &str) -> Result<Option<Versioned>, Error> {
        self.read(cell, |cells, id| get::get_versioned(cells, id))
    }

    /// Writes the value unconditionally.
    pub fn set(&self, cell: &str, value: impl Into<Value>) -> Result<Written, Error> {
        self.set_later(cell, value).wait()
    }

    /// [`set`](Self::set), answered later.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// let cells = house.cells();
    /// let pending: Vec<_> = (0..10).map(|n| cells.set_later("counter", n)).collect(); // all under way at once
    /// for (expected, answer) in (1..).zip(pending) {
    ///     assert_eq!(answer.wait()?.version, expected);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_later(&self, cell: &str, value: impl Into<Value>) -> Pending<Written> {
        let value = value.into();
        self.propose(cell, Op::Cell(cell, CellAct::Set(ValueRef::from(&value))), written)
    }

    /// Writes the value if the cell is as expected.
    pub fn cas(&self, cell: &str, expected: Expected, value: impl Into<Value>) -> Result<Swapped, Error> {
        self.cas_later(cell, expected, value).wait()
    }

    /// [`cas`](Self::cas), answered later.
    pub fn cas_later(&self, cell: &str, expected: Expected, value: impl Into<Value>) -> Pending<Swapped> {
        let value = value.into();
        let expected = match expected {
            Expected::Absent => None,
            Expected::Version(version) => Some(version),
        };
        self.propose(cell, Op::Cell(cell, CellAct::Cas(expected, ValueRef::from(&value))), |answer| match answer {
            Answer::Rejected(Rejection::Cell(CellRejection::Conflict { current, .. })) => {
                Ok(Swapped::Conflict { current })
            }
            other => written(other).map(Swapped::Written),
        })
    }

    /// Deletes the cell, if it exists. Its version continues if it is written again.
    pub fn delete(&self, cell: &str) -> Result<Deleted, Error> {
        self.delete_later(cell).wait()
    }

    /// [`delete`](Self::delete), answered later.
    pub fn delete_later(&self, cell: &str) -> Pending<Deleted> {
        self.propose(cell, Op::Cell(cell, CellAct::Delete), |answer| match outcome(answer)? {
            (_, OpOutcome::Written(version)) => Ok(Deleted { version: Some(version) }),
            (_, OpOutcome::Nothing) => Ok(Deleted { version: None }),
            other => Err(unexpected_answer("a deletion", &other)),
        })
    }

    /// The kept versions, newest first.
    pub fn history(&self, cell: &str, page: HistoryPage) -> Result<History, Error> {
        check_page(page.limit)?;
        self.read(cell, |cells, id| history::history(cells, id, page))
    }

    /// The cell as it was at a version or a time.
    pub fn at(&self, cell: &str, moment: Moment) -> Result<AsOf, Error> {
        self.read(cell, |cells, id| at::at(cells, id, moment))
    }

    /// The cells whose names start with `prefix`, ordered by (name, group): those of all groups of the branch, or those
    /// of this group. Each comes with its group, which is needed to read it.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// use statehouse::ListPage;
    /// house.cells().set("greeting", "hello")?;
    /// house.group("order-7").cells().set("paid", true)?;
    /// let listed = house.cells().list("", ListPage::default())?;
    /// let names: Vec<_> = listed.cells.iter().map(|(cell, _)| (cell.name.as_str(), cell.group.as_deref())).collect();
    /// assert_eq!(names, [("greeting", None), ("paid", Some("order-7"))]);
    /// assert_eq!(house.group("order-7").cells().list("", ListPage::default())?.cells.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn list(&self, prefix: &str, page: ListPage) -> Result<Listed, Error> {
        check_page(page.limit)?;
        let groups = listed_groups(self.group.as_deref())?;
        let (view, catalogue, ids) = self.scope.view()?;
        list_cells(&*view, &catalogue, ids, groups, prefix, &page)
    }

    /// Starts a transaction. Without a group it is limited to the first cell that it touches.
    pub fn begin(&self) -> Result<Transaction, Error> {
        Transaction::begin(self.scope.clone(), self.group.as_deref().map(str::to_owned), Isolation::Serialisable)
    }

    fn read<T>(
        &self,
        cell: &str,
        read: impl FnOnce(&ViewCells<'_>, &ThingId<'_>) -> Result<T, session::Halt>,
    ) -> Result<T, Error> {
        self.check_names(cell)?;
        self.scope.shard.read(|view, catalogue| {
            let ids = self.scope.resolve(catalogue)?;
            let id = catalogue.thing(ids.space, ids.branch, self.group.as_deref(), cell)?;
            read(&ViewCells { view, keys: ids.keys }, &id).map_err(|halt| from_halt(&halt))
        })
    }

    fn propose<T>(&self, cell: &str, op: Op<'_>, decode: fn(Answer) -> Result<T, Error>) -> Pending<T> {
        let prepare = || {
            self.check_names(cell)?;
            self.scope.current()
        };
        let (catalogue, ids) = match prepare() {
            Ok(prepared) => prepared,
            Err(error) => return Pending::refused(error),
        };
        let group = self.group.as_deref();
        let transact = Transact::new(ids.space, ids.branch, group, vec![op]);
        self.scope.propose(&catalogue, &Body::Transact(transact), decode)
    }

    fn check_names(&self, cell: &str) -> Result<(), Rejection> {
        if let Some(group) = &self.group {
            names::check_group(group)?;
        }
        names::check_cell(cell)
    }
}

/// A page of the cells of a group, or of all groups.
pub(crate) fn list_cells(
    view: &dyn View,
    catalogue: &Catalogue,
    ids: ScopeIds,
    groups: InGroup<'_>,
    prefix: &str,
    page: &ListPage,
) -> Result<Listed, Error> {
    let listed = list::list(view, &ids.keys, catalogue, (ids.space, ids.branch), groups, prefix, page);
    listed.map_err(|halt| from_halt(&halt))
}

impl CellsContract for Cells {
    fn init(&self, cell: &str, value: Value) -> Result<Initialised, Error> {
        self.init(cell, value)
    }
    fn get(&self, cell: &str) -> Result<Option<Value>, Error> {
        self.get(cell)
    }
    fn get_versioned(&self, cell: &str) -> Result<Option<Versioned>, Error> {
        self.get_versioned(cell)
    }
    fn set(&self, cell: &str, value: Value) -> Result<Written, Error> {
        self.set(cell, value)
    }
    fn cas(&self, cell: &str, expected: Expected, value: Value) -> Result<Swapped, Error> {
        self.cas(cell, expected, value)
    }
    fn delete(&self, cell: &str) -> Result<Deleted, Error> {
        self.delete(cell)
    }
    fn history(&self, cell: &str, page: HistoryPage) -> Result<History, Error> {
        self.history(cell, page)
    }
    fn at(&self, cell: &str, moment: Moment) -> Result<AsOf, Error> {
        self.at(cell, moment)
    }
    fn list(&self, prefix: &str, page: ListPage) -> Result<Listed, Error> {
        self.list(prefix, page)
    }
}
