//! What an export has of records.

use super::row::Row;
use crate::keys::things::OwnedId;

/// A record, or the remains of a deleted one. Large values are inline.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordItem<'row> {
    /// Which record.
    pub record: &'row OwnedId,
    /// The record.
    pub row: Row<'row>,
}
