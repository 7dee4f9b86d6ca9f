//! The entries of maps and operators in the table of routes. The version of a key may have an epoch, so that it is no ETag.

use contract::access::{Area, Verb};
use wire::keyed::ListMaps;
use wire::keyed::checkpoints::{RestorePartition, TakeCheckpoint};
use wire::keyed::operators::{AcquirePartition, CommitPartition, ListOperators, ListPartitions};
use wire::operations::NoBody;
use wire::query::NoQuery;
use wire::routes::{
    KEYED_ACQUIRE, KEYED_CHECKPOINT, KEYED_CHECKPOINTS, KEYED_COMMIT, KEYED_KEY, KEYED_LIST, KEYED_PARTITIONS,
    KEYED_POSITIONS, KEYED_READ, KEYED_RESTORE, KEYED_SCAN, MAPS_COMMIT, MAPS_CREATE, MAPS_DELETE, MAPS_DELETE_KEY,
    MAPS_KEY, MAPS_LIST, MAPS_POSITIONS, MAPS_PUT_KEY, MAPS_READ, MAPS_SCAN, MAPS_SEAL, MAPS_UPDATE,
};

use super::{checkpoints, keys, operators};
use crate::access::Permission;
use crate::api::transactions;
use crate::http::entry::{Asked, Entry, MADE, entry, waiting};

pub(in crate::api) fn routes() -> Vec<Entry> {
    let mut routes = maps();
    routes.extend(of_operators());
    routes
}

/// A verb on the map of the path. Of an operator it is the map of its name, in the group of the partition.
fn map<Q: 'static, B>(verb: Verb) -> Permission<Q, B> {
    Permission::thing(verb, Area::Map)
}

fn maps() -> Vec<Entry> {
    use Verb::{Read, Write};
    vec![
        entry(
            MAPS_LIST,
            Permission::listing(Area::Map, |query: &ListMaps| query.prefix.as_deref()),
            "Lists maps by name prefix, in one group or all groups",
            super::list,
        ),
        entry(MAPS_READ, map(Read), "Reads a map as a whole", super::read),
        entry(MAPS_CREATE, map(Write), "Creates a map with a policy, unless it exists with it", super::create)
            .statuses(MADE),
        entry(MAPS_DELETE, map(Write), "Deletes a map with all that it holds", super::delete),
        entry(MAPS_UPDATE, map(Write), "Updates keys, each only if its version is newer", super::update),
        entry(MAPS_COMMIT, map(Write), "Updates keys and advances inputs, once for each number", super::commit),
        entry(MAPS_SEAL, map(Write), "Raises the seal: the source has finished up to a version", super::seal),
        entry(MAPS_SCAN, map(Read), "Reads keys in the order of their bytes, from one view", keys::scan),
        entry(MAPS_KEY, map(Read), "Reads a key", keys::read).head_without_version(),
        entry(MAPS_PUT_KEY, map(Write), "Puts a value, only if its version is newer; the body is the value", keys::put),
        entry(MAPS_DELETE_KEY, map(Write), "Deletes a key, only if the version is newer", keys::delete),
        entry(MAPS_POSITIONS, map(Read), "Reads how far the inputs of a map were read", super::positions),
    ]
}

fn of_operators() -> Vec<Entry> {
    use Verb::{Claim, Read, Restore, Snapshot};
    vec![
        entry(
            KEYED_LIST,
            Permission::names(Area::Map, |query: &ListOperators| query.prefix.as_deref()),
            "Lists the operators that hold something",
            operators::list,
        ),
        entry(KEYED_PARTITIONS, partitions(), "Lists the partitions of an operator", operators::partitions),
        entry(KEYED_READ, map(Read), "Reads a partition as a whole, and who owns it", operators::read),
        waiting(
            KEYED_ACQUIRE,
            map(Claim),
            "Owns a partition, and optionally waits for it; whoever owned it before is refused from then on",
            |_, acquire: &AcquirePartition| Asked { wait: acquire.wait.map(|wait| wait.0), stream: false },
            operators::acquire,
        )
        .prefer_wait(),
        entry(
            KEYED_COMMIT,
            commit(),
            "Commits updates, positions and operations of a partition, once for each number",
            operators::commit,
        ),
        entry(KEYED_CHECKPOINTS, map(Read), "Lists the committed checkpoints of a partition", checkpoints::list),
        waiting(
            KEYED_CHECKPOINT,
            map(Snapshot).recorded(),
            "Takes a checkpoint of a partition, and optionally waits until it is committed",
            |_, take: &TakeCheckpoint| Asked { wait: take.wait.map(|wait| wait.0), stream: false },
            checkpoints::take,
        )
        .prefer_wait(),
        waiting(
            KEYED_RESTORE,
            map(Restore).recorded(),
            "Takes a partition over and restores it from a checkpoint; Statehouse-Force is required",
            |_, restore: &RestorePartition| Asked { wait: restore.wait.map(|wait| wait.0), stream: false },
            checkpoints::restore,
        )
        .prefer_wait(),
        entry(KEYED_SCAN, map(Read), "Reads keys of a partition in the order of their bytes", operators::scan),
        entry(KEYED_KEY, map(Read), "Reads a key of a partition", operators::key).head_without_version(),
        entry(KEYED_POSITIONS, map(Read), "Reads how far the inputs of a partition were read", operators::positions),
    ]
}

/// They are groups, whose names begin with that of the operator.
fn partitions() -> Permission<ListPartitions, NoBody> {
    Permission::of("list keyed", |asking, needs| {
        let groups = asking.composed(|| format!("{}/", asking.name));
        needs.prefix(Verb::List, Area::Map, None, groups);
    })
}

fn commit() -> Permission<NoQuery, CommitPartition> {
    Permission::of("write keyed; read what its conditions name; what each operation does", |asking, needs| {
        let CommitPartition { number: _, updates: _, positions: _, seal: _, guards, operations } = asking.body;
        needs.thing(Verb::Write, Area::Map, asking.group, asking.name);
        let (group, operations) = (asking.group.unwrap_or_default(), operations.as_deref().unwrap_or_default());
        transactions::needs::of_commit(group, guards.as_deref(), None, operations, needs);
    })
}
