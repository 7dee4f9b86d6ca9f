//! Maps in a transaction: operations on them, and conditions on keys and on positions.

use contract::access::{Area, Verb};
use contract::keyed::Merge;
use statehouse::Commit;
use statehouse::keyed::{KeyedDone, MapCommit, MapUpdates, Policy};
use wire::contracts::Done;
use wire::keyed::key::MapKey;
use wire::keyed::operations::{
    InputOfMap, KeyOfMap, KeysOfMap, MapCommit as CommitOfMap, MapCreate, MapDelete, MapGuard, MapOperation, MapSeal,
    MapUpdate,
};
use wire::keyed::updates::KeyUpdate;
use wire::keyed::version::Version;
use wire::keyed::{MapUpdated, PolicyText};
use wire::transactions::WrittenOperation;
use wire::values::Members;

use crate::access::Needs;
use crate::api::Refusal;
use crate::api::transactions::{CommitBuilder, Parts};

/// Updates in the library's form.
pub(super) fn updates(given: Vec<KeyUpdate>) -> MapUpdates {
    let mut updates = MapUpdates::new();
    for update in given {
        match update {
            KeyUpdate::Add(of) => merge(&mut updates, &of.key, Merge::Add, of.value, of.version),
            KeyUpdate::Min(of) => merge(&mut updates, &of.key, Merge::Min, of.value, of.version),
            KeyUpdate::Max(of) => merge(&mut updates, &of.key, Merge::Max, of.value, of.version),
            KeyUpdate::Put(of) => updates.add_put(&of.key.0, &of.value.0, of.version.0),
            KeyUpdate::Delete(of) => updates.add_delete(&of.key.0, of.version.0),
            KeyUpdate::Remove(of) => updates.add_remove(&of.key.0),
        }
    }
    updates
}

fn merge(updates: &mut MapUpdates, key: &MapKey, merge: Merge, value: i64, version: Option<Version>) {
    match version {
        Some(version) => updates.add_merge_at(&key.0, merge, value, version.0),
        None => updates.add_merge(&key.0, merge, value),
    }
}

/// A numbered commit in the library's form.
pub(super) fn numbered(
    number: u64,
    given: Option<Vec<KeyUpdate>>,
    positions: Option<Members<u64>>,
    seal: Option<Version>,
) -> MapCommit {
    let mut commit = MapCommit::numbered(number).updates(|_| updates(given.unwrap_or_default()));
    for (input, position) in positions.unwrap_or_default().0 {
        commit = commit.advance(input, position);
    }
    match seal {
        Some(seal) => commit.seal(seal.0),
        None => commit,
    }
}

/// Adds an operation on a map to a commit. Returns the operations of the commit that it became.
pub(in crate::api) fn add_operation(
    builder: &mut CommitBuilder<'_>,
    operation: MapOperation,
) -> Result<Parts, Refusal> {
    builder.change(|commit| match operation {
        MapOperation::Update(of) => commit.update_map(&of.name, updates(of.updates)),
        MapOperation::Commit(of) => commit.commit_map(&of.name, numbered(of.number, of.updates, of.positions, of.seal)),
        MapOperation::Seal(of) => commit.seal_map(&of.name, of.version.0),
        MapOperation::Create(of) => {
            commit.create_map(&of.name, Policy::from(of.policy.unwrap_or(PolicyText::Monotonic)))
        }
        MapOperation::Delete(of) => commit.delete_map(&of.name),
    });
    Ok(Parts::ONE)
}

/// Shows a result that only operations on maps have.
pub(in crate::api) fn done(done: &KeyedDone) -> Done {
    match done {
        KeyedDone::Updated(updated) => Done::Updated(MapUpdated::from(updated)),
        other => {
            let written = WrittenOperation::at(other.version().unwrap_or_default());
            Done::Written(WrittenOperation { existing: Some(true), ..written })
        }
    }
}

/// Adds the conditions on a key, on a range of keys, or on an input.
pub(in crate::api) fn add_guard(mut commit: Commit, guard: MapGuard) -> Commit {
    let MapGuard { key, keys, input, version, version_below, absent, exists, unchanged_since, position } = guard;
    if let (Some(KeysOfMap { map, from, before }), Some(since)) = (&keys, unchanged_since) {
        let before = before.as_ref().map(|before| before.0.as_slice());
        commit = commit.if_keys_unchanged_since(map, &from.0, before, since);
    }
    if let Some(InputOfMap { map, input }) = &input {
        // The reader has made sure of one of both.
        commit = commit.if_input_position(map, input, position);
    }
    let Some(KeyOfMap { map, key }) = &key else {
        return commit;
    };
    if absent == Some(true) {
        commit = commit.if_key_absent(map, &key.0);
    }
    if exists == Some(true) {
        commit = commit.if_key_exists(map, &key.0);
    }
    if let Some(version) = version {
        commit = commit.if_key_version(map, &key.0, version.0);
    }
    if let Some(version) = version_below {
        commit = commit.if_key_version_below(map, &key.0, version.0);
    }
    if let Some(since) = unchanged_since {
        commit = commit.if_key_unchanged_since(map, &key.0, since);
    }
    commit
}

/// Collects what an operation on a map of a group needs. No answer shows a value, not even that of a merge.
pub(in crate::api) fn operation_needs<'request>(
    operation: &'request MapOperation,
    group: &'request str,
    needs: &mut Needs<'request>,
) {
    let name = match operation {
        MapOperation::Update(MapUpdate { name, updates: _ }) => name,
        MapOperation::Commit(CommitOfMap { name, number: _, updates: _, positions: _, seal: _ }) => name,
        MapOperation::Seal(MapSeal { name, version: _ }) => name,
        MapOperation::Create(MapCreate { name, policy: _ }) => name,
        MapOperation::Delete(MapDelete { name }) => name,
    };
    needs.thing(Verb::Write, Area::Map, Some(group), name);
}

/// Collects what conditions on a key, on a range of keys, or on an input of a map need.
pub(in crate::api) fn guard_needs<'request>(
    guard: &'request MapGuard,
    group: &'request str,
    needs: &mut Needs<'request>,
) {
    let MapGuard {
        key,
        keys,
        input,
        version: _,
        version_below: _,
        absent: _,
        exists: _,
        unchanged_since: _,
        position: _,
    } = guard;
    let of_key = key.as_ref().map(|KeyOfMap { map, key: _ }| map);
    let of_keys = keys.as_ref().map(|KeysOfMap { map, from: _, before: _ }| map);
    let of_input = input.as_ref().map(|InputOfMap { map, input: _ }| map);
    for map in [of_key, of_keys, of_input].into_iter().flatten() {
        needs.thing(Verb::Read, Area::Map, Some(group), map);
    }
}
