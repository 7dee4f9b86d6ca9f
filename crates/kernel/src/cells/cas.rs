//! Compare and swap: write a cell if it is at a version, or if it does not exist.
//!
//! Touches: the cell. Keeps: K2. On a mismatch nothing is written, and the answer carries the current version.

use contract::{CellRejection, Rejection};
use session::Halt;

use super::row::Head;
use super::write::write_version;
use super::{OpContext, ReadCells, WriteCells};
use crate::answer::OpOutcome;
use crate::keys::ThingId;
use crate::value::ValueRef;

pub(crate) fn cas<S: ReadCells + WriteCells>(
    cells: &mut S,
    context: &OpContext,
    cell: &ThingId<'_>,
    expected: Option<u64>,
    value: ValueRef<'_>,
) -> Result<Result<OpOutcome, Rejection>, Halt> {
    let row = cells.head(cell)?;
    let head = row.as_deref().map(Head::decode).transpose()?;
    let current = head.as_ref().and_then(Head::live_version);
    if current != expected {
        return Ok(Err(Rejection::Cell(CellRejection::Conflict { cell: cell.name.to_owned(), current })));
    }
    Ok(Ok(OpOutcome::Written(write_version(cells, context, cell, head.as_ref(), Some(value))?)))
}
