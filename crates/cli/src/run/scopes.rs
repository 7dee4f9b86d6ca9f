//! Which route each command calls; `crate::scopes` reads from it which flags a command honours.

use wire::routes::{RUNS_APPEND, RUNS_CLOSE, RUNS_DELETE, RUNS_EVENTS, RUNS_FORK, RUNS_LIST, RUNS_SNAPSHOT, Route};

/// The commands, each with the narrowest of the routes that it calls.
pub(crate) const SCOPES: &[(&str, Route)] = &[
    ("run append", RUNS_APPEND),
    ("run close", RUNS_CLOSE),
    ("run del", RUNS_DELETE),
    ("run fork", RUNS_FORK),
    ("run ls", RUNS_LIST),
    ("run show", RUNS_SNAPSHOT),
    ("run tail", RUNS_EVENTS),
    ("run verify", RUNS_SNAPSHOT),
    ("why run", RUNS_LIST),
];
