//! The entries of cells in the table of routes.

use wire::routes::{CELLS_DELETE, CELLS_INIT, CELLS_LIST, CELLS_READ, CELLS_WRITE};

use crate::http::entry::{Entry, MADE, entry};

pub(in crate::api) fn routes() -> Vec<Entry> {
    vec![
        entry(CELLS_LIST, "Lists cells by name prefix, in one group or all groups", super::list),
        entry(CELLS_READ, "Reads a cell, current or past, or its history", super::read).head(),
        entry(CELLS_WRITE, "Writes a cell; the body is the value", super::write)
            .write()
            .if_match()
            .if_none_match()
            .statuses(MADE),
        entry(CELLS_INIT, "Creates a cell if it does not exist; the body is the value", super::init)
            .write()
            .statuses(MADE),
        entry(CELLS_DELETE, "Deletes a cell", super::delete).write().if_match(),
    ]
}
