//! History: the kept versions, newest first, in pages.

use contract::cells::PastVersion;
use contract::limits::PAGE_BYTES_MAX;
use contract::{History, HistoryPage};
use session::Halt;

use super::row::{Head, Old};
use super::{ReadCells, old_row};
use crate::keys::ThingId;

/// A page of the versions of a cell.
pub fn history(cells: &impl ReadCells, cell: &ThingId<'_>, page: HistoryPage) -> Result<History, Halt> {
    let Some(row) = cells.head(cell)? else {
        return Ok(History::default());
    };
    let head = Head::decode(&row)?;
    let mut history = History::default();
    let mut next = page.before.map_or(head.version, |before| before.saturating_sub(1).min(head.version));
    let mut bytes = 0;
    while next >= head.oldest && history.versions.len() < page.limit && bytes < PAGE_BYTES_MAX {
        if next == head.version {
            bytes += row.len();
            history.versions.push(past(next, &head.write));
        } else {
            let old = old_row(cells, cell, next)?;
            bytes += old.len();
            history.versions.push(past(next, &Old::decode(&old)?));
        }
        next -= 1;
    }
    // `next` is the version after the last one of this page.
    history.next_before = (next >= head.oldest && page.limit > 0).then_some(next + 1);
    Ok(history)
}

fn past(version: u64, write: &Old<'_>) -> PastVersion {
    PastVersion::new(version, write.value.map(|value| value.to_value()), write.commit, write.updated_at)
}
