//! The portable contract of records, over HTTP: bytes for values.
//!
//! As in the library, a field that a record's type keeps or indexes has a kind, and its bytes are text or decimal digits;
//! all others are bytes. What a field holds decides how a scan compares it.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use contract::records::state_store::{Comparison, PortableRecord, ScanFilter, StateStore};
use contract::records::types::{CREATED_AT, TIMEOUT_AT, UPDATED_AT, WORKER};
use contract::{Error, Rejection, Value, WantedKind};
use serde_json::value::RawValue;
use serde_json::{Map, Value as JsonValue, json};

use super::client::Client;
use super::message::{Request, path_of};
use super::refusals::{NOT_FOUND, code, refusal};
use super::values::{from_text, to_text};

/// Rows of one page of a scan.
const PAGE_ROWS: usize = 100;

/// The records of a client's place.
pub struct HttpRecords {
    client: Client,
    types: OnceLock<Vec<Declared>>,
}

/// A type of the space, as far as it decides on kinds.
struct Declared {
    prefixes: Vec<String>,
    name: String,
    state_field: String,
    indexes: BTreeMap<String, String>,
}

/// A record as it is written in an answer.
struct Found {
    name: String,
    record_type: Option<String>,
    fields: BTreeMap<String, Value>,
    ttl: Option<Duration>,
}

impl HttpRecords {
    /// Records where the client is.
    pub fn new(client: Client) -> Self {
        Self { client, types: OnceLock::new() }
    }

    fn path(&self, record: &str) -> String {
        format!("/v1/records/{}", path_of(record))
    }

    fn find(&self, record: &str) -> Result<Option<Found>, Error> {
        let response = self.client.send(Request::get(self.path(record))).expect("an answer");
        match response.status {
            200 => Ok(Some(found(&response.members()))),
            404 if code(&response) == NOT_FOUND => Ok(None),
            _ => Err(refusal(&response)),
        }
    }

    fn types(&self) -> &[Declared] {
        self.types.get_or_init(|| {
            let answer = self.client.call(Request::get("/v1/types")).expect("the types").json();
            answer["types"].as_array().expect("types").iter().map(declared).collect()
        })
    }

    /// The type that a put gives a record.
    fn type_by_name(&self, record: &str) -> Option<&Declared> {
        let prefixes =
            self.types().iter().flat_map(|declared| declared.prefixes.iter().map(move |one| (one, declared)));
        let matching = prefixes.filter(|(prefix, _)| record.starts_with(prefix.as_str()));
        matching.max_by_key(|(prefix, _)| prefix.len()).map(|(_, declared)| declared)
    }

    /// The type that a record has or would get.
    fn type_of(&self, record: &str) -> Result<Option<&Declared>, Error> {
        Ok(match self.find(record)?.and_then(|found| found.record_type) {
            Some(name) => self.types().iter().find(|declared| declared.name == name),
            None => self.type_by_name(record),
        })
    }
}

fn declared(json: &JsonValue) -> Declared {
    let text = |name: &str| json[name].as_str().unwrap_or_else(|| panic!("{name} is missing in {json}")).to_owned();
    let indexes = json["indexes"].as_object().expect("indexes").iter();
    let indexes = indexes.map(|(field, kind)| (field.clone(), kind.as_str().expect("a kind").to_owned()));
    let prefixes = json["prefixes"].as_array().expect("prefixes").iter();
    let prefixes = prefixes.map(|prefix| prefix.as_str().expect("a prefix").to_owned()).collect();
    Declared { prefixes, name: text("name"), state_field: text("state_field"), indexes: indexes.collect() }
}

fn found(members: &BTreeMap<String, Box<RawValue>>) -> Found {
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(members["fields"].get()).expect("fields");
    let ttl: Option<u64> = serde_json::from_str(members["ttl_ms"].get()).expect("a TTL");
    Found {
        name: serde_json::from_str(members["name"].get()).expect("a name"),
        record_type: serde_json::from_str(members["type"].get()).expect("a type"),
        fields: fields.into_iter().map(|(name, value)| (name, from_text(value.get()))).collect(),
        ttl: ttl.map(Duration::from_millis),
    }
}

impl Found {
    fn portable(&self) -> PortableRecord {
        let fields = self.fields.iter().map(|(name, value)| (name.clone(), to_bytes(value)));
        PortableRecord { fields: fields.collect(), ttl: self.ttl }
    }

    fn matches(&self, filter: &ScanFilter) -> bool {
        let order = match self.fields.get(&filter.field) {
            None => None,
            Some(Value::Integer(integer)) => digits(&filter.value).map(|wanted| integer.cmp(&wanted)),
            Some(other) => Some(to_bytes(other).cmp(&filter.value)),
        };
        order.is_some_and(|order| match filter.op {
            Comparison::Eq => order.is_eq(),
            Comparison::Lt => order.is_lt(),
            Comparison::Gt => order.is_gt(),
        })
    }
}

fn digits(bytes: &[u8]) -> Option<i64> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

