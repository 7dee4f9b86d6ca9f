//! Cells: read, write, initialise, delete, list.
//!
//! [`operations`]: cells in transactions. [`routes`]: how the calls are reached. [`status`]: cells on the status page.

pub(super) mod metrics;
pub(super) mod operations;
pub(super) mod routes;
pub(super) mod status;

use contract::time::iso;
use contract::{
    AsOf, CellRejection, Error, Expected, HistoryPage, ListPage, NameInGroup, Rejection, Swapped, Value, Versioned,
};
use statehouse::{Cells, Group, Space};
use wire::cells::{Cell, CellHistory, CellList, CellRead, CellVersion, InitialisedCell, ListCells, ReadCell};
use wire::operations::NoBody;
use wire::query::NoQuery;
use wire::values::{PageCursor, UserJson};
use wire::written::{Deleted, Written};

use super::refusal::{OwnRefusal, RefusalKind};
use super::scope::Handles;
use super::transactions::version_of;
use super::{Answered, Call, Refusal, Reply, page_limit};
use crate::Server;

/// The default number of cells or versions in a page.
const PAGE_ROWS: usize = 100;

impl Handles {
    /// The cells of the scope.
    pub(crate) fn cells(&self) -> Cells {
        self.of(Group::cells, Space::cells)
    }
}

fn cell(name: NameInGroup, found: Versioned) -> Cell {
    let Versioned { value, version, commit, updated_at, .. } = found;
    let NameInGroup { name, group } = name;
    Cell { name, group, version, commit, updated_at: iso(updated_at), value: UserJson(value) }
}

async fn read(server: Server, call: Call<ReadCell, NoBody>) -> Answered<CellRead> {
    if call.query.view.is_some() {
        return history(&server, call).await;
    }
    if call.query.before.is_some() || call.query.limit.is_some() {
        let detail = "before and limit need view=history";
        return Err(Refusal::invalid("view", detail));
    }
    let cells = call.scope.open(&server.house)?.cells();
    let found = match call.query.at {
        None => cells.get_versioned(&call.name)?.map_or(AsOf::Absent, AsOf::Value),
        Some(moment) => {
            let name = call.name.clone();
            server.call(move |_| cells.at(&name, moment.0)).await?
        }
    };
    match found {
        AsOf::Value(found) => {
            let version = found.version;
            Ok(Reply::new(CellRead::Cell(cell(NameInGroup::new(call.name, None), found))).version(version))
        }
        AsOf::Absent => Err(Refusal::not_found("cell", call.name)),
        AsOf::Unavailable { oldest } => Err(history_gone(&call.name, oldest)),
    }
}

fn history_gone(cell: &str, oldest: u64) -> Refusal {
    let detail = format!("that version of cell {cell:?} is no longer kept; the oldest kept version is {oldest}");
    OwnRefusal::new(RefusalKind::Gone, "SH-1033", detail).member("oldest", oldest).into()
}

async fn history(server: &Server, call: Call<ReadCell, NoBody>) -> Answered<CellRead> {
    if call.query.at.is_some() {
        return Err(Refusal::invalid("at", "at reads one version, and view=history reads all: send one of them"));
    }
    let page = HistoryPage { before: call.query.before, limit: page_limit(call.query.limit, PAGE_ROWS)? };
    let Call { scope, name, .. } = call;
    let asked = name.clone();
    let memory = server.reserve_page().await?;
    let cells = scope.open(&server.house)?.cells();
    let found = server.call(move |_| cells.history(&asked, page)).await?;
    let versions = found.versions.into_iter().map(|past| CellVersion {
        version: past.version,
        deleted: past.value.is_none(),
        commit: past.commit,
        updated_at: iso(past.updated_at),
        value: UserJson(past.value.unwrap_or(Value::Null)),
    });
    let history = CellHistory { name, versions: versions.collect(), next_before: found.next_before };
    Ok(Reply::page(CellRead::History(history), memory))
}

async fn write(server: Server, call: Call<NoQuery, UserJson>) -> Answered<Written> {
    let Call { scope, name, body: UserJson(value), expected, .. } = call;
    let handles = scope.open(&server.house)?;
    let written = match expected {
        None => handles.cells().set_later(&name, value).await?,
        Some(expected) => match handles.cells().cas_later(&name, expected, value).await? {
            Swapped::Written(written) => written,
            Swapped::Conflict { current } => {
                return Err(Refusal::Unexpected(Error::from(Rejection::Cell(CellRejection::Conflict {
                    cell: name,
                    current,
                }))));
            }
        },
    };
    let (version, commit) = (written.version, written.commit);
    let reply = Reply::new(Written { name, version, commit }).version(version).created(version == 1);
    Ok(reply.replayed(handles.replayed()))
}

async fn init(server: Server, call: Call<NoQuery, UserJson>) -> Answered<InitialisedCell> {
    let Call { scope, name, body: UserJson(value), .. } = call;
    let handles = scope.open(&server.house)?;
    let done = handles.cells().init_later(&name, value).await?;
    let (version, created) = (done.version, done.created);
    let reply = Reply::new(InitialisedCell { name, version, created }).version(version).created(created);
    Ok(reply.replayed(handles.replayed()))
}

async fn delete(server: Server, call: Call<NoQuery, NoBody>) -> Answered<Deleted> {
    let Call { scope, name, expected, .. } = call;
    let handles = scope.open(&server.house)?;
    let deleted = match expected {
        Some(Expected::Version(version)) => {
            let commit = handles.cells().commit().if_cell_version(&name, version).delete_cell(&name);
            let (_, done) = commit.run_each_later().await.map_err(Refusal::Unexpected)?;
            version_of(&done)
        }
        _ => handles.cells().delete_later(&name).await?.version,
    };
    match deleted {
        Some(version) => Ok(Reply::new(Deleted { name, version }).replayed(handles.replayed())),
        None => Err(Refusal::not_found("cell", name)),
    }
}

async fn list(server: Server, call: Call<ListCells, NoBody>) -> Answered<CellList> {
    let Call { scope, query, .. } = call;
    let after = match query.cursor {
        None => None,
        Some(cursor) => {
            let after = cursor.into_text().and_then(|text| NameInGroup::from_cursor(&text));
            Some(after.ok_or_else(|| Refusal::invalid("cursor", "the cursor was not issued by this server"))?)
        }
    };
    let prefix = query.prefix.unwrap_or_default();
    let page = ListPage { after, limit: page_limit(query.limit, PAGE_ROWS)? };
    let memory = server.reserve_page().await?;
    let cells = scope.open(&server.house)?.cells();
    let found = server.call(move |_| cells.list(&prefix, page)).await?;
    let cursor = found.next_after.map(|after| PageCursor(after.to_cursor().into_bytes()));
    let cells = found.cells.into_iter().map(|(name, found)| cell(name, found)).collect();
    Ok(Reply::page(CellList { cells, cursor }, memory))
}
