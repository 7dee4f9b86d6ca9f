//! Init: create a cell if it does not exist.
//!
//! Touches: the cell. Keeps: K2. Idempotent: for an existing cell it writes nothing and returns the version.

use session::Halt;

use super::row::Head;
use super::write::write_version;
use super::{OpContext, ReadCells, WriteCells};
use crate::answer::OpOutcome;
use crate::keys::ThingId;
use crate::value::ValueRef;

pub(crate) fn init<S: ReadCells + WriteCells>(
    cells: &mut S,
    context: &OpContext,
    cell: &ThingId<'_>,
    value: ValueRef<'_>,
) -> Result<OpOutcome, Halt> {
    let row = cells.head(cell)?;
    let head = row.as_deref().map(Head::decode).transpose()?;
    if let Some(version) = head.as_ref().and_then(Head::live_version) {
        return Ok(OpOutcome::Existing(version));
    }
    Ok(OpOutcome::Written(write_version(cells, context, cell, head.as_ref(), Some(value))?))
}
