//! Delete: write a version that marks the cell as deleted.
//!
//! Touches: the cell. Keeps: K2. The row is kept as long as the branch lives, so the version never restarts.

use session::Halt;

use super::row::Head;
use super::write::write_version;
use super::{OpContext, ReadCells, WriteCells};
use crate::answer::OpOutcome;
use crate::keys::ThingId;

pub(crate) fn delete<S: ReadCells + WriteCells>(
    cells: &mut S,
    context: &OpContext,
    cell: &ThingId<'_>,
) -> Result<OpOutcome, Halt> {
    let row = cells.head(cell)?;
    let head = row.as_deref().map(Head::decode).transpose()?;
    match head.filter(Head::exists) {
        None => Ok(OpOutcome::Nothing),
        Some(head) => Ok(OpOutcome::Written(write_version(cells, context, cell, Some(&head), None)?)),
    }
}
