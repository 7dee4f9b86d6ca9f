//! Set: write a cell unconditionally.
//!
//! Touches: the cell. Keeps: K2. Reads the cell only to know the next version.

use session::Halt;

use super::row::Head;
use super::write::write_version;
use super::{OpContext, ReadCells, WriteCells};
use crate::answer::OpOutcome;
use crate::keys::ThingId;
use crate::value::ValueRef;

pub(crate) fn set<S: ReadCells + WriteCells>(
    cells: &mut S,
    context: &OpContext,
    cell: &ThingId<'_>,
    value: ValueRef<'_>,
) -> Result<OpOutcome, Halt> {
    let row = cells.head(cell)?;
    let head = row.as_deref().map(Head::decode).transpose()?;
    Ok(OpOutcome::Written(write_version(cells, context, cell, head.as_ref(), Some(value))?))
}
