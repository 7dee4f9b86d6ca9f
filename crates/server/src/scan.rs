//! Scans: `GET /v1/records`, a page of the records that match, at one view.

use axum::extract::State;
use contract::Value;
use serde_json::{Value as JsonValue, json};
use statehouse::records::{Filter, ScanOptions, Test};

use crate::Server;
use crate::json::{from_json, to_json};
use crate::place::Place;
use crate::problem::{Answered, Problem, ok};
use crate::record_json::ListedRecord;

/// Where a page of a list ended, from `?cursor=`.
pub(crate) fn cursor_of(place: &Place) -> Result<Option<Vec<u8>>, Problem> {
    let Some(cursor) = place.query("cursor") else {
        return Ok(None);
    };
    match from_json(&json!({ "$b64": cursor })) {
        Ok(Value::Bytes(cursor)) => Ok(Some(cursor)),
        _ => Err(Problem::malformed("?cursor= is not one of ours")),
    }
}

/// Where a page of a list ended, as text that a client gives back.
pub(crate) fn cursor_text(cursor: Vec<u8>) -> JsonValue {
    to_json(&Value::Bytes(cursor))["$b64"].clone()
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
    let found = server.call(move |house| place.inside(house).records().scan(&prefix, &filter, &options)).await?;
    let records: Vec<_> = found.records.iter().map(|(name, record)| ListedRecord { name, record }).collect();
    let cursor = found.cursor.map(cursor_text);
    ok(json!({ "records": records, "cursor": cursor, "looked_at": found.looked_at }))
}

fn filter(tests: &str) -> Result<Filter, Problem> {
    let malformed = || Problem::malformed("?where= is no list of [field, test, value]");
    let tests: Vec<Vec<JsonValue>> = serde_json::from_str(tests).map_err(|_| malformed())?;
    let mut filter = Filter::all();
    for test in tests {
        let (field, kind) = match &test[..] {
            [JsonValue::String(field), JsonValue::String(kind), ..] => (field.clone(), kind.as_str()),
            _ => return Err(malformed()),
        };
        let value = || test.get(2).ok_or_else(malformed).and_then(from_json);
        let values = || {
            let list = test.get(2).and_then(JsonValue::as_array).ok_or_else(malformed)?;
            list.iter().map(from_json).collect::<Result<Vec<_>, _>>()
        };
        filter = filter.and(
            field,
            match kind {
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
