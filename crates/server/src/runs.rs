//! Runs: `POST GET /v1/runs/{run}/events`, the projection, lists, and the life of a run.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use contract::Error;
use contract::runs::{NewEvent, RunStatus, StoredEvent};
use contract::time::iso;
use serde_json::{Value as JsonValue, json};
use statehouse::runs::{AppendOptions, FETCH_LIMIT, RunList};

use crate::Server;
use crate::json::{number, parse, parse_object, text};
use crate::place::{Place, if_match};
use crate::problem::{Answered, Problem, ok, text_body};

pub(crate) fn routes() -> Router<Server> {
    Router::new().route("/v1/runs", get(list)).route("/v1/runs/{*path}", get(read).post(write))
}

fn split(path: &str) -> Result<(String, &str), Problem> {
    let (run, what) = path.rsplit_once('/').ok_or_else(|| {
        Problem::malformed("a run has events, snapshot, close, archive and fork: /v1/runs/{run}/events")
    })?;
    Ok((run.to_owned(), what))
}

async fn read(State(server): State<Server>, Path(path): Path<String>, place: Place) -> Answered {
    let (run, what) = split(&path)?;
    match what {
        "events" => events(&server, run, place).await,
        "snapshot" => {
            let project = place.query("project") == Some("true");
            let asked = run.clone();
            let snapshot = server.call(move |house| match project {
                true => place.runs(house).project(&asked).map(Some),
                false => place.runs(house).snapshot(&asked),
            });
            match snapshot.await? {
                Some(snapshot) => Ok(text_body(StatusCode::OK, snapshot.to_json())),
                None => Err(Problem::not_found("run", &run)),
            }
        }
        _ => Err(Problem::not_found("part of a run", what)),
    }
}

/// `?after=&limit=&follow=10s`.
async fn events(server: &Server, run: String, place: Place) -> Answered {
    let after = place.number("after")?.unwrap_or(0);
    let limit = place.limit(FETCH_LIMIT)?;
    let wait = place.wait("follow")?;
    let fetched = server.call(move |house| place.runs(house).tail(&run, after).next(limit, wait)).await?;
    let events: Vec<_> = fetched.events.iter().map(event_json).collect();
    Ok(text_body(
        StatusCode::OK,
        format!("{{\"events\":[{}],\"stable_seq\":{}}}", events.join(","), fetched.stable_seq),
    ))
}

/// An event as the contract spells it, and which commit appended it.
fn event_json(event: &StoredEvent) -> String {
    let json = event.to_json();
    let members = json.strip_suffix('}').expect("an object");
    format!("{members},\"commit\":{}}}", event.commit)
}

async fn write(
    State(server): State<Server>,
    Path(path): Path<String>,
    place: Place,
    headers: HeaderMap,
    bytes: Bytes,
) -> Answered {
    let (run, what) = split(&path)?;
    match what {
        "events" => append(&server, run, place, &headers, &bytes).await,
        "close" => {
            let last = server.call(move |house| place.runs(house).close(&run)).await?;
            ok(json!({ "lastEventSeq": last }))
        }
        "archive" => {
            let last = server.call(move |house| place.runs(house).delete(&run)).await?;
            ok(json!({ "lastEventSeq": last }))
        }
        "fork" => {
            let object = parse_object(&bytes)?;
            let fork = text(&object, "as")?.ok_or_else(|| Problem::malformed("as is missing"))?.to_owned();
            let at = number(&object, "at")?.ok_or_else(|| Problem::malformed("at is missing"))?;
            let answer = fork.clone();
            server.call(move |house| place.runs(house).fork(&run, at, &fork)).await?;
            ok(json!({ "runId": answer, "lastEventSeq": at }))
        }
        _ => Err(Problem::not_found("part of a run", what)),
    }
}

/// One event or a list of them, spelled as the contract has it; `If-Match` expects a sequence.
async fn append(server: &Server, run: String, place: Place, headers: &HeaderMap, bytes: &[u8]) -> Answered {
    let given = parse(bytes)?;
    let one = !given.is_array();
    let list = given.as_array().cloned().unwrap_or_else(|| vec![given]);
    let mut events = Vec::with_capacity(list.len());
    for event in &list {
        events
            .push(NewEvent::from_json(&event.to_string()).map_err(|rejection| Problem::from(Error::from(rejection)))?);
    }
    let mut options = AppendOptions::run_type(place.query("type").unwrap_or_default());
    if let Some(last) = if_match(headers)? {
        options = options.expecting(last);
    }
    let results = server.call(move |house| place.runs(house).append_all(&run, &events, &options)).await?;
    let results: Vec<_> = results
        .iter()
        .map(|result| {
            json!({
                "runSeq": result.run_seq,
                "idempotent": result.idempotent,
                "persisted": result.persisted,
                "payloadMismatch": result.payload_mismatch,
            })
        })
        .collect();
    match one {
        true => ok(results.into_iter().next().unwrap_or(JsonValue::Null)),
        false => ok(json!({ "results": results })),
    }
}

/// `?status=RUNNING&type=etl&stalled=10m&limit=`.
async fn list(State(server): State<Server>, place: Place) -> Answered {
    let mut list = RunList::default();
    if let Some(name) = place.query("status") {
        let status = RunStatus::ALL.into_iter().find(|status| status.name() == name);
        list.statuses = vec![status.ok_or_else(|| Problem::malformed("?status= is no status of a run"))?];
    }
    list.run_type = place.query("type").map(str::to_owned);
    list.quiet_for = place.duration("stalled")?;
    list.limit = place.limit(100)?;
    let found = server.call(move |house| place.runs(house).list(&list)).await?;
    let runs: Vec<_> = found
        .iter()
        .map(|run| {
            json!({
                "runId": run.name,
                "group": run.group,
                "type": run.run_type,
                "status": run.status.name(),
                "lastEventSeq": run.last_seq,
                "lastEventAt": iso(run.last_event_us),
            })
        })
        .collect();
    ok(json!({ "runs": runs }))
}
