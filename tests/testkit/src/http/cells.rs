//! The cell contract over the typed client.

use client::Client;
use contract::cells::PastVersion;
use contract::{
    AsOf, CellRejection, Cells, Deleted, Error, Expected, History, HistoryPage, Initialised, ListPage, Listed, Moment,
    NameInGroup, Rejection, Swapped, Value, Versioned, Written,
};
use wire::cells::{Cell, CellVersion, ListCells};
use wire::values::PageCursor;

use super::client::block_on;
use super::micros;
use super::refusals::{HISTORY_GIVEN_UP, error, member};

/// The cells of a client's place.
pub struct HttpCells {
    client: Client,
}

impl HttpCells {
    /// Cells in the client's place.
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

fn versioned(cell: Cell) -> Versioned {
    Versioned::new(cell.value.0, cell.version, cell.commit, micros(&cell.updated_at))
}

fn past(version: CellVersion) -> PastVersion {
    let kept = (!version.deleted).then_some(version.value.0);
    PastVersion::new(version.version, kept, version.commit, micros(&version.updated_at))
}

fn written(written: wire::written::Written) -> Written {
    Written { version: written.version, commit: written.commit }
}

impl Cells for HttpCells {
    fn init(&self, cell: &str, value: Value) -> Result<Initialised, Error> {
        let made = block_on(self.client.cells().init(cell, value)).map_err(error)?;
        Ok(Initialised { version: made.version, created: made.created })
    }

    fn get(&self, cell: &str) -> Result<Option<Value>, Error> {
        Ok(self.get_versioned(cell)?.map(|found| found.value))
    }

    fn get_versioned(&self, cell: &str) -> Result<Option<Versioned>, Error> {
        Ok(block_on(self.client.cells().get(cell)).map_err(error)?.map(versioned))
    }

    fn set(&self, cell: &str, value: Value) -> Result<Written, Error> {
        block_on(self.client.cells().set(cell, value)).map(written).map_err(error)
    }

    fn cas(&self, cell: &str, expected: Expected, value: Value) -> Result<Swapped, Error> {
        match block_on(self.client.cells().cas(cell, expected, value)).map_err(error) {
            Ok(done) => Ok(Swapped::Written(written(done))),
            Err(Error::Rejected(Rejection::Cell(CellRejection::Conflict { current, .. }))) => {
                Ok(Swapped::Conflict { current })
            }
            Err(error) => Err(error),
        }
    }

    fn delete(&self, cell: &str) -> Result<Deleted, Error> {
        let deleted = block_on(self.client.cells().delete(cell, None)).map_err(error)?;
        Ok(Deleted { version: deleted.map(|deleted| deleted.version) })
    }

    fn history(&self, cell: &str, page: HistoryPage) -> Result<History, Error> {
        let history = block_on(self.client.cells().history(cell, page)).map_err(error)?;
        let versions = history.versions.into_iter().map(past).collect();
        Ok(History { versions, next_before: history.next_before })
    }

    fn at(&self, cell: &str, moment: Moment) -> Result<AsOf, Error> {
        match block_on(self.client.cells().at(cell, moment)) {
            Ok(Some(found)) => Ok(AsOf::Value(versioned(found))),
            Ok(None) => Ok(AsOf::Absent),
            Err(refused) if refused.code() == Some(HISTORY_GIVEN_UP) => {
                Ok(AsOf::Unavailable { oldest: member(&refused, "oldest") })
            }
            Err(refused) => Err(error(refused)),
        }
    }

    fn list(&self, prefix: &str, page: ListPage) -> Result<Listed, Error> {
        let cursor = page.after.map(|after| PageCursor(after.to_cursor().into_bytes()));
        let query = ListCells { prefix: Some(prefix.to_owned()), cursor, limit: Some(page.limit as u64) };
        let listed = block_on(self.client.cells().list(&query)).map_err(error)?;
        let named = |cell: &Cell| NameInGroup::new(cell.name.clone(), cell.group.clone());
        let cells = listed.cells.into_iter().map(|cell| (named(&cell), versioned(cell))).collect();
        let next_after = listed.cursor.and_then(PageCursor::into_text);
        let next_after = next_after.map(|after| NameInGroup::from_cursor(&after).expect("a cursor of ours"));
        Ok(Listed { cells, next_after })
    }
}
