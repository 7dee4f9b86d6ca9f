//! Cells: `GET PUT DELETE /v1/cells/{name}`, their history, and lists.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::{any, get};
use contract::time::iso;
use contract::{
    AsOf, Error, HistoryPage, ListPage, Moment, NameInGroup, Rejection, Swapped, Value, Versioned, Written, names,
};
use serde_json::json;

use crate::Server;
use crate::json::{text_json, value_of};
use crate::place::{Path, Place, expected, if_match};
use crate::problem::{Answered, Problem, body, no_name, text_body};
use crate::transactions::version_of;

pub(crate) fn routes() -> Router<Server> {
    Router::new()
        .route("/v1/cells", get(list))
        .route("/v1/cells/", any(|| no_name(names::check_cell)))
        .route("/v1/cells/{*name}", get(read).put(write).delete(delete))
}

/// A cell as JSON. It is written as text at once: reading one cell is what is asked for most.
fn cell(name: &str, found: &Versioned) -> String {
    format!("{{\"name\":{}{}}}", text_json(name), members(found))
}

/// A cell of a list, with its group.
fn listed_cell(name: &NameInGroup, found: &Versioned) -> String {
    format!("{{\"name\":{},\"group\":{}{}}}", text_json(&name.name), json!(name.group), members(found))
}

fn members(found: &Versioned) -> String {
    format!(
        ",\"version\":{},\"commit\":{},\"updated_at\":\"{}\",\"value\":{}",
        found.version,
        found.commit,
        iso(found.updated_at),
        found.value.to_json_text(),
    )
}

pub(crate) fn with_etag(mut response: Response, version: u64) -> Response {
    let etag = HeaderValue::from_str(&format!("\"{version}\"")).expect("digits and quotes");
    response.headers_mut().insert(header::ETAG, etag);
    response
}

/// What a write of a cell or a record left behind.
pub(crate) fn written_answer(status: StatusCode, name: &str, written: Written) -> Response {
    let answer = json!({ "name": name, "version": written.version, "commit": written.commit });
    with_etag(body(status, answer), written.version)
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
    let cells = place.inside(&server.house).cells();
    let found = match moment {
        None => cells.get_versioned(&name)?.map_or(AsOf::Absent, AsOf::Value),
        Some(moment) => {
            let asked = name.clone();
            server.call(move |_| cells.at(&asked, moment)).await?
        }
    };
    match found {
        AsOf::Value(found) => Ok(with_etag(text_body(StatusCode::OK, cell(&name, &found)), found.version)),
        AsOf::Absent => Err(Problem::not_found("cell", &name)),
        AsOf::Unavailable { oldest } => Err(Problem::history_gone(&name, oldest)),
    }
}

async fn history(server: &Server, name: String, place: Place) -> Answered {
    let page = HistoryPage { before: place.number("before")?, limit: place.limit(100)? };
    let asked = name.clone();
    let memory = server.reserve_page().await?;
    let found = server.call(move |house| place.inside(house).cells().history(&asked, page)).await?;
    let versions: Vec<_> = found
        .versions
        .iter()
        .map(|past| {
            format!(
                "{{\"version\":{},\"deleted\":{},\"commit\":{},\"updated_at\":\"{}\",\"value\":{}}}",
                past.version,
                past.value.is_none(),
                past.commit,
                iso(past.updated_at),
                past.value.as_ref().unwrap_or(&Value::Null).to_json_text(),
            )
        })
        .collect();
    let (name, next_before) = (json!(name), json!(found.next_before));
    let versions = versions.join(",");
    let answer = format!("{{\"name\":{name},\"versions\":[{versions}],\"next_before\":{next_before}}}");
    Ok(memory.hold(text_body(StatusCode::OK, answer)))
}

async fn write(
    State(server): State<Server>,
    Path(name): Path<String>,
    place: Place,
    headers: HeaderMap,
    bytes: Bytes,
) -> Answered {
    place.refuse_idempotency_key()?;
    let value = value_of(&bytes)?;
    let inside = place.inside(&server.house);
    let written = match expected(&headers)? {
        None => inside.cells().set_later(&name, value).await?,
        Some(expected) => match inside.cells().cas_later(&name, expected, value).await? {
            Swapped::Written(written) => written,
            Swapped::Conflict { current } => {
                let conflict = Rejection::Conflict { cell: name, current };
                return Err(Problem::from(Error::from(conflict)).of_header());
            }
        },
    };
    let status = if written.version == 1 { StatusCode::CREATED } else { StatusCode::OK };
    Ok(inside.answer(written_answer(status, &name, written)))
}

async fn delete(State(server): State<Server>, Path(name): Path<String>, place: Place, headers: HeaderMap) -> Answered {
    place.refuse_idempotency_key()?;
    let inside = place.inside(&server.house);
    let deleted = match if_match(&headers)? {
        None => inside.cells().delete_later(&name).await?.version,
        Some(version) => {
            let commit = inside.cells().commit().if_cell_version(&name, version).delete_cell(&name);
            let (_, done) = commit.run_each_later().await.map_err(|error| Problem::from(error).of_header())?;
            version_of(&done)
        }
    };
    match deleted {
        Some(version) => Ok(inside.answer(body(StatusCode::OK, json!({ "name": name, "version": version })))),
        None => Err(Problem::not_found("cell", &name)),
    }
}

/// `?prefix=&group=&limit=&after=`.
async fn list(State(server): State<Server>, place: Place) -> Answered {
    let prefix = place.query("prefix").unwrap_or_default().to_owned();
    let after = match place.query("after").map(NameInGroup::from_cursor) {
        None => None,
        Some(Some(after)) => Some(after),
        Some(None) => return Err(Problem::malformed("?after= is no `next_after` of ours")),
    };
    let page = ListPage { after, limit: place.limit(100)? };
    let memory = server.reserve_page().await?;
    let found = server.call(move |house| place.inside(house).cells().list(&prefix, page)).await?;
    let cells: Vec<_> = found.cells.iter().map(|(name, found)| listed_cell(name, found)).collect();
    let next_after = json!(found.next_after.map(|after| after.to_cursor()));
    let answer = format!("{{\"cells\":[{}],\"next_after\":{next_after}}}", cells.join(","));
    Ok(memory.hold(text_body(StatusCode::OK, answer)))
}
