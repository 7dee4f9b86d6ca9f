//! The one place where a version of a cell is written and the one before it is displaced.

use session::Halt;

use super::retention::{Span, trim};
use super::row::{Head, Old};
use super::{OpContext, ReadCells, WriteCells};
use crate::changes::Reason;
use crate::keys::ThingId;
use crate::value::ValueRef;

/// Writes the next version: a value, or a deletion. Returns the version.
pub(super) fn write_version<S: ReadCells + WriteCells>(
    cells: &mut S,
    context: &OpContext,
    cell: &ThingId<'_>,
    head: Option<&Head<'_>>,
    value: Option<ValueRef<'_>>,
) -> Result<u64, Halt> {
    let write = Old { commit: context.commit, updated_at: context.wall_us, value };
    let reason = if value.is_some() { Reason::Written } else { Reason::Deleted };
    if head.is_some_and(Head::exists) != value.is_some() {
        cells.set_listed(cell, value.is_some());
    }
    let Some(head) = head else {
        let version = cells.floor(cell)?.version + 1;
        cells.note(context.commit, cell, version, reason);
        cells.put_head(cell, None, &Head { version, oldest: version, oldest_displaced_us: 0, write });
        return Ok(version);
    };
    let version = head.version + 1;
    let displaced_first = head.oldest == head.version;
    let span = Span {
        oldest: head.oldest,
        newest: version,
        oldest_displaced_us: if displaced_first { context.wall_us } else { head.oldest_displaced_us },
    };
    // The displaced version has no row yet; it is written below, if it is kept.
    let kept = trim(cells, context, cell, span, Some(head.version))?;
    if kept.oldest <= head.version {
        cells.put_old(cell, head.version, &head.write);
    }
    let next = Head { version, oldest: kept.oldest, oldest_displaced_us: kept.oldest_displaced_us, write };
    assert!(next.version == head.version + 1 && next.oldest <= next.version, "K2, K3: {head:?} then {next:?}");
    cells.note(context.commit, cell, version, reason);
    cells.put_head(cell, Some(head), &next);
    Ok(version)
}
