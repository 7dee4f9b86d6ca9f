//! Which route each command calls; `crate::scopes` reads from it which flags a command honours.

use wire::routes::{
    KEYED_ACQUIRE, KEYED_CHECKPOINT, KEYED_CHECKPOINTS, KEYED_LIST, KEYED_PARTITIONS, KEYED_RESTORE, MAPS_CREATE,
    MAPS_DELETE, MAPS_DELETE_KEY, MAPS_KEY, MAPS_LIST, MAPS_POSITIONS, MAPS_PUT_KEY, MAPS_READ, MAPS_SCAN, MAPS_SEAL,
    Route,
};

/// The commands, each with the narrowest of the routes that it calls.
pub(crate) const SCOPES: &[(&str, Route)] = &[
    ("keyed checkpoint", KEYED_CHECKPOINT),
    ("keyed checkpoints", KEYED_CHECKPOINTS),
    ("keyed create", MAPS_CREATE),
    ("keyed del", MAPS_DELETE_KEY),
    ("keyed fence", KEYED_ACQUIRE),
    ("keyed get", MAPS_KEY),
    ("keyed ls", MAPS_LIST),
    ("keyed operators", KEYED_LIST),
    ("keyed partitions", KEYED_PARTITIONS),
    ("keyed positions", MAPS_POSITIONS),
    ("keyed restore", KEYED_RESTORE),
    ("keyed rm", MAPS_DELETE),
    ("keyed scan", MAPS_SCAN),
    ("keyed seal", MAPS_SEAL),
    ("keyed set", MAPS_PUT_KEY),
    ("keyed show", MAPS_READ),
    ("why operator", MAPS_LIST),
];
