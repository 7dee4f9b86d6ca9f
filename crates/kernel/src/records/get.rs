//! Reading one record.

use contract::records::Record;
use kv::View;
use session::{Halt, Stamp};

use super::fields::FieldReader;
use super::row::{Row, decode_numbers};
use crate::applied::Applied;
use crate::catalogue::Catalogue;
use crate::keys::{Keys, ThingId};

/// Records as a view has them, at the view's own time.
pub struct ViewRecords<'view> {
    /// Committed state.
    pub view: &'view dyn View,
    /// Whose keys.
    pub keys: Keys,
    /// The catalogue at the view, or a newer one.
    pub catalogue: &'view Catalogue,
    stamp: Stamp,
    pub(super) now: Stamp,
}

impl<'view> ViewRecords<'view> {
    /// Records of a view.
    pub fn new(view: &'view dyn View, keys: Keys, catalogue: &'view Catalogue) -> Result<Self, Halt> {
        let applied = view.get(&keys.applied())?;
        let stamp = applied.map(|row| Applied::decode(&row)).transpose()?.unwrap_or_default().stamp;
        Ok(Self { view, keys, catalogue, stamp, now: stamp })
    }

    /// The same, read at a time: TTLs and leases are the remaining ones at that time. The time of the view still
    /// decides which records exist, so that none reappears.
    pub fn at(self, now: Stamp) -> Self {
        Self { now, ..self }
    }

    /// The time of the view.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// The record, if it exists.
    pub fn get(&self, record: &ThingId<'_>) -> Result<Option<Record>, Halt> {
        self.get_at(record, || self.now)
    }

    /// The record, if it exists, read at a time that is computed only if something of the record expires.
    pub fn get_at(&self, record: &ThingId<'_>, now: impl FnOnce() -> Stamp) -> Result<Option<Record>, Halt> {
        let Some(bytes) = self.view.get(&self.keys.record(record))? else {
            return Ok(None);
        };
        self.record_of_row(record, &bytes, now)
    }

    /// The record of a row, if it exists.
    pub(super) fn record_of_row(
        &self,
        record: &ThingId<'_>,
        bytes: &[u8],
        now: impl FnOnce() -> Stamp,
    ) -> Result<Option<Record>, Halt> {
        if !decode_numbers(bytes)?.exists_at(self.stamp.wall_us) {
            return Ok(None);
        }
        let row = Row::decode(bytes)?;
        let declared = self.catalogue.record_type(record.space, row.numbers.record_type);
        let runs_out = row.numbers.expires_us != 0 || row.numbers.is_held();
        let stamp = if runs_out { now() } else { self.stamp };
        let fields = FieldReader { rows: self.view, keys: self.keys, stamp };
        fields.record(record, &row, declared).map(Some)
    }
}

/// A record from its row, with every value in its place, at a time.
pub fn whole_record(
    bytes: &[u8],
    record: &ThingId<'_>,
    catalogue: &Catalogue,
    keys: Keys,
    stamp: Stamp,
) -> Result<Record, Halt> {
    let row = Row::decode(bytes)?;
    let declared = catalogue.record_type(record.space, row.numbers.record_type);
    FieldReader { rows: &NoRows, keys, stamp }.record(record, &row, declared)
}

struct NoRows;

impl super::fields::ReadRow for NoRows {
    fn read_row(&self, _: &[u8]) -> Result<Option<kv::Bytes>, Halt> {
        Ok(None)
    }
}
