//! Reading one record.

use contract::Value;
use contract::records::Record;
use kv::{Bytes, View};
use session::{Halt, Stamp};

use super::fields::FieldReader;
use super::row::{Row, decode_numbers};
use crate::applied::Applied;
use crate::catalogue::{Catalogue, Declared};
use crate::keys::{Keys, ThingId};
use crate::place::BucketRange;

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

    /// The same, read at a time that also decides which records exist: for a draft, whose operations are done at that time.
    pub fn existing_at(self, now: Stamp) -> Self {
        Self { stamp: now, now, ..self }
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
        let bytes = self.row(record)?;
        self.found(record, bytes.as_deref(), now)?.map(|found| found.whole()).transpose()
    }

    /// The value of one field, if the record exists and has it. The others are not read.
    pub fn field(&self, record: &ThingId<'_>, field: &str, now: impl FnOnce() -> Stamp) -> Result<Option<Value>, Halt> {
        let bytes = self.row(record)?;
        self.found(record, bytes.as_deref(), now)?.map_or(Ok(None), |found| found.value(field))
    }

    /// The record with one field, or with none if it lacks it; if it exists. The others are not read.
    pub fn get_only(
        &self,
        record: &ThingId<'_>,
        field: &str,
        now: impl FnOnce() -> Stamp,
    ) -> Result<Option<Record>, Halt> {
        let bytes = self.row(record)?;
        self.found(record, bytes.as_deref(), now)?.map(|found| found.only(field)).transpose()
    }

    /// The type of a record, if it exists and has one.
    pub fn type_of(&self, record: &ThingId<'_>) -> Result<Option<&'view Declared>, Halt> {
        let numbers = self.row(record)?.map(|bytes| decode_numbers(&bytes)).transpose()?;
        let existing = numbers.filter(|numbers| numbers.exists_at(self.stamp.wall_us));
        Ok(existing.and_then(|numbers| self.catalogue.record_type(record.space, numbers.record_type)))
    }

    pub(super) fn row(&self, record: &ThingId<'_>) -> Result<Option<Bytes>, Halt> {
        Ok(self.view.get(&self.keys.record(record))?)
    }

    /// What a row says, if there is one and its record exists.
    pub(super) fn found<'read>(
        &'read self,
        record: &'read ThingId<'read>,
        bytes: Option<&'read [u8]>,
        now: impl FnOnce() -> Stamp,
    ) -> Result<Option<Found<'read>>, Halt> {
        let Some(bytes) = bytes else { return Ok(None) };
        if !decode_numbers(bytes)?.exists_at(self.stamp.wall_us) {
            return Ok(None);
        }
        let row = Row::decode(bytes)?;
        let declared = self.catalogue.record_type(record.space, row.numbers.record_type);
        let runs_out = row.numbers.expires_us != 0 || row.numbers.is_held();
        let stamp = if runs_out { now() } else { self.stamp };
        let fields = FieldReader { rows: self.view, keys: self.keys, stamp };
        Ok(Some(Found { record, row, declared, fields }))
    }
}

/// A record that exists, of which only the row has been read: large fields are apart.
pub(super) struct Found<'read> {
    record: &'read ThingId<'read>,
    row: Row<'read>,
    declared: Option<&'read Declared>,
    fields: FieldReader<'read, dyn View + 'read>,
}

impl Found<'_> {
    pub(super) fn is_of_type(&self, name: &str) -> bool {
        self.declared.is_some_and(|declared| declared.definition.name == name)
    }

    pub(super) fn value(&self, field: &str) -> Result<Option<Value>, Halt> {
        self.fields.value(self.record, &self.row, self.declared, field)
    }

    fn only(mut self, field: &str) -> Result<Record, Halt> {
        self.row.fields.retain(|held| held.name == field);
        let mut record = self.whole()?;
        // Those that the store maintains are always there.
        record.fields.retain(|held, _| held == field);
        Ok(record)
    }

    pub(super) fn whole(&self) -> Result<Record, Halt> {
        self.fields.record(self.record, &self.row, self.declared)
    }
}

/// A record from its row, with every value in its place, at a time.
pub fn whole_record(bytes: &[u8], record: &ThingId<'_>, catalogue: &Catalogue, stamp: Stamp) -> Result<Record, Halt> {
    // No row is read, so it does not matter whose they would be.
    let keys = Keys::new(0, BucketRange::ALL);
    let row = Row::decode(bytes)?;
    let declared = catalogue.record_type(record.space, row.numbers.record_type);
    FieldReader { rows: &NoRows, keys, stamp }.record(record, &row, declared)
}

struct NoRows;

impl super::fields::ReadRow for NoRows {
    fn read_row(&self, _: &[u8]) -> Result<Option<Bytes>, Halt> {
        Ok(None)
    }
}
