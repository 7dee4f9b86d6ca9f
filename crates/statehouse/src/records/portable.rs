//! Records by the portable contract: bytes for values.
//!
//! A field that a record's type maintains or indexes has a kind; its bytes are text or decimal digits. All others are
//! bytes.

use std::collections::BTreeMap;
use std::time::Duration;

use contract::limits::PAGE_ROWS_MAX;
use contract::records::filter::Filter;
use contract::records::state_store::{PortableRecord, PortableScan, ScanFilter, StateStore, by_pages};
use contract::records::types::{CREATED_AT, IndexKind, RecordType, TIMEOUT_AT, UPDATED_AT, WORKER};
use contract::records::{FieldSwapped, Put, Record, Ttl};
use contract::{Error, RecordRejection, Rejection, Value, WantedKind};

use super::{Records, ScanOptions};

/// Records through the portable contract; created by [`Records::portable`].
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// use statehouse::records::StateStore;
/// let store = house.records().portable();
/// let job = "gbe.state.tasks.email-send.job_123";
/// store.put(job, &[("state".to_owned(), b"pending".to_vec())].into(), None)?;
/// assert!(store.compare_and_swap(job, "state", Some(b"pending"), b"claimed")?);
/// assert!(!store.compare_and_swap(job, "state", Some(b"pending"), b"claimed")?, "only one worker wins");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct PortableRecords {
    records: Records,
}

impl Records {
    /// The same records by the portable contract.
    pub fn portable(&self) -> PortableRecords {
        PortableRecords { records: self.clone() }
    }

    /// The type that a put gives a record.
    fn type_by_name(&self, record: &str) -> Result<Option<RecordType>, Error> {
        let (catalogue, ids) = self.prepare(record)?;
        let declared = catalogue.space(ids.space)?.types.of_record(record);
        Ok(declared.map(|declared| declared.definition.clone()))
    }

    /// The type that a record has or would get.
    fn type_of(&self, record: &str) -> Result<Option<RecordType>, Error> {
        let found =
            self.read(record, |records, id, _| Ok(records.type_of(id)?.map(|declared| declared.definition.clone())))?;
        found.map_or_else(|| self.type_by_name(record), |found| Ok(Some(found)))
    }
}

/// The kind of a field in a type; none means bytes.
fn kind_of(record_type: Option<&RecordType>, field: &str) -> Option<IndexKind> {
    let record_type = record_type?;
    if field == record_type.state_field || field == WORKER {
        return Some(IndexKind::Text);
    }
    if [CREATED_AT, UPDATED_AT, TIMEOUT_AT].contains(&field) {
        return Some(IndexKind::Time);
    }
    record_type.indexes.iter().find(|(name, _)| name == field).map(|(_, kind)| *kind)
}

fn to_value(record_type: Option<&RecordType>, record: &str, field: &str, bytes: &[u8]) -> Result<Value, Error> {
    let wrong = |wanted| {
        let (record, field) = (record.to_owned(), field.to_owned());
        Error::from(Rejection::Record(RecordRejection::WrongKind { record, field, wanted }))
    };
    let text = || std::str::from_utf8(bytes).map_err(|_| wrong(WantedKind::Text));
    Ok(match kind_of(record_type, field) {
        None | Some(IndexKind::Bytes) => Value::Bytes(bytes.to_vec()),
        Some(IndexKind::Text) => Value::Text(text()?.to_owned()),
        Some(IndexKind::Unsigned | IndexKind::Signed | IndexKind::Time) => {
            Value::Integer(digits(bytes).ok_or_else(|| wrong(WantedKind::Integer))?)
        }
    })
}

fn to_bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::Text(text) => text.as_bytes().to_vec(),
        Value::Json(json) => json.as_str().as_bytes().to_vec(),
        Value::Bytes(bytes) => bytes.clone(),
        Value::Integer(integer) => integer.to_string().into_bytes(),
        Value::Boolean(boolean) => boolean.to_string().into_bytes(),
        _ => Vec::new(),
    }
}

