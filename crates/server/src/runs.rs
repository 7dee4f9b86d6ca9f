//! Runs: `POST GET /v1/runs/{run}/events`, the projection, lists, and the life of a run.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use contract::Error;
use contract::object_text::ObjectText;
use contract::runs::{NewEvent, RunStatus, StoredEvent};
use contract::time::iso;
use serde_json::json;
use statehouse::runs::{AppendOptions, FETCH_LIMIT, RunList, Tail};

use crate::Server;
use crate::json::{entries, object_of, parse, parse_object, required, required_number};
use crate::place::{Path, Place, idempotency_key, if_match};
use crate::problem::{Answered, Problem, body, text_body};
use crate::scan::{cursor_of, cursor_text};
use crate::stream::{Sent, Source};
use crate::transactions::appended_json;

/// Events that a stream reads at a time: they can be large, and wait in memory for a client that is slow.
const EVENTS_AT_ONCE: usize = 1;

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
        "events" if place.wants_stream() => follow(&server, &run, &place),
        "events" => events(&server, run, place).await,
        "snapshot" => {
            let project = place.query("project") == Some("true");
            let asked = run.clone();
            let memory = server.reserve_page().await?;
            let snapshot = server.call(move |house| match project {
                true => place.inside(house).runs().project(&asked).map(Some),
                false => place.inside(house).runs().snapshot(&asked),
            });
            match snapshot.await? {
                Some(snapshot) => Ok(memory.hold(text_body(StatusCode::OK, snapshot.to_json()))),
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
    let mut tail = place.inside(&server.house).runs().tail(&run, after);
    let mut memory = server.reserve_page().await?;
    let (mut fetched, mut tail) = server.call(move |_| Ok((tail.read(limit)?, tail))).await?;
    if fetched.events.is_empty() && !wait.is_zero() {
        memory.give_back();
        if let Some(followed) = server.in_time(wait, tail.next_async(limit)).await {
            fetched = followed?;
        }
    }
    let events: Vec<_> = fetched.events.iter().map(event_json).collect();
    let answer = format!("{{\"events\":[{}],\"stable_seq\":{}}}", events.join(","), fetched.stable_seq);
    Ok(memory.hold(text_body(StatusCode::OK, answer)))
}

/// The events as a stream, from behind `?after=` or the `Last-Event-ID` on.
fn follow(server: &Server, run: &str, place: &Place) -> Answered {
    let after = place.last_event()?.or(place.number("after")?).unwrap_or(0);
    contract::names::check_run(run).map_err(contract::Error::from)?;
    server.stream(RunEvents { tail: place.inside(&server.house).runs().tail(run, after) })
}

/// The events of a run, for a stream.
struct RunEvents {
    tail: Tail,
}

impl Source for RunEvents {
    async fn next(&mut self) -> Result<Vec<Sent>, contract::Error> {
        let fetched = self.tail.next_async(EVENTS_AT_ONCE).await?;
        Ok(fetched.events.iter().map(|event| Sent::new(event.run_seq, "event", event_json(event))).collect())
    }

    fn position(&mut self) -> Result<u64, contract::Error> {
        Ok(self.tail.cursor())
    }
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
    if what == "events" {
        return append(&server, &run, &place, &headers, &bytes).await;
    }
    place.refuse_idempotency_key()?;
    let inside = place.inside(&server.house);
    let answer = match what {
        "close" => json!({ "runId": run, "lastEventSeq": inside.runs().close_later(&run).await? }),
        "archive" => json!({ "runId": run, "lastEventSeq": inside.runs().delete_later(&run).await? }),
        "fork" => {
            let object = parse_object(&bytes)?;
            let (fork, at) = (required(&object, "as")?, required_number(&object, "at")?);
            inside.runs().fork_later(&run, at, &fork).await?;
            json!({ "runId": fork, "lastEventSeq": at })
        }
        _ => return Err(Problem::not_found("part of a run", what)),
    };
    Ok(inside.answer(body(StatusCode::OK, answer)))
}

/// One event or a list of them, spelled as the contract has it; `If-Match` expects a sequence. The key of one event may be
/// left to `Idempotency-Key`, and when it was emitted to the store.
async fn append(server: &Server, run: &str, place: &Place, headers: &HeaderMap, bytes: &[u8]) -> Answered {
    let key = idempotency_key(headers)?;
    let (one, given) = match parse(bytes)? {
        list if list.starts_with('[') => (false, entries(list, "the body")?),
        one => (true, vec![one]),
    };
    if given.len() > 1 && key.is_some() {
        return Err(Problem::malformed("several events have an idempotencyKey each; Idempotency-Key is for one"));
    }
    let mut events = Vec::with_capacity(given.len());
    for event in given {
        events.push(event_of(run, event, key.as_deref())?);
    }
    let mut options = AppendOptions::run_type(place.query("type").unwrap_or_default());
    if let Some(last) = if_match(headers)? {
        options = options.expecting(last);
    }
    let inside = place.inside(&server.house);
    let results = inside.runs().append_all_later(run, &events, &options).await?;
    let mut results: Vec<_> = results.iter().map(appended_json).collect();
    let answer = match (one, results.pop()) {
        (true, Some(result)) => result,
        (_, last) => {
            results.extend(last);
            json!({ "results": results })
        }
    };
    Ok(inside.answer(body(StatusCode::OK, answer)))
}

/// An event as it was sent, with what may be left out.
pub(crate) fn event_of(run: &str, event: &str, key: Option<&str>) -> Result<NewEvent, Problem> {
    let given = object_of(event, "an event")?;
    let mut whole = ObjectText::default();
    if let Some(key) = key.filter(|_| given.get("idempotencyKey").is_none()) {
        whole.text("idempotencyKey", key);
    }
    whole.members_of(event);
    NewEvent::from_json(run, &whole.finish()).map_err(|rejection| Problem::from(Error::from(rejection)))
}

/// `?prefix=&group=&status=RUNNING&type=etl&stalled=10m&limit=&cursor=`.
async fn list(State(server): State<Server>, place: Place) -> Answered {
    let mut list = RunList::default();
    if let Some(name) = place.query("status") {
        let status = RunStatus::ALL.into_iter().find(|status| status.name() == name);
        list.statuses = vec![status.ok_or_else(|| Problem::malformed("?status= is no status of a run"))?];
    }
    list.run_type = place.query("type").map(str::to_owned);
    list.quiet_for = place.duration("stalled")?;
    list.prefix = place.query("prefix").unwrap_or_default().to_owned();
    list.limit = place.limit(100)?;
    list.cursor = cursor_of(&place)?;
    let memory = server.reserve_page().await?;
    let found = server.call(move |house| place.inside(house).runs().list(&list)).await?;
    let runs: Vec<_> = found
        .runs
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
    let cursor = found.cursor.map(cursor_text);
    let page = json!({ "runs": runs, "cursor": cursor, "looked_at": found.looked_at });
    Ok(memory.hold(body(StatusCode::OK, page)))
}
