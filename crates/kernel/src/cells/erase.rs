//! What is left of the cells of a deleted branch.
//!
//! Touches: `CellHead` and `CellOld` rows, and names. Keeps: K3, and K8 (a name is removed with its cell).

use session::Halt;

use super::row::Head;
use super::{ReadCells, WriteCells};
use crate::keys::ThingId;

/// Old versions of a cell that one step removes.
const REMOVED_ROWS_MAX: u64 = 64;

/// Removes old versions of a cell whose branch was deleted, and the cell itself when none is left.
pub(crate) fn remove_some<S: ReadCells + WriteCells>(cells: &mut S, cell: &ThingId<'_>) -> Result<(), Halt> {
    let Some(row) = cells.head(cell)? else {
        return Ok(());
    };
    let head = Head::decode(&row)?;
    let upto = head.version.min(head.oldest + REMOVED_ROWS_MAX);
    (head.oldest..upto).try_for_each(|version| cells.delete_old(cell, version))?;
    if upto < head.version {
        cells.put_head(cell, Some(&head), &Head { oldest: upto, ..head });
        return Ok(());
    }
    if head.exists() {
        cells.set_listed(cell, false);
    }
    cells.delete_head(cell, &head);
    Ok(())
}
