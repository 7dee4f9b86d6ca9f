//! At: a cell as it was at a version or a time.

use contract::{AsOf, Moment};
use session::Halt;

use super::floor::Floor;
use super::row::{Head, Old};
use super::{ReadCells, old_row};
use crate::keys::ThingId;

/// The cell at a moment of its past.
pub fn at(cells: &impl ReadCells, cell: &ThingId<'_>, moment: Moment) -> Result<AsOf, Halt> {
    let Some(row) = cells.head(cell)? else {
        return Ok(without_rows(cells.floor(cell)?, moment));
    };
    let head = Head::decode(&row)?;
    let version = match moment {
        Moment::Version(version) => Some(version),
        Moment::Time(time_us) => newest_at(cells, cell, &head, time_us)?,
    };
    match version {
        Some(0) => Ok(AsOf::Absent),
        Some(version) if version > head.version => Ok(AsOf::Absent),
        Some(version) if version == head.version => Ok(as_of(version, &head.write)),
        Some(version) if version >= head.oldest => Ok(as_of(version, &Old::decode(&old_row(cells, cell, version)?)?)),
        // Before the oldest kept version: if that is version 1, the cell did not exist yet.
        None if head.oldest == 1 => Ok(AsOf::Absent),
        _ => Ok(AsOf::Unavailable { oldest: head.oldest }),
    }
}

/// What never existed was absent at all times; what was forgotten, only since it was deleted. Which of them it is, nobody
/// can tell.
fn without_rows(floor: Floor, moment: Moment) -> AsOf {
    let was_absent = match moment {
        Moment::Version(version) => version == 0 || version > floor.version,
        Moment::Time(time_us) => time_us >= floor.updated_at,
    };
    if was_absent { AsOf::Absent } else { AsOf::Unavailable { oldest: floor.version + 1 } }
}

fn as_of(version: u64, write: &Old<'_>) -> AsOf {
    write.versioned(version).map_or(AsOf::Absent, AsOf::Value)
}

/// The newest kept version that was written at or before a time. Versions and their times rise together.
fn newest_at(cells: &impl ReadCells, cell: &ThingId<'_>, head: &Head<'_>, time_us: u64) -> Result<Option<u64>, Halt> {
    if head.write.updated_at <= time_us {
        return Ok(Some(head.version));
    }
    // Versions from `low` on may qualify, versions from `high` on do not.
    let (mut low, mut high) = (head.oldest, head.version);
    while low < high {
        let middle = low + (high - low) / 2;
        if Old::decode(&old_row(cells, cell, middle)?)?.updated_at <= time_us {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok((low > head.oldest).then(|| low - 1))
}
