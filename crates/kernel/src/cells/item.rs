//! What an export has of cells.

use super::row::Old;
use crate::keys::things::OwnedId;

/// A part of a cell, or of what is known of those that were forgotten.
#[derive(Clone, Debug, PartialEq)]
pub enum CellItem<'row> {
    /// The version above which new cells of a branch start, in a bucket.
    Floor {
        /// The bucket.
        bucket: u16,
        /// The space.
        space: u32,
        /// The branch.
        branch: u32,
        /// The version.
        version: u64,
        /// The last command that changed one of those that were forgotten; 0 if that is not known.
        commit: u64,
        /// Its time.
        updated_at: u64,
    },
    /// An older version of a cell. They come in order, before the newest.
    Version {
        /// Which cell.
        cell: &'row OwnedId,
        /// Which version.
        version: u64,
        /// The write.
        write: Old<'row>,
    },
    /// The newest version of a cell.
    Newest {
        /// Which cell.
        cell: &'row OwnedId,
        /// Which version.
        version: u64,
        /// The write.
        write: Old<'row>,
    },
}
