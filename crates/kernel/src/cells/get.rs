//! Get: the newest version of a cell.

use contract::{Value, Versioned};
use session::Halt;

use super::ReadCells;
use super::row::Head;
use crate::keys::ThingId;

/// The value, or none if the cell does not exist.
pub fn get(cells: &impl ReadCells, cell: &ThingId<'_>) -> Result<Option<Value>, Halt> {
    let Some(row) = cells.head(cell)? else {
        return Ok(None);
    };
    Ok(Head::decode(&row)?.write.value.map(|value| value.to_value()))
}

/// The value with its version, or none if the cell does not exist.
pub fn get_versioned(cells: &impl ReadCells, cell: &ThingId<'_>) -> Result<Option<Versioned>, Halt> {
    let Some(row) = cells.head(cell)? else {
        return Ok(None);
    };
    Ok(Head::decode(&row)?.versioned())
}