fn to_bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::Bytes(bytes) => bytes.clone(),
        Value::Text(text) => text.as_bytes().to_vec(),
        other => to_text(other).into_bytes(),
    }
}

/// Bytes as the kind of value that a field of a type holds, as JSON.
fn field_json(declared: Option<&Declared>, record: &str, field: &str, bytes: &[u8]) -> Result<JsonValue, Error> {
    let wrong = |wanted| Error::from(Rejection::WrongKind { record: record.into(), field: field.into(), wanted });
    let kind = match declared {
        None => "bytes",
        Some(declared) if field == declared.state_field || field == WORKER => "text",
        Some(_) if [CREATED_AT, UPDATED_AT, TIMEOUT_AT].contains(&field) => "time",
        Some(declared) => declared.indexes.get(field).map_or("bytes", String::as_str),
    };
    let value = match kind {
        "bytes" => Value::Bytes(bytes.to_vec()),
        "text" => Value::Text(std::str::from_utf8(bytes).map_err(|_| wrong(WantedKind::Text))?.to_owned()),
        _ => Value::Integer(digits(bytes).ok_or_else(|| wrong(WantedKind::Integer))?),
    };
    Ok(serde_json::from_str(&to_text(&value)).expect("JSON"))
}

impl StateStore for HttpRecords {
    fn get(&self, key: &str) -> Result<Option<PortableRecord>, Error> {
        Ok(self.find(key)?.map(|found| found.portable()))
    }

    fn put(&self, key: &str, fields: &BTreeMap<String, Vec<u8>>, ttl: Option<Duration>) -> Result<(), Error> {
        let declared = self.type_by_name(key);
        let fields = fields.iter().map(|(name, bytes)| Ok((name.clone(), field_json(declared, key, name, bytes)?)));
        let fields = fields.collect::<Result<Map<_, _>, Error>>()?;
        let ttl = ttl.map(|ttl| u64::try_from(ttl.as_millis()).expect("a TTL"));
        let body = json!({ "fields": fields, "ttl": ttl }).to_string();
        self.client.call(Request::put(self.path(key)).body(body)).map(drop)
    }

    fn delete(&self, key: &str) -> Result<(), Error> {
        let response = self.client.send(Request::delete(self.path(key))).expect("an answer");
        let done = response.is_success() || (response.status == 404 && code(&response) == NOT_FOUND);
        if done { Ok(()) } else { Err(refusal(&response)) }
    }

    fn get_field(&self, key: &str, field: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.find(key)?.and_then(|found| found.fields.get(field).map(to_bytes)))
    }

    fn set_fields(&self, key: &str, fields: &BTreeMap<String, Option<Vec<u8>>>) -> Result<(), Error> {
        let declared = self.type_of(key)?;
        let (mut set, mut unset) = (Map::new(), Vec::new());
        for (name, bytes) in fields {
            match bytes {
                Some(bytes) => drop(set.insert(name.clone(), field_json(declared, key, name, bytes)?)),
                None => unset.push(name.clone()),
            }
        }
        let body = json!({ "set": set, "unset": unset }).to_string();
        self.client.call(Request::patch(self.path(key)).body(body)).map(drop)
    }

    fn compare_and_swap(&self, key: &str, field: &str, expected: Option<&[u8]>, new: &[u8]) -> Result<bool, Error> {
        let declared = self.type_of(key)?;
        let value = |bytes: &[u8]| field_json(declared, key, field, bytes);
        let (expected, new) = (expected.map(value).transpose()?, value(new)?);
        let body = json!({ "set": { field: new }, "expect": { field: expected } }).to_string();
        match self.client.call(Request::patch(self.path(key)).body(body)) {
            Ok(_) => Ok(true),
            Err(Error::Rejected(Rejection::FieldConflict { .. })) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn scan(&self, prefix: &str, filter: Option<&ScanFilter>) -> Result<Vec<(String, PortableRecord)>, Error> {
        let max = filter.and_then(|filter| filter.max_results).map_or(usize::MAX, |max| max as usize);
        let mut matching = Vec::new();
        let mut cursor: Option<String> = None;
        while matching.len() < max {
            let mut request = Request::get("/v1/records").query("prefix", prefix).query("limit", PAGE_ROWS);
            if let Some(cursor) = cursor {
                request = request.query("cursor", cursor);
            }
            let members = self.client.call(request)?.members();
            let page: Vec<BTreeMap<String, Box<RawValue>>> =
                serde_json::from_str(members["records"].get()).expect("records");
            // The portable contract knows no groups: what is in one has no name there.
            let page = page.iter().filter(|record| self.client.is_within("group") || !record.contains_key("group"));
            let page = page.map(found).filter(|found| filter.is_none_or(|filter| found.matches(filter)));
            matching.extend(page.map(|found| (found.name.clone(), found.portable())));
            cursor = serde_json::from_str(members["cursor"].get()).expect("a cursor");
            if cursor.is_none() {
                break;
            }
        }
        matching.truncate(max);
        Ok(matching)
    }

    fn ping(&self) -> bool {
        self.client.send_plain(&Request::get("/readyz")).is_ok_and(|response| response.is_success())
    }
}
