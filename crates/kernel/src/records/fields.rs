//! The values of a record's fields, including those that the store maintains for records of a type.
//!
//! A record of a type shows its state under the type's state field, and `created_at`, `updated_at`, `timeout_at` (ms
//! since 1970 in UTC) and `worker`. They are not stored as fields, so maintaining them costs nothing; a write to
//! `created_at` or `updated_at` is ignored, one to `timeout_at` moves the lease.

use std::time::Duration;

use contract::records::types::{CREATED_AT, TIMEOUT_AT, UPDATED_AT, WORKER};
use contract::records::{Field, Holder, Record};
use contract::{RecordRejection, Rejection, Value, WantedKind};
use kv::{Bytes, Staging, View, Writer};
use session::{Halt, Stamp};

use super::row::{Content, FieldRow, Row, read_value};
use crate::catalogue::Declared;
use crate::context::Applying;
use crate::keys::{Keys, ThingId};

const US_PER_MS: u64 = 1_000;

/// Where rows are read from: committed state, or that with the writes of the entry at hand.
pub(crate) trait ReadRow {
    fn read_row(&self, key: &[u8]) -> Result<Option<Bytes>, Halt>;
}

impl ReadRow for Staging {
    fn read_row(&self, key: &[u8]) -> Result<Option<Bytes>, Halt> {
        Ok(self.get(key)?)
    }
}

impl ReadRow for dyn View + '_ {
    fn read_row(&self, key: &[u8]) -> Result<Option<Bytes>, Halt> {
        Ok(self.get(key)?)
    }
}

/// Reads the value of a field.
pub(crate) struct FieldReader<'read, R: ReadRow + ?Sized> {
    pub(crate) rows: &'read R,
    pub(crate) keys: Keys,
    pub(crate) stamp: Stamp,
}

impl<R: ReadRow + ?Sized> FieldReader<'_, R> {
    /// The value of a field of a record.
    pub(crate) fn value(
        &self,
        record: &ThingId<'_>,
        row: &Row<'_>,
        declared: Option<&Declared>,
        field: &str,
    ) -> Result<Option<Value>, Halt> {
        if let Some(declared) = declared
            && let Some(kept) = self.kept(row, declared, field)
        {
            return Ok(kept);
        }
        row.field(field).map(|found| self.content(record, found)).transpose()
    }

    /// The maintained value under a name; none for an ordinary field.
    fn kept(&self, row: &Row<'_>, declared: &Declared, field: &str) -> Option<Option<Value>> {
        let ms = |us: u64| Value::Integer(i64::try_from(us / US_PER_MS).unwrap_or(i64::MAX));
        if field == declared.definition.state_field {
            return Some(Some(declared.state_name(row.numbers.state).into()));
        }
        match field {
            CREATED_AT => Some(Some(ms(row.numbers.created_us))),
            UPDATED_AT => Some(Some(ms(row.numbers.updated_us))),
            TIMEOUT_AT => Some(row.numbers.is_held().then(|| ms(self.lease_wall_us(row)))),
            WORKER => Some(row.worker.map(Value::from)),
            _ => None,
        }
    }

    /// When the lease ends, if cluster time runs like wall time.
    fn lease_wall_us(&self, row: &Row<'_>) -> u64 {
        let left = i128::from(row.numbers.lease_us) - i128::from(self.stamp.cluster_us);
        let ends = (i128::from(self.stamp.wall_us) + left).clamp(0, i128::from(u64::MAX));
        u64::try_from(ends).unwrap_or(u64::MAX)
    }

    fn content(&self, record: &ThingId<'_>, field: &FieldRow<'_>) -> Result<Value, Halt> {
        match field.content {
            Content::Inline(value) => Ok(value.to_value()),
            Content::Apart { .. } => {
                let row = self.rows.read_row(&self.keys.record_field(record, field.name))?;
                let row = row.ok_or_else(|| {
                    Halt::Inconsistent(format!("field {:?} of record {:?} has lost its row", field.name, record.name))
                })?;
                let value = read_value(&row).map_err(|error| Halt::Undecodable { what: "a large field", error })?;
                Ok(value.to_value())
            }
        }
    }

    /// Appends the record's row with every value in its place.
    pub(crate) fn encode_whole(&self, record: &ThingId<'_>, row: &Row<'_>, writer: &mut Writer) -> Result<(), Halt> {
        let apart = |field: &&FieldRow<'_>| matches!(field.content, Content::Apart { .. });
        let large = row.fields.iter().filter(apart);
        let large = large.map(|field| Ok((field.name, self.content(record, field)?, field.version)));
        let large = large.collect::<Result<Vec<_>, Halt>>()?;
        if large.is_empty() {
            row.encode(writer);
            return Ok(());
        }
        let mut whole = row.clone();
        for (name, value, version) in &large {
            whole.set(name, Some(value.into()), *version);
        }
        whole.encode(writer);
        Ok(())
    }

    /// The whole record.
    pub(crate) fn record(
        &self,
        record: &ThingId<'_>,
        row: &Row<'_>,
        declared: Option<&Declared>,
    ) -> Result<Record, Halt> {
        let numbers = row.numbers;
        let mut whole = Record::empty(numbers.version, numbers.commit, numbers.created_us, numbers.updated_us);
        for field in &row.fields {
            let value = self.content(record, field)?;
            whole.fields.insert(field.name.to_owned(), Field { value, version: field.version });
        }
        whole.attempt = numbers.attempt;
        whole.failures = numbers.failures.into();
        let pausing = numbers.pauses_at(self.stamp.wall_us);
        whole.ready_in = pausing.then(|| Duration::from_micros(numbers.ready_us - self.stamp.wall_us));
        if numbers.expires_us != 0 {
            whole.ttl = Some(Duration::from_micros(numbers.expires_us.saturating_sub(self.stamp.wall_us)));
        }
        let Some(declared) = declared else {
            return Ok(whole);
        };
        whole.record_type = Some(declared.definition.name.clone());
        if numbers.is_held() {
            let lease_left = Duration::from_micros(numbers.lease_us.saturating_sub(self.stamp.cluster_us));
            let session = Some(numbers.holder_session).filter(|session| *session != 0);
            whole.holder = Some(Holder { worker: row.worker.map(str::to_owned), session, lease_left });
        }
        for kept in [&*declared.definition.state_field, CREATED_AT, UPDATED_AT, TIMEOUT_AT, WORKER] {
            if let Some(Some(value)) = self.kept(row, declared, kept) {
                whole.fields.insert(kept.to_owned(), Field { value, version: numbers.version });
            }
        }
        Ok(whole)
    }
}

impl Applying<'_> {
    /// Reads fields including the entry's writes so far.
    pub(crate) fn fields(&self) -> FieldReader<'_, Staging> {
        FieldReader { rows: self.state, keys: self.keys, stamp: self.call.stamp }
    }
}

/// A rejection: the field does not hold the required kind.
pub(crate) fn wrong_kind(record: &ThingId<'_>, field: &str, wanted: WantedKind) -> Rejection {
    Rejection::Record(RecordRejection::WrongKind { record: record.name.to_owned(), field: field.to_owned(), wanted })
}
