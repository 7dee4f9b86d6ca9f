//! What is left of the cells of a deleted branch.
//!
//! Touches: `CellHead` and `CellOld` rows, and names. Keeps: K3, and K8 (a name is removed with its cell).

use kv::Staging;
use session::Halt;

use super::row::Head;
use crate::keys::{Keys, Kind, ThingId};
use crate::names;

/// Old versions of a cell that one step removes.
const REMOVED_ROWS_MAX: u64 = 64;

/// Removes old versions of a cell whose branch was deleted, and the cell itself when none is left.
pub(crate) fn remove_some(state: &mut Staging, keys: Keys, cell: &ThingId<'_>) -> Result<(), Halt> {
    let head_key = keys.cell_head(cell);
    let Some(row) = state.get(&head_key)? else {
        return Ok(());
    };
    let head = Head::decode(&row)?;
    let removed = (head.version - head.oldest).min(REMOVED_ROWS_MAX);
    for version in head.oldest..head.oldest + removed {
        state.delete(keys.cell_old(cell, version));
    }
    if head.oldest + removed == head.version {
        if head.exists() {
            names::set_listed(state, &keys, Kind::CellHead, cell, false);
        }
        state.delete(head_key);
    } else {
        let trimmed = Head { oldest: head.oldest + removed, ..head };
        state.put_encoded(head_key, |writer| trimmed.encode(writer));
    }
    Ok(())
}
