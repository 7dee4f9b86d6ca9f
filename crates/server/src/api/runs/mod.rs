//! Runs: append, read, follow, project, list, close, fork, delete. Events are passed on as the text that was sent.
//!
//! [`operations`]: runs in transactions. [`routes`]: how the calls are reached. [`status`]: runs on the status page.

pub(super) mod metrics;
pub(super) mod operations;
pub(super) mod routes;
pub(super) mod status;

use contract::object_text::ObjectText;
use contract::runs::RUNS_CONTRACT_VERSION;
use contract::time::iso;
use contract::{Error, Expected, Rejection, RunRejection, names};
use statehouse::runs::{AppendOptions, FETCH_LIMIT, NewEvent, RunList, StoredEvent, Tail};
use statehouse::{Group, Runs, Space};
use wire::operations::NoBody;
use wire::query::NoQuery;
use wire::runs::{
    AppendAnswer, AppendEvents, Appended, AppendedAll, EventText, Events, Fork, ListRuns, ListedRun, NewEvents,
    ReadEvents, ReadSnapshot, RunPosition, RunsPage, SnapshotText,
};
use wire::values::{JsonText, PageCursor};

use super::scope::Handles;
use super::{Answered, Call, Refusal, Reply, page_limit, refuse_limit_of_stream};
use crate::Server;
use crate::stream::{Followed, Sent, Source};

/// Events that a stream reads at a time: they can be large, and wait in memory for a slow client.
const EVENTS_AT_ONCE: usize = 1;

/// The default number of runs in a page.
const PAGE_ROWS: usize = 100;

/// The version of the contract.
pub(super) const VERSION: &str = RUNS_CONTRACT_VERSION;

impl Handles {
    /// The runs of the scope.
    pub(crate) fn runs(&self) -> Runs {
        self.of(Group::runs, Space::runs)
    }
}

async fn events(server: Server, call: Call<ReadEvents, NoBody>) -> Result<Followed<Events>, Refusal> {
    let Call { scope, name: run, query, wait, stream, last_event, .. } = call;
    let runs = scope.open(&server.house)?.runs();
    names::check_run(&run).map_err(Error::from)?;
    if stream {
        refuse_limit_of_stream(query.limit)?;
        let resumed = last_event.map(|text| text.parse().map_err(|_| not_an_id())).transpose()?;
        let after = resumed.or(query.after).unwrap_or(0);
        let tail = runs.tail(&run, after);
        let asked = run.clone();
        server.call(move |_| exists(&runs, &asked)).await?;
        tail.check_cursor()?;
        return Ok(Followed::Stream(server.stream(RunEvents { tail })?));
    }
    let limit = page_limit(query.limit, FETCH_LIMIT)?;
    let mut tail = runs.tail(&run, query.after.unwrap_or(0));
    let mut memory = server.reserve_page().await?;
    let read = server.call(move |_| {
        let fetched = tail.read(limit)?;
        if fetched.events.is_empty() {
            exists(&runs, &run)?;
        }
        Ok((fetched, tail))
    });
    let (mut fetched, mut tail) = read.await?;
    if fetched.events.is_empty() && !wait.is_zero() {
        memory.give_back();
        if let Some(followed) = server.in_time(wait, tail.next_async(limit)).await {
            fetched = followed?;
        }
    }
    let events = fetched.events.iter().map(event_text).collect();
    Ok(Followed::Page(Reply::page(Events { events, stable_seq: fetched.stable_seq }, memory)))
}

fn not_an_id() -> Refusal {
    Refusal::invalid("Last-Event-ID", "Last-Event-ID is not an id issued by this server")
}

/// Refuses a run that does not exist, instead of returning no events.
fn exists(runs: &Runs, run: &str) -> Result<(), Error> {
    match runs.snapshot(run)? {
        Some(_) => Ok(()),
        None => Err(Rejection::Run(RunRejection::NoSuchRun { run: run.to_owned() }).into()),
    }
}

/// The events of a run, for a stream.
struct RunEvents {
    tail: Tail,
}

impl Source for RunEvents {
    async fn next(&mut self) -> Result<Vec<Sent>, Error> {
        let fetched = self.tail.next_async(EVENTS_AT_ONCE).await?;
        Ok(fetched.events.iter().map(|event| Sent::new(event.run_seq, "event", event_json(event))).collect())
    }

    fn position(&mut self) -> Result<u64, Error> {
        Ok(self.tail.cursor())
    }
}

/// An event as the contract's JSON, with the commit that appended it.
fn event_json(event: &StoredEvent) -> String {
    let mut json = event.to_json();
    json.pop();
    json + &format!(",\"commit\":{}}}", event.commit)
}

fn event_text(event: &StoredEvent) -> EventText {
    EventText(JsonText(event_json(event)))
}

