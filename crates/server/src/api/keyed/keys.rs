//! The calls on keys of a map: read, scan, put, delete.

use contract::Error;
use contract::names::check_key;
use statehouse::Maps;
use statehouse::keyed::{KeysRange, LogicalTime, MapUpdates};
use wire::keyed::key::MapKey;
use wire::keyed::updates::outcome_of;
use wire::keyed::version::VersionText;
use wire::keyed::{KeyEntry, KeyPage, KeyWritten, ScanKeys, WriteKey};
use wire::operations::NoBody;
use wire::query::NoQuery;
use wire::values::{PageCursor, UserJson};

use super::{PAGE_ROWS, forms, must_be_there};
use crate::Server;
use crate::api::refusal::{OwnRefusal, RefusalKind};
use crate::api::scope::RequestScope;
use crate::api::{Answered, Call, Refusal, Reply, page_limit};

pub(super) async fn read(server: Server, call: Call<NoQuery, NoBody>) -> Answered<KeyEntry> {
    let Call { scope, name, mut rest, .. } = call;
    let maps = scope.open(&server.house)?.maps();
    read_of(&maps, name, scope.group, rest.pop().unwrap_or_default())
}

/// A key of a map, which need not exist.
pub(super) fn read_of(maps: &Maps, map: String, group: Option<String>, key: Vec<u8>) -> Answered<KeyEntry> {
    match maps.get(&map, &key)? {
        Some(found) => Ok(Reply::new(forms::entry(key, found))),
        None => Err(no_such_key(map, group, &key)),
    }
}

fn no_such_key(map: String, group: Option<String>, key: &[u8]) -> Refusal {
    let key = contract::keyed::shown_key(key);
    let in_group = group.as_ref().map_or(String::new(), |group| format!(" in group {group:?}"));
    let detail = format!("map {map:?}{in_group} has no key {key:?}; list its keys to see which are there");
    let refusal = OwnRefusal::new(RefusalKind::NotFound, "SH-1031", detail);
    refusal.member("map", map).member("group", group).member("key", key).into()
}

pub(super) async fn scan(server: Server, call: Call<ScanKeys, NoBody>) -> Answered<KeyPage> {
    let Call { scope, name, query, .. } = call;
    let (maps, group) = (scope.open(&server.house)?.maps(), scope.group);
    let found = scan_of(server, maps.clone(), name.clone(), query).await?;
    if found.body.keys.is_empty() {
        must_be_there(&maps, name, group)?;
    }
    Ok(found)
}

/// A page of keys. A map that does not exist has none.
pub(super) async fn scan_of(server: Server, maps: Maps, map: String, query: ScanKeys) -> Answered<KeyPage> {
    let ScanKeys { prefix, from, to, cursor, limit } = query;
    let mut range = KeysRange::default().limit(page_limit(limit, PAGE_ROWS)?);
    range.prefix = prefix.map(|prefix| prefix.0).unwrap_or_default();
    range.from = from.map(|from| from.0);
    range.to = to.map(|to| to.0);
    range.after = cursor.map(|cursor| cursor.0);
    let memory = server.reserve_page().await?;
    let found = server.call(move |_| maps.scan(&map, &range)).await?;
    let keys = found.keys.into_iter().map(|(key, value)| forms::entry(key, value)).collect();
    Ok(Reply::page(KeyPage { keys, cursor: found.next_after.map(PageCursor) }, memory))
}

pub(super) async fn put(server: Server, call: Call<WriteKey, UserJson>) -> Answered<KeyWritten> {
    let Call { scope, name, rest, query, body: UserJson(value), .. } = call;
    write(server, scope, name, rest, query, |updates, key, version| updates.add_put(key, &value, version)).await
}

pub(super) async fn delete(server: Server, call: Call<WriteKey, NoBody>) -> Answered<KeyWritten> {
    let Call { scope, name, rest, query, .. } = call;
    write(server, scope, name, rest, query, MapUpdates::add_delete).await
}

async fn write(
    server: Server,
    scope: RequestScope,
    map: String,
    mut rest: Vec<Vec<u8>>,
    query: WriteKey,
    add: impl FnOnce(&mut MapUpdates, &[u8], LogicalTime),
) -> Answered<KeyWritten> {
    let key = rest.pop().unwrap_or_default();
    let VersionText(version) = query.version;
    check_key(&key).map_err(Error::from)?;
    let mut updates = MapUpdates::new();
    add(&mut updates, &key, version);
    let handles = scope.open(&server.house)?;
    let updated = handles.maps().update_later(&map, &updates).await?;
    let Some(outcome) = updated.of(0) else {
        return Err(Refusal::Internal("the write of a key was answered by nothing"));
    };
    let (outcome, current) = outcome_of(outcome);
    Ok(Reply::new(KeyWritten { map, key: MapKey(key), outcome, current }).replayed(handles.replayed()))
}
