//! Forgetting deleted cells: their rows go, and new cells of the branch start above every version that was forgotten.
//!
//! This happens only while disk space is short. A deleted cell is otherwise remembered as long as its branch lives, and a
//! new one starts at version 1.
//!
//! Touches: the `CellFloor` row of a branch in a bucket, and the rows of deleted cells. Keeps: K2. A version that somebody
//! remembers from before the deletion never matches a cell that was created after it. A cell without rows counts as
//! changed for whoever looked before the last deletion of those that were forgotten: it may have been that one.

use kv::{Reader, Writer};
use session::Halt;

use super::row::Head;
use super::{ReadCells, WriteCells};
use crate::keys::ThingId;

const FORMAT: u8 = 1;

/// Older versions that one step removes.
const REMOVED_VERSIONS_MAX: u64 = 64;

/// What is known of all cells of a branch in a bucket that were forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Floor {
    /// Their highest version.
    pub version: u64,
    /// The last command that changed one of them.
    pub commit: u64,
    /// Its time. From then on, none of them existed.
    pub updated_at: u64,
}

impl Floor {
    /// Appends the row's bytes.
    pub(crate) fn encode(self, writer: &mut Writer) {
        writer.u8(FORMAT).u64(self.version).u64(self.commit).u64(self.updated_at);
    }

    /// Reads the row; without one, nothing was forgotten.
    pub(crate) fn decode(row: Option<&[u8]>) -> Result<Self, Halt> {
        let Some(row) = row else {
            return Ok(Self::default());
        };
        let read = || {
            let mut reader = Reader::new(row);
            reader.format(FORMAT)?;
            let floor = Self { version: reader.u64()?, commit: reader.u64()?, updated_at: reader.u64()? };
            reader.end().map(|()| floor)
        };
        read().map_err(|error| Halt::Undecodable { what: "the floor of a branch's cells", error })
    }
}

/// Removes the rows of a deleted cell, a bounded number at a time, the newest version last. Any other cell stays.
pub(crate) fn forget<S: ReadCells + WriteCells>(cells: &mut S, cell: &ThingId<'_>) -> Result<(), Halt> {
    let Some(row) = cells.head(cell)? else {
        return Ok(());
    };
    let head = Head::decode(&row)?;
    if head.exists() {
        return Ok(());
    }
    let upto = head.version.min(head.oldest + REMOVED_VERSIONS_MAX);
    (head.oldest..upto).try_for_each(|version| cells.delete_old(cell, version))?;
    if upto < head.version {
        cells.put_head(cell, Some(&head), &Head { oldest: upto, ..head });
        return Ok(());
    }
    let floor = cells.floor(cell)?;
    let raised = Floor {
        version: floor.version.max(head.version),
        commit: floor.commit.max(head.write.commit),
        updated_at: floor.updated_at.max(head.write.updated_at),
    };
    cells.put_floor(cell, raised);
    cells.delete_head(cell, &head);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Part of the stored format; `docs/formats/cells.md`.
    #[test]
    fn golden_floor() {
        let mut writer = Writer::new();
        let floor = Floor { version: 258, commit: 7, updated_at: 3 };
        floor.encode(&mut writer);
        let bytes = writer.finish();
        assert_eq!(bytes, [1, 2, 1, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Floor::decode(Some(&bytes)), Ok(floor));
        assert_eq!(Floor::decode(None), Ok(Floor::default()));
        assert!(Floor::decode(Some(&bytes[..24])).is_err() && Floor::decode(Some(&[2; 25])).is_err());
    }
}
