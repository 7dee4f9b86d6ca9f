//! The entries of cells in the table of routes.

use contract::access::{Area, Verb};
use wire::cells::ListCells;
use wire::routes::{CELLS_DELETE, CELLS_INIT, CELLS_LIST, CELLS_READ, CELLS_WRITE};

use crate::access::Permission;
use crate::http::entry::{Entry, MADE, entry};

pub(in crate::api) fn routes() -> Vec<Entry> {
    vec![
        entry(
            CELLS_LIST,
            Permission::listing(Area::Cell, |query: &ListCells| query.prefix.as_deref()),
            "Lists cells by name prefix, in one group or all groups",
            super::list,
        ),
        entry(
            CELLS_READ,
            Permission::thing(Verb::Read, Area::Cell),
            "Reads a cell, current or past, or its history",
            super::read,
        )
        .head(),
        entry(CELLS_WRITE, Permission::write_of(Area::Cell), "Writes a cell; the body is the value", super::write)
            .if_match()
            .if_none_match()
            .statuses(MADE),
        entry(
            CELLS_INIT,
            Permission::thing(Verb::Cas, Area::Cell),
            "Creates a cell if it does not exist; the body is the value",
            super::init,
        )
        .statuses(MADE),
        entry(CELLS_DELETE, Permission::write_of(Area::Cell), "Deletes a cell", super::delete).if_match(),
    ]
}
