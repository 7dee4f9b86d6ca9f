//! The portable record contract over the typed client: values are bytes.
//!
//! As in the library, a field that a record's type keeps or indexes has a kind, and its bytes are text or decimal digits;
//! all others are bytes. The content of a field decides how a scan compares it.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use client::Client;
use contract::records::Ttl;
use contract::records::state_store::{PortableRecord, PortableScan, ScanFilter, StateStore, by_pages};
use contract::records::types::{CREATED_AT, TIMEOUT_AT, UPDATED_AT, WORKER};
use contract::{Error, RecordRejection, Rejection, Value, WantedKind};
use wire::records::types::{IndexKindText, ShownType};
use wire::records::{PatchRecord, PutRecord, Record, ScanRecords, TtlText};
use wire::values::{Members, UserJson};

use super::client::block_on;
use super::refusals::error;

/// Rows of one page of a scan.
const PAGE_ROWS: u64 = 100;

/// The records of a client's place.
pub struct HttpRecords {
    client: Client,
    types: OnceLock<Vec<ShownType>>,
}

impl HttpRecords {
    /// Records in the client's place, without a group: the portable contract has no groups.
    pub fn new(client: Client) -> Self {
        Self { client, types: OnceLock::new() }
    }

    fn find(&self, record: &str) -> Result<Option<Record>, Error> {
        block_on(self.client.records().get(record)).map_err(error)
    }

    fn patch(&self, record: &str, patch: &PatchRecord) -> Result<(), Error> {
        block_on(self.client.records().patch(record, patch, None)).map(drop).map_err(error)
    }

    fn types(&self) -> &[ShownType] {
        self.types.get_or_init(|| block_on(self.client.catalogue().types()).expect("the types").types)
    }

    fn type_by_name(&self, record: &str) -> Option<&ShownType> {
        let prefixes = |declared: &'_ ShownType| {
            let matching = declared.prefixes.iter().filter(|prefix| record.starts_with(prefix.as_str()));
            matching.map(String::len).max()
        };
        let matching = self.types().iter().filter_map(|declared| Some((prefixes(declared)?, declared)));
        matching.max_by_key(|(length, _)| *length).map(|(_, declared)| declared)
    }

    /// The type that a record has or would get.
    fn type_of(&self, record: &str) -> Result<Option<&ShownType>, Error> {
        Ok(match self.find(record)?.and_then(|found| found.record_type) {
            Some(name) => self.types().iter().find(|declared| declared.name == name),
            None => self.type_by_name(record),
        })
    }
}

fn portable(record: Record) -> PortableRecord {
    let fields = record.fields.0.into_iter().map(|(name, value)| (name, to_bytes(&value.0)));
    PortableRecord { fields: fields.collect(), ttl: record.ttl_ms.map(Duration::from_millis) }
}

fn matches(record: &Record, filter: &ScanFilter) -> bool {
    let order = match record.fields.get(&filter.field).map(|value| &value.0) {
        None => None,
        Some(Value::Integer(integer)) => digits(&filter.value).map(|wanted| integer.cmp(&wanted)),
        Some(other) => Some(to_bytes(other).cmp(&filter.value)),
    };
    order.is_some_and(|order| filter.op.holds(order))
}

fn digits(bytes: &[u8]) -> Option<i64> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

fn to_bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::Bytes(bytes) => bytes.clone(),
        Value::Text(text) => text.as_bytes().to_vec(),
        other => other.to_json_text().into_bytes(),
    }
}

/// Bytes as the kind of value that a field of a type holds.
fn field_value(declared: Option<&ShownType>, record: &str, field: &str, bytes: &[u8]) -> Result<UserJson, Error> {
    let wrong = |wanted| {
        Error::from(Rejection::Record(RecordRejection::WrongKind {
            record: record.into(),
            field: field.into(),
            wanted,
        }))
    };
    let kind = match declared {
        None => IndexKindText::Bytes,
        Some(declared) if field == declared.state_field || field == WORKER => IndexKindText::Text,
        Some(_) if [CREATED_AT, UPDATED_AT, TIMEOUT_AT].contains(&field) => IndexKindText::Time,
        Some(declared) => declared.indexes.get(field).copied().unwrap_or(IndexKindText::Bytes),
    };
    Ok(UserJson(match kind {
        IndexKindText::Bytes => Value::Bytes(bytes.to_vec()),
        IndexKindText::Text => Value::Text(std::str::from_utf8(bytes).map_err(|_| wrong(WantedKind::Text))?.to_owned()),
        _ => Value::Integer(digits(bytes).ok_or_else(|| wrong(WantedKind::Integer))?),
    }))
}

