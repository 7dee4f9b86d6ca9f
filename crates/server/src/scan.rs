//! Scans: `GET /v1/records`, a page of the records that match, at one view.

use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Serialize, SerializeMap, Serializer};
use statehouse::records::{Filter, ScanOptions, Test};

use crate::Server;
use crate::json::{as_text, entries, from_json};
use crate::place::Place;
use crate::problem::{Answered, Problem, body};
use crate::record_json::ListedRecord;

/// Where a page of a list ended, from `?cursor=`.
pub(crate) fn cursor_of(place: &Place) -> Result<Option<Vec<u8>>, Problem> {
    let Some(cursor) = place.query("cursor") else {
        return Ok(None);
    };
    let cursor = STANDARD.decode(cursor).map_err(|_| Problem::malformed("?cursor= is not one of ours"))?;
    Ok(Some(cursor))
}

/// Where a page of a list ended, as text that a client gives back.
pub(crate) fn cursor_text(cursor: Vec<u8>) -> String {
    STANDARD.encode(cursor)
}

/// `?prefix=&group=&where=[["state","eq","pending"]]&type=task&limit=&cursor=`.
pub(crate) async fn scan(State(server): State<Server>, place: Place) -> Answered {
    let prefix = place.query("prefix").unwrap_or_default().to_owned();
    let filter = match place.query("where") {
        None => Filter::all(),
        Some(tests) => filter(tests)?,
    };
    let mut options = ScanOptions::default().limit(place.limit(100)?);
    options.record_type = place.query("type").map(str::to_owned);
    options.cursor = cursor_of(&place)?;
    let memory = server.reserve_page().await?;
    let found = server.call(move |house| place.inside(house).records().scan(&prefix, &filter, &options)).await?;
    let records: Vec<_> = found.records.iter().map(|(name, record)| ListedRecord { name, record }).collect();
    let page = Page { records, cursor: found.cursor.map(cursor_text), looked_at: found.looked_at };
    Ok(memory.hold(body(StatusCode::OK, page)))
}

/// A page, written as it is read.
struct Page<'found> {
    records: Vec<ListedRecord<'found>>,
    cursor: Option<String>,
    looked_at: usize,
}

impl Serialize for Page<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("records", &self.records)?;
        map.serialize_entry("cursor", &self.cursor)?;
        map.serialize_entry("looked_at", &self.looked_at)?;
        map.end()
    }
}

fn filter(tests: &str) -> Result<Filter, Problem> {
    let malformed = || Problem::malformed("?where= is no list of [field, test, value]");
    let mut filter = Filter::all();
    for test in entries(tests.trim(), "?where=")? {
        let test = entries(test, "a test in ?where=")?;
        let name = |place: usize| match test.get(place) {
            Some(json) => as_text(json)?.ok_or_else(malformed),
            None => Err(malformed()),
        };
        let value = || test.get(2).ok_or_else(malformed).and_then(|json| from_json(json));
        let values = || {
            let list = entries(test.get(2).ok_or_else(malformed)?, "what is tested for")?;
            list.into_iter().map(from_json).collect::<Result<Vec<_>, _>>()
        };
        filter = filter.and(
            name(0)?,
            match &*name(1)? {
                "eq" => Test::Eq(value()?),
                "ne" => Test::Ne(value()?),
                "lt" => Test::Lt(value()?),
                "lte" => Test::Lte(value()?),
                "gt" => Test::Gt(value()?),
                "gte" => Test::Gte(value()?),
                "in" => Test::In(values()?),
                "not_in" => Test::NotIn(values()?),
                "exists" => Test::Exists,
                _ => return Err(malformed()),
            },
        );
    }
    Ok(filter)
}
