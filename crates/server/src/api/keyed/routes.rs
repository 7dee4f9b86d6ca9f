//! The entries of maps and operators in the table of routes. The version of a key may have an epoch, so that it is no ETag.

use wire::keyed::checkpoints::{RestorePartition, TakeCheckpoint};
use wire::keyed::operators::AcquirePartition;
use wire::routes::{
    KEYED_ACQUIRE, KEYED_CHECKPOINT, KEYED_CHECKPOINTS, KEYED_COMMIT, KEYED_KEY, KEYED_LIST, KEYED_PARTITIONS,
    KEYED_POSITIONS, KEYED_READ, KEYED_RESTORE, KEYED_SCAN, MAPS_COMMIT, MAPS_CREATE, MAPS_DELETE, MAPS_DELETE_KEY,
    MAPS_KEY, MAPS_LIST, MAPS_POSITIONS, MAPS_PUT_KEY, MAPS_READ, MAPS_SCAN, MAPS_SEAL, MAPS_UPDATE,
};

use super::{checkpoints, keys, operators};
use crate::http::entry::{Asked, Entry, MADE, entry, waiting};

pub(in crate::api) fn routes() -> Vec<Entry> {
    let mut routes = maps();
    routes.extend(of_operators());
    routes
}

fn maps() -> Vec<Entry> {
    vec![
        entry(MAPS_LIST, "Lists maps by name prefix, in one group or all groups", super::list),
        entry(MAPS_READ, "Reads a map as a whole", super::read),
        entry(MAPS_CREATE, "Creates a map with a policy, unless it exists with it", super::create)
            .write()
            .statuses(MADE),
        entry(MAPS_DELETE, "Deletes a map with all that it holds", super::delete).write(),
        entry(MAPS_UPDATE, "Updates keys, each only if its version is newer", super::update).write(),
        entry(MAPS_COMMIT, "Updates keys and advances inputs, once for each number", super::commit).write(),
        entry(MAPS_SEAL, "Raises the seal: the source has finished up to a version", super::seal).write(),
        entry(MAPS_SCAN, "Reads keys in the order of their bytes, from one view", keys::scan),
        entry(MAPS_KEY, "Reads a key", keys::read).head_without_version(),
        entry(MAPS_PUT_KEY, "Puts a value, only if its version is newer; the body is the value", keys::put).write(),
        entry(MAPS_DELETE_KEY, "Deletes a key, only if the version is newer", keys::delete).write(),
        entry(MAPS_POSITIONS, "Reads how far the inputs of a map were read", super::positions),
    ]
}

fn of_operators() -> Vec<Entry> {
    vec![
        entry(KEYED_LIST, "Lists the operators that hold something", operators::list),
        entry(KEYED_PARTITIONS, "Lists the partitions of an operator", operators::partitions),
        entry(KEYED_READ, "Reads a partition as a whole, and who owns it", operators::read),
        waiting(
            KEYED_ACQUIRE,
            "Owns a partition, and optionally waits for it; whoever owned it before is refused from then on",
            |_, acquire: &AcquirePartition| Asked { wait: acquire.wait.map(|wait| wait.0), stream: false },
            operators::acquire,
        )
        .write()
        .prefer_wait(),
        entry(KEYED_COMMIT, "Commits updates, positions and operations of a partition, once for each number", {
            operators::commit
        })
        .write(),
        entry(KEYED_CHECKPOINTS, "Lists the committed checkpoints of a partition", checkpoints::list),
        waiting(
            KEYED_CHECKPOINT,
            "Takes a checkpoint of a partition, and optionally waits until it is committed",
            |_, take: &TakeCheckpoint| Asked { wait: take.wait.map(|wait| wait.0), stream: false },
            checkpoints::take,
        )
        .write()
        .prefer_wait(),
        waiting(
            KEYED_RESTORE,
            "Takes a partition over and restores it from a checkpoint; Statehouse-Force is required",
            |_, restore: &RestorePartition| Asked { wait: restore.wait.map(|wait| wait.0), stream: false },
            checkpoints::restore,
        )
        .write()
        .prefer_wait(),
        entry(KEYED_SCAN, "Reads keys of a partition in the order of their bytes", operators::scan),
        entry(KEYED_KEY, "Reads a key of a partition", operators::key).head_without_version(),
        entry(KEYED_POSITIONS, "Reads how far the inputs of a partition were read", operators::positions),
    ]
}
