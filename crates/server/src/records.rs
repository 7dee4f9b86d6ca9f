//! Records: `GET PUT PATCH DELETE /v1/records/{name}`, scans, and what an attempt does: `POST .../step`, `extend`,
//! `release`, `complete`, `fail`.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{any, get};
use contract::{Error, Value, names};
use serde_json::{Map, Value as JsonValue, json};
use statehouse::Records;
use statehouse::records::{Claimed, Filter, Put, Record, Retry, ScanOptions, Test, Ttl};

use crate::Server;
use crate::cells::with_etag;
use crate::json::{duration, fields, from_json, number, parse_object, text, to_json};
use crate::place::Place;
use crate::problem::{Answered, Problem, body, no_name, ok};

pub(crate) fn routes() -> Router<Server> {
    let one = get(read).put(put).patch(patch).delete(delete).post(act);
    Router::new()
        .route("/v1/records", get(scan))
        .route("/v1/records/", any(|| no_name(names::check_record)))
        .route("/v1/records/{*name}", one)
}

/// A record as JSON.
pub(crate) fn record_json(name: &str, record: &Record) -> Map<String, JsonValue> {
    let values: Map<_, _> = record.fields.iter().map(|(name, field)| (name.clone(), to_json(&field.value))).collect();
    let versions: Map<_, _> = record.fields.iter().map(|(name, field)| (name.clone(), field.version.into())).collect();
    let mut json = Map::new();
    json.insert("name".into(), name.into());
    json.insert("fields".into(), values.into());
    json.insert("field_versions".into(), versions.into());
    json.insert("version".into(), record.version.into());
    json.insert("attempt".into(), record.attempt.into());
    json.insert("type".into(), record.record_type.clone().into());
    json.insert("ttl_ms".into(), record.ttl.map(|ttl| millis(ttl).into()).unwrap_or(JsonValue::Null));
    let holder = record.holder.as_ref().map(
        |holder| json!({ "worker": holder.worker, "session": holder.session, "lease_ms": millis(holder.lease_left) }),
    );
    json.insert("holder".into(), holder.unwrap_or(JsonValue::Null));
    json.insert("failures".into(), record.failures.into());
    json.insert(
        "ready_in_ms".into(),
        record.ready_in.map(|ready_in| millis(ready_in).into()).unwrap_or(JsonValue::Null),
    );
    json
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

async fn read(State(server): State<Server>, Path(name): Path<String>, place: Place) -> Answered {
    let asked = name.clone();
    match server.call(move |house| place.records(house).get(&asked)).await? {
        None => Err(Problem::not_found("record", &name)),
        Some(record) => Ok(with_etag(body(StatusCode::OK, record_json(&name, &record).into()), record.version)),
    }
}

/// `{"fields": {...}, "ttl": "10m" | "keep" | "session", "type": "task"}`.
async fn put(State(server): State<Server>, Path(name): Path<String>, place: Place, bytes: Bytes) -> Answered {
    let object = parse_object(&bytes)?;
    let given = object.get("fields").and_then(JsonValue::as_object);
    let given = fields(given.ok_or_else(|| Problem::malformed("fields is missing, or no object"))?)?;
    let ttl = match object.get("ttl").and_then(JsonValue::as_str) {
        Some("keep") => Ttl::Keep,
        Some("session") => Ttl::WithSession,
        _ => duration(&object, "ttl")?.map_or(Ttl::Persist, Ttl::After),
    };
    let put = Put { ttl, record_type: text(&object, "type")?.map(str::to_owned) };
    let asked = name.clone();
    let written = server.call(move |house| place.records(house).put(&asked, given, put)).await?;
    let answer = json!({ "name": name, "version": written.version, "commit": written.commit });
    Ok(with_etag(body(StatusCode::OK, answer), written.version))
}

/// `{"set": {...}, "unset": [...]}`, or `{"incr": {"field": 1}}`, or `{"ttl": "10m"}`.
async fn patch(State(server): State<Server>, Path(name): Path<String>, place: Place, bytes: Bytes) -> Answered {
    let object = parse_object(&bytes)?;
    let mut patches: Vec<(String, Option<Value>)> = Vec::new();
    if let Some(set) = object.get("set").and_then(JsonValue::as_object) {
        patches.extend(fields(set)?.into_iter().map(|(name, value)| (name, Some(value))));
    }
    for name in object.get("unset").and_then(JsonValue::as_array).into_iter().flatten() {
        let name = name.as_str().ok_or_else(|| Problem::malformed("unset is no list of names"))?;
        patches.push((name.to_owned(), None));
    }
    let asked = name.clone();
    if let Some(incr) = object.get("incr").and_then(JsonValue::as_object) {
        let [(field, by)] = incr.iter().collect::<Vec<_>>()[..] else {
            return Err(Problem::malformed("incr has one field"));
        };
        let by = by.as_i64().ok_or_else(|| Problem::malformed("incr is not a whole number"))?;
        let field = field.clone();
        let value = server.call(move |house| place.records(house).increment(&asked, &field, by)).await?;
        return ok(json!({ "name": name, "value": value }));
    }
    let ttl = duration(&object, "ttl")?;
    let written = server.call(move |house| {
        let records = place.records(house);
        match ttl {
            Some(ttl) if patches.is_empty() => records.touch(&asked, ttl),
            _ => records.set_fields(&asked, patches),
        }
    });
    let written = written.await?;
    let answer = json!({ "name": name, "version": written.version, "commit": written.commit });
    Ok(with_etag(body(StatusCode::OK, answer), written.version))
}

async fn delete(State(server): State<Server>, Path(name): Path<String>, place: Place) -> Answered {
    let asked = name.clone();
    match server.call(move |house| place.records(house).delete(&asked)).await?.version {
        Some(version) => ok(json!({ "name": name, "version": version })),
        None => Err(Problem::not_found("record", &name)),
    }
}

/// Something to be done to records.
type Work = Box<dyn FnOnce(&Records) -> Result<JsonValue, Error> + Send>;

/// What an attempt does: the last part of the path says what, the body has the attempt.
async fn act(State(server): State<Server>, Path(path): Path<String>, place: Place, bytes: Bytes) -> Answered {
    let Some((name, action)) = path.rsplit_once('/') else {
        return Err(Problem::malformed("a record is posted to by step, extend, release, complete or fail"));
    };
    let object = parse_object(&bytes)?;
    let attempt = number(&object, "attempt")?.ok_or_else(|| Problem::malformed("attempt is missing"))?;
    let given = match object.get("fields") {
        None => Vec::new(),
        Some(JsonValue::Object(given)) => fields(given)?,
        Some(_) => return Err(Problem::malformed("fields is no object")),
    };
    let claimed = Claimed::of_attempt(name, place.group.as_deref(), attempt);
    let lease = duration(&object, "lease")?;
    let error = text(&object, "error")?.unwrap_or_default().to_owned();
    let work: Work = match action {
        "step" => Box::new(move |records| records.step(&claimed, given).map(written)),
        "extend" => Box::new(move |records| records.extend(&claimed, lease).map(written)),
        "release" => Box::new(move |records| records.release(&claimed).map(written)),
        "complete" => Box::new(move |records| records.complete(&claimed, given).map(written)),
        "fail" => Box::new(move |records| {
            records.fail(&claimed, &error).map(|retry| match retry {
                Retry::After(pause) => json!({ "retry_in_ms": millis(pause) }),
                Retry::Exhausted => json!({ "retry_in_ms": null, "exhausted": true }),
            })
        }),
        _ => return Err(Problem::malformed("a record is posted to by step, extend, release, complete or fail")),
    };
    ok(server.call(move |house| work(&place.records(house))).await?)
}

fn written(written: contract::Written) -> JsonValue {
    json!({ "version": written.version, "commit": written.commit })
}

/// `?prefix=&where=[["state","eq","pending"]]&type=task&limit=&cursor=`.
async fn scan(State(server): State<Server>, place: Place) -> Answered {
    let prefix = place.query("prefix").unwrap_or_default().to_owned();
    let filter = match place.query("where") {
        None => Filter::all(),
        Some(tests) => filter(tests)?,
    };
    let mut options = ScanOptions::default().limit(place.limit(100)?);
    options.record_type = place.query("type").map(str::to_owned);
    options.cursor = match place.query("cursor") {
        None => None,
        Some(cursor) => match from_json(&json!({ "$b64": cursor }))? {
            Value::Bytes(cursor) => Some(cursor),
            _ => return Err(Problem::malformed("?cursor= is not one of ours")),
        },
    };
    let found = server.call(move |house| place.records(house).scan(&prefix, &filter, &options)).await?;
    let records: Vec<JsonValue> = found.records.iter().map(|(name, record)| record_json(name, record).into()).collect();
    let cursor = found.cursor.map(|cursor| to_json(&Value::Bytes(cursor))["$b64"].clone());
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
