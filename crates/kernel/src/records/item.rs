//! What an export has of records.

use super::row::Row;
use crate::keys::things::OwnedId;

/// A record, or what is known of those that were forgotten.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordItem<'row> {
    /// The counters from which the records of a bucket without rows continue.
    Floor {
        /// The bucket.
        bucket: u16,
        /// The highest version of such a record.
        version: u64,
        /// The highest attempt.
        attempt: u64,
        /// The last command that changed one of them; 0 if that is not known.
        commit: u64,
    },
    /// A record, or the remains of a deleted one. Large values are inline.
    Record {
        /// Which record.
        record: &'row OwnedId,
        /// The record.
        row: Row<'row>,
    },
}
