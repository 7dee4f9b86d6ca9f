//! The lines of an export for cells.

use kernel::catalogue::Space;
use kernel::cells::item::CellItem;
use kernel::cells::row::Old;
use session::Halt;

use crate::export::kinds;
use crate::export::line::Line;
use crate::export::lines::Place;

/// Nothing is declared for cells.
pub(crate) fn declared(_: &Space) -> Vec<(&'static str, Line)> {
    Vec::new()
}

pub(crate) fn line(place: &Place<'_>, item: &CellItem<'_>) -> Result<(&'static str, Line), Halt> {
    Ok(match item {
        CellItem::Floor { bucket, space, branch, version, commit, updated_at } => {
            let line = place.in_branch(kinds::CELL_FLOOR, *space, *branch)?;
            let line = line.number("bucket", *bucket).number("version", *version);
            let line = line.number_if("commit", place.unless_in_header(*commit)).number("updated_us", *updated_at);
            (kinds::CELL_FLOOR, line)
        }
        CellItem::Version { cell, version, write } => {
            (kinds::CELL_VERSION, written(place.line(kinds::CELL_VERSION, cell, "name")?, *version, write))
        }
        CellItem::Newest { cell, version, write } => {
            (kinds::CELL, written(place.line(kinds::CELL, cell, "name")?, *version, write))
        }
    })
}

fn written(line: Line, version: u64, write: &Old<'_>) -> Line {
    let line = line.number("version", version).number("commit", write.commit).number("updated_us", write.updated_at);
    match write.value {
        None => line.flag("deleted", true),
        Some(value) => line.value("value", &value.to_value()),
    }
}
