//! Keyed state: maps, their keys, and how far their inputs were read.
//!
//! - [`keys`]: the calls on keys. [`operators`]: partitions and their owners. [`checkpoints`]: their checkpoints;
//!   [`server_checkpoints`]: where they lie, and which are being taken; `look_back`: which were taken before the server was started.
//!   [`operations`]: maps in transactions.
//! - `forms`: maps and keys as answers. [`routes`]: how the calls are reached. [`limits`]: limits of the server.
//! - [`status`]: keyed state on the status page. [`metrics`]: its metrics.

mod checkpoints;
mod forms;
mod keys;
mod limits;
mod look_back;
pub(super) mod metrics;
pub(super) mod operations;
mod operators;
pub(super) mod routes;
mod server_checkpoints;
pub(super) mod status;

use contract::{KeyedRejection, NameInGroup};
use statehouse::keyed::{KeyedDone, Policy};
use statehouse::{Done, Group, Maps, Space};
use wire::keyed::{
    CommitMap, CreateMap, CreatedMap, DeletedMap, ListMaps, MapCommitted, MapList, MapUpdated, PolicyText, Positions,
    ReadPositions, SealMap, SealedMap, ShownMap, UpdateMap,
};
use wire::operations::NoBody;
use wire::query::NoQuery;
use wire::values::PageCursor;

pub(crate) use self::server_checkpoints::ServerCheckpoints;
use super::refusal::{OwnRefusal, RefusalKind};
use super::scope::Handles;
use super::{Answered, Call, Refusal, Reply, page_limit};
use crate::Server;

/// The default number of maps, partitions, keys or positions in a page.
const PAGE_ROWS: usize = 100;

impl Handles {
    /// The maps of the scope.
    pub(crate) fn maps(&self) -> Maps {
        self.of(Group::maps, Space::maps)
    }
}

async fn list(server: Server, call: Call<ListMaps, NoBody>) -> Answered<MapList> {
    let Call { scope, query, .. } = call;
    let after = query.cursor.map(|cursor| text_of(cursor, NameInGroup::from_cursor)).transpose()?;
    let prefix = query.prefix.unwrap_or_default();
    let limit = page_limit(query.limit, PAGE_ROWS)?;
    let memory = server.reserve_page().await?;
    let maps = scope.open(&server.house)?.maps();
    let found = server.call(move |_| maps.list(&prefix, after.as_ref(), limit)).await?;
    let cursor = found.next_after.map(|after| PageCursor(after.to_cursor().into_bytes()));
    let maps = found.maps.into_iter().map(|(name, summary)| forms::map(name, &summary)).collect();
    Ok(Reply::page(MapList { maps, cursor }, memory))
}

/// What a cursor of text says.
fn text_of<T>(cursor: PageCursor, read: impl FnOnce(&str) -> Option<T>) -> Result<T, Refusal> {
    let found = cursor.into_text().and_then(|text| read(&text));
    found.ok_or_else(|| Refusal::invalid("cursor", "the cursor was not issued by this server"))
}

async fn read(server: Server, call: Call<NoQuery, NoBody>) -> Answered<ShownMap> {
    let Call { scope, name, .. } = call;
    let (maps, group) = (scope.open(&server.house)?.maps(), scope.group);
    match maps.summary(&name)? {
        Some(summary) => Ok(Reply::new(forms::map(NameInGroup::new(name, None), &summary))),
        None => Err(no_such_map(name, group)),
    }
}

/// The rejection does not name the group, which is what most often is missing in the request.
fn no_such_map(map: String, group: Option<String>) -> Refusal {
    let in_group = group.as_ref().map_or(String::new(), |group| format!(" in group {group:?}"));
    let detail = format!("there is no map {map:?}{in_group}");
    let rejection = KeyedRejection::NoSuchMap { map: map.clone() };
    let refusal = OwnRefusal::new(RefusalKind::NotFound, rejection.facts().code, detail);
    refusal.member("map", map).member("group", group).into()
}