fn to_portable(record: &Record) -> PortableRecord {
    let fields = record.fields.iter().map(|(name, field)| (name.clone(), to_bytes(&field.value)));
    PortableRecord { fields: fields.collect(), ttl: record.ttl }
}

/// Whether a record matches. The content of its field decides how it is compared, because a prefix may span types.
fn matches(filter: &ScanFilter, record: &Record) -> bool {
    let order = match record.value(&filter.field) {
        None => None,
        Some(Value::Integer(integer)) => digits(&filter.value).map(|wanted| integer.cmp(&wanted)),
        Some(other) => Some(to_bytes(other).cmp(&filter.value)),
    };
    order.is_some_and(|order| filter.op.holds(order))
}

fn digits(bytes: &[u8]) -> Option<i64> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

impl StateStore for PortableRecords {
    fn get(&self, key: &str) -> Result<Option<PortableRecord>, Error> {
        Ok(self.records.get(key)?.as_ref().map(to_portable))
    }

    fn put(&self, key: &str, fields: &BTreeMap<String, Vec<u8>>, ttl: Option<Duration>) -> Result<(), Error> {
        let record_type = self.records.type_by_name(key)?;
        let fields = fields.iter();
        let fields = fields.map(|(field, bytes)| Ok((field, to_value(record_type.as_ref(), key, field, bytes)?)));
        let fields = fields.collect::<Result<Vec<_>, Error>>()?;
        let put = Put { ttl: ttl.map_or(Ttl::Persist, Ttl::After), record_type: None };
        self.records.put(key, fields, put)?;
        Ok(())
    }

    fn delete(&self, key: &str) -> Result<(), Error> {
        self.records.delete(key)?;
        Ok(())
    }

    fn get_field(&self, key: &str, field: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.records.get_field(key, field)?.as_ref().map(to_bytes))
    }

    fn set_fields(&self, key: &str, fields: &BTreeMap<String, Option<Vec<u8>>>) -> Result<(), Error> {
        let record_type = self.records.type_of(key)?;
        let fields = fields.iter().map(|(field, bytes)| {
            let bytes = bytes.as_deref();
            let value = bytes.map(|bytes| to_value(record_type.as_ref(), key, field, bytes)).transpose()?;
            Ok((field, value))
        });
        self.records.set_fields(key, fields.collect::<Result<Vec<_>, Error>>()?)?;
        Ok(())
    }

    fn compare_and_swap(&self, key: &str, field: &str, expected: Option<&[u8]>, new: &[u8]) -> Result<bool, Error> {
        let record_type = self.records.type_of(key)?;
        let value = |bytes: &[u8]| to_value(record_type.as_ref(), key, field, bytes);
        let (expected, new) = (expected.map(value).transpose()?, Some(value(new)?));
        let swapped = self.records.compare_and_swap(key, field, expected, new)?;
        Ok(matches!(swapped, FieldSwapped::Written(_)))
    }

    fn scan(&self, prefix: &str, filter: Option<&ScanFilter>) -> PortableScan<'_> {
        let max = filter.and_then(|filter| filter.max_results).map_or(usize::MAX, |max| max as usize);
        let (prefix, filter) = (prefix.to_owned(), filter.cloned());
        let matches = move |record: &Record| filter.as_ref().is_none_or(|filter| matches(filter, record));
        let found = by_pages(move |cursor| {
            let options = ScanOptions::default().limit(PAGE_ROWS_MAX).after(cursor);
            let page = self.records.scan_exact(&prefix, &Filter::all(), &options)?;
            let matching = page.records.iter().filter(|(_, record)| matches(record));
            Ok((matching.map(|(thing, record)| (thing.name.clone(), to_portable(record))).collect(), page.cursor))
        });
        Box::new(found.take(max))
    }

    fn ping(&self) -> bool {
        self.records.ping()
    }
}