impl StateStore for HttpRecords {
    fn get(&self, key: &str) -> Result<Option<PortableRecord>, Error> {
        Ok(self.find(key)?.map(portable))
    }

    fn put(&self, key: &str, fields: &BTreeMap<String, Vec<u8>>, ttl: Option<Duration>) -> Result<(), Error> {
        let declared = self.type_by_name(key);
        let fields = fields.iter().map(|(name, bytes)| Ok((name.clone(), field_value(declared, key, name, bytes)?)));
        let fields = fields.collect::<Result<Members<_>, Error>>()?;
        let put = PutRecord { ttl: ttl.map(|ttl| TtlText(Ttl::After(ttl))), ..PutRecord::of(fields) };
        block_on(self.client.records().put(key, &put, None)).map(drop).map_err(error)
    }

    fn delete(&self, key: &str) -> Result<(), Error> {
        block_on(self.client.records().delete(key, None)).map(drop).map_err(error)
    }

    fn get_field(&self, key: &str, field: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.find(key)?.and_then(|found| found.fields.get(field).map(|value| to_bytes(&value.0))))
    }

    fn set_fields(&self, key: &str, fields: &BTreeMap<String, Option<Vec<u8>>>) -> Result<(), Error> {
        let declared = self.type_of(key)?;
        let (mut set, mut unset) = (Vec::new(), Vec::new());
        for (name, bytes) in fields {
            match bytes {
                Some(bytes) => set.push((name.clone(), field_value(declared, key, name, bytes)?)),
                None => unset.push(name.clone()),
            }
        }
        self.patch(key, &PatchRecord { set: Some(Members(set)), unset: Some(unset), ..PatchRecord::default() })
    }

    fn compare_and_swap(&self, key: &str, field: &str, expected: Option<&[u8]>, new: &[u8]) -> Result<bool, Error> {
        let declared = self.type_of(key)?;
        let value = |bytes: &[u8]| field_value(declared, key, field, bytes);
        let expected = expected.map(value).transpose()?.unwrap_or(UserJson(Value::Null));
        let one = |value| Some(Members(vec![(field.to_owned(), value)]));
        let patch = PatchRecord { set: one(value(new)?), expect: one(expected), ..PatchRecord::default() };
        match self.patch(key, &patch) {
            Ok(()) => Ok(true),
            Err(Error::Rejected(Rejection::Record(RecordRejection::FieldConflict { .. }))) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn scan(&self, prefix: &str, filter: Option<&ScanFilter>) -> PortableScan<'_> {
        let max = filter.and_then(|filter| filter.max_results).map_or(usize::MAX, |max| max as usize);
        let (prefix, filter) = (prefix.to_owned(), filter.cloned());
        let matching = by_pages(move |cursor| {
            let (prefix, limit) = (Some(prefix.clone()), Some(PAGE_ROWS));
            let query = ScanRecords { prefix, limit, cursor, ..ScanRecords::default() };
            let page = block_on(self.client.records().scan(&query)).map_err(error)?;
            // Records in groups have no name in the portable contract.
            let records = page.records.into_iter().filter(|record| record.group.is_none());
            let records = records.filter(|record| filter.as_ref().is_none_or(|filter| matches(record, filter)));
            Ok((records.map(|record| (record.name.clone(), portable(record))).collect(), page.cursor))
        });
        Box::new(matching.take(max))
    }

    fn ping(&self) -> bool {
        block_on(self.client.is_ready()).is_ok_and(|ready| ready)
    }
}