async fn create(server: Server, call: Call<NoQuery, CreateMap>) -> Answered<CreatedMap> {
    let Call { scope, name, body, .. } = call;
    let policy = body.policy.unwrap_or(PolicyText::Monotonic);
    let handles = scope.open(&server.house)?;
    let created = handles.maps().create_later(&name, Policy::from(policy)).await?;
    Ok(Reply::new(CreatedMap { name, policy, created }).created(created).replayed(handles.replayed()))
}

async fn delete(server: Server, call: Call<NoQuery, NoBody>) -> Answered<DeletedMap> {
    let Call { scope, name, .. } = call;
    let (handles, group) = (scope.open(&server.house)?, scope.group);
    match handles.maps().delete_map_later(&name).await? {
        Some(commit) => Ok(Reply::new(DeletedMap { name, commit }).replayed(handles.replayed())),
        None => Err(no_such_map(name, group)),
    }
}

async fn update(server: Server, call: Call<NoQuery, UpdateMap>) -> Answered<MapUpdated> {
    let Call { scope, name, body, .. } = call;
    let handles = scope.open(&server.house)?;
    let updated = handles.maps().update_later(&name, &operations::updates(body.updates)).await?;
    Ok(Reply::new(MapUpdated::from(&updated)).replayed(handles.replayed()))
}

async fn commit(server: Server, call: Call<NoQuery, CommitMap>) -> Answered<MapCommitted> {
    let Call { scope, name, body, .. } = call;
    let CommitMap { number, updates, positions, seal } = body;
    let handles = scope.open(&server.house)?;
    let commit = operations::numbered(number, updates, positions, seal);
    let (committed, done) = handles.maps().commit().commit_map(&name, commit).run_each_later().await?;
    let Some(MapUpdated { updates, applied, not_applied }) = done.last().and_then(updated) else {
        return Err(Refusal::Internal("a commit of a map was answered by something else"));
    };
    let answer = MapCommitted { commit: committed.commit, number, updates, applied, not_applied };
    Ok(Reply::new(answer).replayed(handles.replayed()))
}

fn updated(done: &Done) -> Option<MapUpdated> {
    match done {
        Done::Map(KeyedDone::Updated(updated)) => Some(updated.into()),
        _ => None,
    }
}

async fn seal(server: Server, call: Call<NoQuery, SealMap>) -> Answered<SealedMap> {
    let Call { scope, name, body, .. } = call;
    let handles = scope.open(&server.house)?;
    let raised = handles.maps().seal_later(&name, body.version.0).await?;
    Ok(Reply::new(SealedMap { name, raised }).replayed(handles.replayed()))
}

async fn positions(server: Server, call: Call<ReadPositions, NoBody>) -> Answered<Positions> {
    let Call { scope, name, query, .. } = call;
    let (maps, group) = (scope.open(&server.house)?.maps(), scope.group);
    let found = positions_of(server, maps.clone(), name.clone(), query).await?;
    if found.body.positions.is_empty() {
        must_be_there(&maps, name, group)?;
    }
    Ok(found)
}

/// A page of what a map has is empty: it may be that of a map that does not exist.
fn must_be_there(maps: &Maps, map: String, group: Option<String>) -> Result<(), Refusal> {
    match maps.summary(&map)? {
        Some(_) => Ok(()),
        None => Err(no_such_map(map, group)),
    }
}

/// A page of the positions of a map. One that does not exist has read nothing.
async fn positions_of(server: Server, maps: Maps, map: String, query: ReadPositions) -> Answered<Positions> {
    let ReadPositions { after, limit } = query;
    let limit = page_limit(limit, PAGE_ROWS)?;
    let memory = server.reserve_page().await?;
    let found = server.call(move |_| maps.positions(&map, after.as_deref(), limit)).await?;
    let next_after = found.last().filter(|_| found.len() == limit).map(|(input, _)| input.clone());
    let positions = found.into_iter().map(forms::position).collect();
    Ok(Reply::page(Positions { positions, next_after }, memory))
}