/// Appends one event or a list. The call may supply the key of a single event, and the store `emittedAt`.
async fn append(server: Server, call: Call<AppendEvents, NewEvents>) -> Answered<AppendAnswer> {
    let Call { scope, name: run, query, body, expected, key, .. } = call;
    let (one, given) = match body {
        NewEvents::One(event) => (true, vec![event]),
        NewEvents::Several(events) => (false, events),
    };
    if given.len() != 1 && key.is_some() {
        let detail = "several events need an idempotencyKey each; Idempotency-Key is for a single event";
        return Err(Refusal::invalid("Idempotency-Key", detail));
    }
    let events = given.iter().map(|event| event_of(&run, &event.0, key.as_deref()));
    let events = events.collect::<Result<Vec<_>, _>>()?;
    let mut options = AppendOptions::run_type(query.run_type.unwrap_or_default());
    options.strict = query.strict.unwrap_or(false);
    if let Some(Expected::Version(last)) = expected {
        options = options.expecting(last);
    }
    let handles = scope.open(&server.house)?;
    let runs = handles.runs();
    let results = runs.append_all_later(&run, &events, &options).await?;
    let mut shown = Vec::with_capacity(results.len());
    for result in results {
        // Different content under a known key: the caller sees the stored event.
        let stored = match result.payload_mismatch {
            false => None,
            true => {
                let (runs, run) = (runs.clone(), run.clone());
                let fetched = server.call(move |_| runs.fetch(&run, result.run_seq - 1, 1)).await?;
                fetched.events.first().map(event_text)
            }
        };
        shown.push(Appended { event: stored, ..result.into() });
    }
    let answer = match (one, shown.pop()) {
        (true, Some(result)) => AppendAnswer::One(result),
        (_, last) => {
            shown.extend(last);
            AppendAnswer::Several(AppendedAll { results: shown })
        }
    };
    Ok(Reply::new(answer).replayed(handles.replayed()))
}

/// The idempotency key of an event, if it has one.
#[derive(serde::Deserialize)]
struct EventHead {
    #[serde(rename = "idempotencyKey")]
    key: Option<serde::de::IgnoredAny>,
}

/// An event as sent, with the key that the call supplies for it.
fn event_of(run: &str, text: &str, key: Option<&str>) -> Result<NewEvent, Refusal> {
    let no_object = |_| {
        let reason = "it is not a JSON object".into();
        Error::from(Rejection::Run(RunRejection::InvalidEvent { what: "event".into(), reason }))
    };
    let head: EventHead = wire::from_json_text(text).map_err(no_object)?;
    let with_key;
    let text = match (key, head.key) {
        (None, _) => text,
        (Some(_), Some(_)) => {
            let detail = "the event has an idempotencyKey, and the request an Idempotency-Key: send one of them";
            return Err(Refusal::invalid("Idempotency-Key", detail));
        }
        (Some(key), None) => {
            let mut whole = ObjectText::default();
            whole.text("idempotencyKey", key).members_of(text);
            with_key = whole.finish();
            &with_key
        }
    };
    NewEvent::from_json(run, text).map_err(|rejection| Error::from(rejection).into())
}

async fn snapshot(server: Server, call: Call<ReadSnapshot, NoBody>) -> Answered<SnapshotText> {
    let Call { scope, name: run, query, .. } = call;
    let project = query.project.unwrap_or(false);
    let asked = run.clone();
    let memory = server.reserve_page().await?;
    let runs = scope.open(&server.house)?.runs();
    let snapshot = server.call(move |_| match project {
        true => runs.project(&asked).map(Some),
        false => runs.snapshot(&asked),
    });
    match snapshot.await? {
        Some(snapshot) => Ok(Reply::page(SnapshotText(JsonText(snapshot.to_json())), memory)),
        None => Err(Refusal::not_found("run", run)),
    }
}

async fn close(server: Server, call: Call<NoQuery, NoBody>) -> Answered<RunPosition> {
    let handles = call.scope.open(&server.house)?;
    let last_event_seq = handles.runs().close_later(&call.name).await?;
    Ok(Reply::new(RunPosition { run_id: call.name, last_event_seq }).replayed(handles.replayed()))
}

async fn delete(server: Server, call: Call<NoQuery, NoBody>) -> Answered<RunPosition> {
    let handles = call.scope.open(&server.house)?;
    let last_event_seq = handles.runs().delete_later(&call.name).await?;
    Ok(Reply::new(RunPosition { run_id: call.name, last_event_seq }).replayed(handles.replayed()))
}

async fn fork(server: Server, call: Call<NoQuery, Fork>) -> Answered<RunPosition> {
    let handles = call.scope.open(&server.house)?;
    let Fork { at, name } = call.body;
    handles.runs().fork_later(&call.name, at, &name).await?;
    Ok(Reply::new(RunPosition { run_id: name, last_event_seq: at }).replayed(handles.replayed()))
}

async fn list(server: Server, call: Call<ListRuns, NoBody>) -> Answered<RunsPage> {
    let Call { scope, query, .. } = call;
    let mut list = RunList::default();
    match query.status {
        Some(status) => list.statuses = vec![status.into()],
        // A run that is finished waits for nothing.
        None if query.stalled.is_some() => list.statuses.retain(|status| !status.is_terminal()),
        None => {}
    }
    list.run_type = query.run_type;
    list.quiet_for = query.stalled.map_or(std::time::Duration::ZERO, |stalled| stalled.0);
    list.prefix = query.prefix.unwrap_or_default();
    list.limit = page_limit(query.limit, PAGE_ROWS)?;
    list.cursor = query.cursor.map(|cursor| cursor.0);
    let memory = server.reserve_page().await?;
    let runs = scope.open(&server.house)?.runs();
    let found = server.call(move |_| runs.list(&list)).await?;
    let runs = found.runs.into_iter().map(|run| ListedRun {
        run_id: run.name,
        group: run.group,
        run_type: run.run_type,
        status: run.status.into(),
        last_event_seq: run.last_seq,
        last_event_at: iso(run.last_event_us),
    });
    let (runs, cursor) = (runs.collect(), found.cursor.map(PageCursor));
    Ok(Reply::page(RunsPage { runs, cursor, looked_at: found.looked_at as u64 }, memory))
}
