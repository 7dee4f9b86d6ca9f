//! The cells in the lines of an export.

use kernel::cells::item::CellItem;
use kernel::cells::row::Old;
use kernel::portable::{Builder, Item};
use kernel::{Catalogue, ValueRef};

use crate::export::kinds;
use crate::import::items::{Unput, branch_of, thing};
use crate::import::object::{Object, Wrong};

/// The kinds of their lines.
pub(crate) const KINDS: &[&str] = &[kinds::CELL_FLOOR, kinds::CELL_VERSION, kinds::CELL];

/// Nothing is declared for cells.
pub(crate) fn declare(_: &mut Catalogue, _: &str, _: Object<'_>) -> Result<bool, Wrong> {
    Ok(false)
}

pub(crate) fn put(builder: &mut Builder<'_>, kind: &str, line: Object<'_>) -> Result<(), Unput> {
    if kind == kinds::CELL_FLOOR {
        let (space, branch) = branch_of(builder.catalogue(), line)?;
        let (bucket, version, commit) =
            (line.number("bucket")?, line.number("version")?, line.number_or_zero("commit")?);
        let updated_at = line.number("updated_us")?;
        let floor = CellItem::Floor { bucket, space, branch, version, commit, updated_at };
        return Ok(builder.put(&Item::Cell(floor))?);
    }
    let cell = &thing(builder.catalogue(), line, "name")?;
    let version = line.number("version")?;
    let value = if line.flag("deleted")? { None } else { Some(line.value("value")?) };
    let value = value.as_ref().map(ValueRef::from);
    let write = Old { commit: line.number("commit")?, updated_at: line.number("updated_us")?, value };
    Ok(builder.put(&match kind {
        kinds::CELL => Item::Cell(CellItem::Newest { cell, version, write }),
        _ => Item::Cell(CellItem::Version { cell, version, write }),
    })?)
}
