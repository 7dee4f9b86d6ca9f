//! Cells: named values with versions.

use contract::{Expected, HistoryPage, Value};
use wire::cells::{Cell, CellHistory, CellList, CellRead, InitialisedCell, ListCells, MomentText, ReadCell, View};
use wire::routes::{CELLS_DELETE, CELLS_INIT, CELLS_LIST, CELLS_READ, CELLS_WRITE};
use wire::values::UserJson;
use wire::written::{Deleted, Written};

use crate::call::Call;
use crate::client::Client;
use crate::error::Error;

/// The cells of a client's place.
#[derive(Clone)]
pub struct Cells<'client> {
    client: &'client Client,
}

impl Client {
    /// The cells here.
    pub fn cells(&self) -> Cells<'_> {
        Cells { client: self }
    }
}

impl Cells<'_> {
    fn call(&self, route: wire::routes::Route, cell: &str) -> Call {
        self.client.call(route, &[cell])
    }

    /// A cell; none if it does not exist.
    pub async fn get(&self, cell: &str) -> Result<Option<Cell>, Error> {
        self.call(CELLS_READ, cell).find().await
    }

    /// A cell as of a version or a time.
    pub async fn at(&self, cell: &str, moment: contract::Moment) -> Result<Option<Cell>, Error> {
        let query = ReadCell { at: Some(MomentText(moment)), ..ReadCell::default() };
        self.call(CELLS_READ, cell).query(&query).find().await
    }

    /// A page of the kept versions, newest first.
    pub async fn history(&self, cell: &str, page: HistoryPage) -> Result<CellHistory, Error> {
        let HistoryPage { before, limit } = page;
        let query = ReadCell { view: Some(View::History), before, limit: Some(limit as u64), ..ReadCell::default() };
        match self.call(CELLS_READ, cell).query(&query).read().await? {
            CellRead::History(history) => Ok(history),
            CellRead::Cell(cell) => {
                let cause = format!("the answer is the cell {:?} instead of its history", cell.name);
                Err(Error::Unreadable { cause, outcome: contract::Outcome::NotApplied })
            }
        }
    }

    /// Cells by name; see [`ListCells`].
    pub async fn list(&self, query: &ListCells) -> Result<CellList, Error> {
        self.client.call(CELLS_LIST, &[]).query(query).read().await
    }

    /// Writes a cell.
    pub async fn set(&self, cell: &str, value: impl Into<Value>) -> Result<Written, Error> {
        self.call(CELLS_WRITE, cell).json(&UserJson(value.into())).read().await
    }

    /// Writes a cell if it is at a version, or does not exist. Otherwise the call is refused, with the current cell.
    pub async fn cas(&self, cell: &str, expected: Expected, value: impl Into<Value>) -> Result<Written, Error> {
        let call = self.call(CELLS_WRITE, cell).json(&UserJson(value.into()));
        call.if_expected(Some(expected)).read().await
    }

    /// Creates a cell unless it exists, and returns whether it was created.
    pub async fn init(&self, cell: &str, value: impl Into<Value>) -> Result<InitialisedCell, Error> {
        self.call(CELLS_INIT, cell).json(&UserJson(value.into())).read().await
    }

    /// Deletes a cell; none if it does not exist. With `version`, only at that version.
    pub async fn delete(&self, cell: &str, version: Option<u64>) -> Result<Option<Deleted>, Error> {
        self.call(CELLS_DELETE, cell).if_version(version).find().await
    }
}
