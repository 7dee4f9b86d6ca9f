//! What an export has of keyed state.

use contract::keyed::{InputPosition, LogicalTime};

use super::entry::Entry;
use super::head::MapHead;
use crate::keys::things::OwnedId;

/// A part of a map.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyedItem<'row> {
    /// A map. Its keys and its input positions follow.
    Head {
        /// Which map.
        map: &'row OwnedId,
        /// Its head.
        head: Box<MapHead>,
    },
    /// A key, with its value or the version of its deletion.
    Key {
        /// Of which map.
        map: &'row OwnedId,
        /// The key.
        key: &'row [u8],
        /// Its entry.
        entry: Entry<'row>,
    },
    /// How far an input was read.
    Position {
        /// Of which map.
        map: &'row OwnedId,
        /// The input.
        input: &'row str,
        /// The position.
        position: InputPosition,
    },
    /// An update that waits for the seal.
    Waiting {
        /// Of which map.
        map: &'row OwnedId,
        /// Its version.
        version: LogicalTime,
        /// The key.
        key: &'row [u8],
        /// The row.
        row: &'row [u8],
    },
    /// The answer to the last numbered commit.
    Answer {
        /// Of which map.
        map: &'row OwnedId,
        /// The row.
        row: &'row [u8],
    },
}
