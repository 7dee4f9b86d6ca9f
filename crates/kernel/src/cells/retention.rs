//! Decides which old versions to discard, at a write and by the retention walk.
//!
//! Keeps: K3. Versions are discarded from the oldest on, a bounded number at a time, whether they can be read or not.

use contract::Retention;
use session::Halt;

use super::row::{Head, Old};
use super::{OpContext, ReadCells, WriteCells, old_row};
use crate::keys::ThingId;

/// The versions of a cell: from `oldest` to `newest`, the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) oldest: u64,
    pub(super) newest: u64,
    /// When `oldest` was displaced, or earlier.
    pub(super) oldest_displaced_us: u64,
}

/// Discards old versions, at most as many as one write may. `unwritten` is a version without a row yet.
pub(super) fn trim<S: ReadCells + WriteCells>(
    cells: &mut S,
    context: &OpContext,
    cell: &ThingId<'_>,
    mut span: Span,
    unwritten: Option<u64>,
) -> Result<Span, Halt> {
    // One more than the limit, so that a write that displaces one version can also discard one.
    for _ in 0..=context.limits.write_trim_rows_max {
        if !discard_oldest(cells, context, cell, &mut span, unwritten)? {
            break;
        }
    }
    Ok(span)
}

/// Discards the oldest version. Returns whether there was one to discard.
fn discard_oldest<S: ReadCells + WriteCells>(
    cells: &mut S,
    context: &OpContext,
    cell: &ThingId<'_>,
    span: &mut Span,
    unwritten: Option<u64>,
) -> Result<bool, Halt> {
    if span.oldest == span.newest || !due(span, cells, context, cell, unwritten)? {
        return Ok(false);
    }
    if unwritten != Some(span.oldest) {
        cells.delete_old(cell, span.oldest)?;
    }
    span.oldest += 1;
    Ok(true)
}

/// Whether the oldest version is due to be discarded.
fn due(
    span: &mut Span,
    cells: &impl ReadCells,
    context: &OpContext,
    cell: &ThingId<'_>,
    unwritten: Option<u64>,
) -> Result<bool, Halt> {
    if beyond_count(context.retention, span.oldest, span.newest) {
        return Ok(true);
    }
    if !beyond_age(context.retention, span.oldest_displaced_us, context.wall_us) {
        return Ok(false);
    }
    // The time in the head may be too early; the version after the oldest knows.
    let after = span.oldest + 1;
    let head_updated_us = || -> Result<u64, Halt> {
        let head = cells.head(cell)?.ok_or_else(|| Halt::Inconsistent("a cell lost its head".into()))?;
        Ok(Head::decode(&head)?.write.updated_at)
    };
    span.oldest_displaced_us = if after == span.newest && unwritten.is_some() {
        context.wall_us
    } else if after == span.newest || unwritten == Some(after) {
        head_updated_us()?
    } else {
        match old_row(cells, cell, after) {
            // Nobody knows when; certainly before the newest version was written.
            Err(halt) if halt.set_apart().is_some() => head_updated_us()?,
            row => Old::decode(&row?)?.updated_at,
        }
    };
    Ok(beyond_age(context.retention, span.oldest_displaced_us, context.wall_us))
}

fn beyond_count(retention: Retention, version: u64, newest: u64) -> bool {
    newest - version >= retention.versions_max
}

fn beyond_age(retention: Retention, displaced_us: u64, now_us: u64) -> bool {
    displaced_us.saturating_add(retention.age_us_max) < now_us
}

/// Whether the walk should examine a cell with this head: it may have versions to discard.
pub fn may_be_due(head: &Head<'_>, retention: Retention, now_us: u64) -> bool {
    head.oldest < head.version
        && (beyond_count(retention, head.oldest, head.version)
            || beyond_age(retention, head.oldest_displaced_us, now_us))
}

/// Discards the due versions of a cell that is not being written. Returns how many.
pub(crate) fn trim_cell<S: ReadCells + WriteCells>(
    cells: &mut S,
    context: &OpContext,
    cell: &ThingId<'_>,
) -> Result<u64, Halt> {
    let Some(row) = cells.head(cell)? else {
        return Ok(0);
    };
    let head = Head::decode(&row)?;
    let span = Span { oldest: head.oldest, newest: head.version, oldest_displaced_us: head.oldest_displaced_us };
    let kept = trim(cells, context, cell, span, None)?;
    if kept != span {
        let trimmed = Head { oldest: kept.oldest, oldest_displaced_us: kept.oldest_displaced_us, ..head };
        cells.put_head(cell, Some(&head), &trimmed);
    }
    Ok(kept.oldest - span.oldest)
}
