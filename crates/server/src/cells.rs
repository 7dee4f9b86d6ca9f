//! Cells: `GET PUT DELETE /v1/cells/{name}`, their history, and lists.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::{any, get};
use contract::time::iso;
use contract::{AsOf, Expected, HistoryPage, ListPage, Moment, Rejection, Swapped, Value, Versioned, names};
use serde_json::{Value as JsonValue, json};

use crate::Server;
use crate::json::{to_text, value_of};
use crate::place::{Place, if_match};
use crate::problem::{Answered, Problem, body, no_name, ok, text_body};

pub(crate) fn routes() -> Router<Server> {
    Router::new()
        .route("/v1/cells", get(list))
        .route("/v1/cells/", any(|| no_name(names::check_cell)))
        .route("/v1/cells/{*name}", get(read).put(write).delete(delete))
}

/// The names in front of a cell's value, which is JSON text already and stays as it was written.
fn with_value(json: JsonValue, value: &Value) -> String {
    let members = json.to_string();
    let members = members.strip_suffix('}').expect("an object");
    format!("{members},\"value\":{}}}", to_text(value))
}

fn cell(name: &str, found: &Versioned) -> String {
    let members = json!({
        "name": name,
        "version": found.version,
        "commit": found.commit,
        "updated_at": iso(found.updated_at),
    });
    with_value(members, &found.value)
}

pub(crate) fn with_etag(mut response: Response, version: u64) -> Response {
    let etag = HeaderValue::from_str(&format!("\"{version}\"")).expect("digits and quotes");
    response.headers_mut().insert(header::ETAG, etag);
    response
}

async fn read(State(server): State<Server>, Path(name): Path<String>, place: Place) -> Answered {
    if place.query("view") == Some("history") {
        return history(&server, name, place).await;
    }
    let moment = match place.query("at") {
        None => None,
        Some(text) => Some(match (text.parse(), text.parse::<jiff::Timestamp>()) {
            (Ok(version), _) => Moment::Version(version),
            (_, Ok(time)) => Moment::Time(u64::try_from(time.as_microsecond()).unwrap_or(0)),
            _ => return Err(Problem::malformed("?at= is neither a version nor a time in RFC 3339")),
        }),
    };
    let asked = name.clone();
    let found = server.call(move |house| {
        let cells = place.cells(house);
        Ok(match moment {
            None => cells.get_versioned(&asked)?.map_or(AsOf::Absent, AsOf::Value),
            Some(moment) => cells.at(&asked, moment)?,
        })
    });
    match found.await? {
        AsOf::Value(found) => Ok(with_etag(text_body(StatusCode::OK, cell(&name, &found)), found.version)),
        AsOf::Absent => Err(Problem::not_found("cell", &name)),
        AsOf::Unavailable { oldest } => {
            Ok(body(StatusCode::GONE, json!({ "name": name, "oldest": oldest, "detail": "what it was is not kept" })))
        }
    }
}

async fn history(server: &Server, name: String, place: Place) -> Answered {
    let page = HistoryPage { before: place.number("before")?, limit: place.limit(100)? };
    let asked = name.clone();
    let found = server.call(move |house| place.cells(house).history(&asked, page)).await?;
    let versions: Vec<_> = found
        .versions
        .iter()
        .map(|past| {
            let members = json!({
                "version": past.version,
                "deleted": past.value.is_none(),
                "commit": past.commit,
                "updated_at": iso(past.updated_at),
            });
            with_value(members, past.value.as_ref().unwrap_or(&Value::Null))
        })
        .collect();
    let (name, next_before) = (json!(name), json!(found.next_before));
    let versions = versions.join(",");
    let answer = format!("{{\"name\":{name},\"versions\":[{versions}],\"next_before\":{next_before}}}");
    Ok(text_body(StatusCode::OK, answer))
}

/// What `If-Match` and `If-None-Match` ask for.
fn expected(headers: &HeaderMap) -> Result<Option<Expected>, Problem> {
    if let Some(none_match) = headers.get(header::IF_NONE_MATCH) {
        return match none_match.as_bytes() {
            b"*" => Ok(Some(Expected::Absent)),
            _ => Err(Problem::malformed("If-None-Match is only known as *")),
        };
    }
    Ok(if_match(headers)?.map(Expected::Version))
}

async fn write(
    State(server): State<Server>,
    Path(name): Path<String>,
    place: Place,
    headers: HeaderMap,
    bytes: Bytes,
) -> Answered {
    let value = value_of(&bytes)?;
    let expected = expected(&headers)?;
    let asked = name.clone();
    let written = server.call(move |house| {
        let cells = place.cells(house);
        match expected {
            None => cells.set(&asked, value).map(Swapped::Written),
            Some(expected) => cells.cas(&asked, expected, value),
        }
    });
    match written.await? {
        Swapped::Conflict { current } => Err(Problem::precondition(Rejection::Conflict { cell: name, current })),
        Swapped::Written(written) => {
            let answer = json!({ "name": name, "version": written.version, "commit": written.commit });
            Ok(with_etag(body(StatusCode::OK, answer), written.version))
        }
    }
}

async fn delete(State(server): State<Server>, Path(name): Path<String>, place: Place) -> Answered {
    let asked = name.clone();
    let deleted = server.call(move |house| place.cells(house).delete(&asked)).await?;
    match deleted.version {
        Some(version) => ok(json!({ "name": name, "version": version })),
        None => Err(Problem::not_found("cell", &name)),
    }
}

async fn list(State(server): State<Server>, place: Place) -> Answered {
    let prefix = place.query("prefix").unwrap_or_default().to_owned();
    let page = ListPage { after: place.query("after").map(str::to_owned), limit: place.limit(100)? };
    let found = server.call(move |house| place.cells(house).list(&prefix, page)).await?;
    let cells: Vec<_> = found.cells.iter().map(|(name, found)| cell(name, found)).collect();
    let answer = format!("{{\"cells\":[{}],\"next_after\":{}}}", cells.join(","), json!(found.next_after));
    Ok(text_body(StatusCode::OK, answer))
}
