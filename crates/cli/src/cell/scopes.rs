//! Which route each command calls; `crate::scopes` reads from it which flags a command honours.

use wire::routes::{CELLS_DELETE, CELLS_INIT, CELLS_LIST, CELLS_READ, CELLS_WRITE, CHANGES_READ, Route};

/// The commands, each with the narrowest of the routes that it calls.
pub(crate) const SCOPES: &[(&str, Route)] = &[
    ("cell at", CELLS_READ),
    ("cell cas", CELLS_WRITE),
    ("cell del", CELLS_DELETE),
    ("cell get", CELLS_READ),
    ("cell history", CELLS_READ),
    ("cell init", CELLS_INIT),
    ("cell ls", CELLS_LIST),
    ("cell set", CELLS_WRITE),
    ("cell watch", CHANGES_READ),
];
