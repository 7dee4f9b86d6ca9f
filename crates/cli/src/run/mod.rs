//! `run`: append-only event histories, each with a projection.
//!
//! `why` explains one, `replay` checks those of a directory, `bench` is a load, `contract` is for commands across the contracts.

mod bench;
mod contract;
mod replay;
pub(crate) mod scopes;
pub(crate) mod why;

use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde_json::json;
use statehouse::Value;
use wire::routes::{RUNS_APPEND, RUNS_CLOSE, RUNS_DELETE, RUNS_EVENTS, RUNS_FORK, RUNS_LIST, RUNS_SNAPSHOT, Route};
use wire::runs::{AppendEvents, Fork, ListRuns, ReadEvents, ReadSnapshot};
use wire::values::{DurationText, Members, UserJson};

use crate::connection::{Ask, Connection};
use crate::exit::{Exit, Failure};
use crate::following::{Follow, Following};
use crate::given;
use crate::output::{Format, Output};
use crate::reach::{Reach, duration};
use crate::repeating::{Listing, Sure};
use crate::table::{self, Column, Style, column, plain};

/// Event histories: append, show, tail, verify, fork.
///
/// Examples:
///   statehouse run append order-7 RunStarted
///   statehouse run tail order-7 --follow
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Run {
    #[command(flatten)]
    reach: Reach,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Append an event. Repeated with the same key, it returns the same answer and appends nothing.
    ///
    /// Examples:
    ///   statehouse run append order-7 Charged '{"eur":10}' --idempotency-key charge-1
    ///   statehouse run append order-7 StepStarted --step charge --attempt 1 --expect 4
    #[command(verbatim_doc_comment)]
    Append {
        /// The run, created if missing.
        run: String,
        /// The event type: RunStarted, StepCompleted, or a type of your own.
        event_type: String,
        /// The event's data, as JSON or text; - reads stdin, @FILE a file.
        data: Option<String>,
        /// Idempotency key of the event. Default: a new key.
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
        /// Only append if the run is at this sequence.
        #[arg(long, value_name = "SEQUENCE")]
        expect: Option<u64>,
        /// The step that the event is about.
        #[arg(long)]
        step: Option<String>,
        /// The step's logical attempt.
        #[arg(long)]
        attempt: Option<String>,
        /// The run's type, used when the run is created.
        #[arg(long = "type", value_name = "TYPE")]
        run_type: Option<String>,
        /// When the event was emitted, in RFC 3339. Default: now.
        #[arg(long, value_name = "TIME")]
        emitted_at: Option<String>,
    },
    /// Show a run: its status, its steps and its last events.
    ///
    /// Examples:
    ///   statehouse run show order-7
    ///   statehouse run show order-7 --events 100 -o json
    #[command(verbatim_doc_comment)]
    Show {
        /// The run.
        run: String,
        /// Show this many of its last events.
        #[arg(long, value_name = "N", default_value_t = 10)]
        events: u64,
    },
    /// Show the events of a run, and optionally follow it.
    ///
    /// Examples:
    ///   statehouse run tail order-7
    ///   statehouse run tail order-7 --after 41 --follow -o jsonl
    #[command(verbatim_doc_comment)]
    Tail {
        /// The run.
        run: String,
        /// Start after this sequence.
        #[arg(long, value_name = "SEQUENCE", default_value_t = 0)]
        after: u64,
        /// Keep following as events are appended.
        #[arg(long, short)]
        follow: bool,
        /// Stop after this many.
        #[arg(long, value_name = "N")]
        limit: Option<u64>,
        /// Stop following after this long.
        #[arg(long = "for", value_name = "DURATION", value_parser = duration, requires = "follow")]
        time: Option<Duration>,
    },
    /// List runs in all groups, or in one with --group. Sorted by name; with --status or --type, by
    /// kind and then the longest quiet first.
    ///
    /// Examples:
    ///   statehouse run ls order-
    ///   statehouse run ls --status RUNNING
    ///   statehouse run ls --stuck 10m --type import
    #[command(verbatim_doc_comment)]
    Ls {
        /// Prefix of their names.
        #[arg(default_value = "")]
        prefix: String,
        /// Their status: PENDING, APPROVED, RUNNING, PAUSED, COMPLETED, FAILED or CANCELLED.
        #[arg(long)]
        status: Option<String>,
        /// Their type.
        #[arg(long = "type", value_name = "TYPE")]
        run_type: Option<String>,
        /// Only unfinished runs without an event for this long.
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        stuck: Option<Duration>,
        /// Continue where an earlier list ended.
        #[arg(long)]
        cursor: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Replay a run and compare the result with its projection. Exits with 7 if they differ.
    ///
    /// Examples:
    ///   statehouse run verify order-7
    ///   statehouse run verify order-7 -o json
    #[command(verbatim_doc_comment)]
    Verify {
        /// The run.
        run: String,
    },
    /// Create a run from another's events up to a sequence, in the same group.
    ///
    /// Examples:
    ///   statehouse run fork order-7 12 order-7-again
    ///   statehouse run fork order-7 1 order-8 -o json
    #[command(verbatim_doc_comment)]
    Fork {
        /// The run.
        run: String,
        /// The last sequence that both runs share.
        at: u64,
        /// The new run.
        new: String,
    },
    /// Close a run to further events.
    ///
    /// Examples:
    ///   statehouse run close order-7
    ///   statehouse run close order-7 -o json
    #[command(verbatim_doc_comment)]
    Close {
        /// The run.
        run: String,
    },
    /// Delete a run and its events. Its name cannot be reused.
    ///
    /// Examples:
    ///   statehouse run del order-7
    ///   statehouse run del order-7 --yes
    #[command(verbatim_doc_comment)]
    Del {
        /// The run.
        run: String,
        #[command(flatten)]
        sure: Sure,
    },
}

const APPENDED: &[Column] =
    &[plain("SEQUENCE", "runSeq").raw(), plain("PERSISTED", "persisted"), plain("IDEMPOTENT", "idempotent")];

const EVENT: &[Column] = &[
    plain("SEQUENCE", "runSeq").raw(),
    plain("AT", "persistedAt"),
    plain("TYPE", "eventType"),
    plain("STEP", "stepId"),
    column("DATA", "eventData", Style::Value),
];

const LISTED: &[Column] = &[
    plain("RUN", "runId").raw(),
    plain("GROUP", "group").optional(),
    plain("STATUS", "status"),
    plain("TYPE", "type"),
    plain("SEQUENCE", "lastEventSeq"),
    column("LAST EVENT", "lastEventAt", Style::Ago),
];

const SNAPSHOT: &[Column] = &[
    plain("RUN", "runId"),
    plain("STATUS", "status"),
    plain("SEQUENCE", "lastEventSeq"),
    column("STARTED", "startedAt", Style::Ago),
    column("COMPLETED", "completedAt", Style::Ago),
];

const STEP: &[Column] = &[
    plain("STEP", "stepId"),
    plain("STATUS", "status"),
    plain("ATTEMPT", "logicalAttemptId"),
    column("STARTED", "startedAt", Style::Ago),
    column("COMPLETED", "completedAt", Style::Ago),
    column("ERROR", "error.message", Style::Value),
];

const FORKED: &[Column] = &[plain("RUN", "runId").raw(), plain("GROUP", "group"), plain("SEQUENCE", "lastEventSeq")];

const LAST: &[Column] = &[plain("RUN", "runId"), plain("SEQUENCE", "lastEventSeq").raw()];

/// Events of one page.
const PAGE: u64 = 1_000;

impl Run {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        self.reach.run(async |connection| self.verb.run(connection, &output).await)
    }
}

impl Verb {
    async fn run(&self, connection: &Connection, output: &Output) -> Result<(), Failure> {
        match self {
            Verb::Append { run, event_type, data, idempotency_key, expect, step, attempt, run_type, emitted_at } => {
                let now = jiff::Timestamp::now();
                let key = idempotency_key.clone().unwrap_or_else(|| own_key(now));
                let text = |text: &String| UserJson(Value::from(text.as_str()));
                let members = [
                    ("eventType", Some(text(event_type))),
                    ("idempotencyKey", Some(text(&key))),
                    ("emittedAt", emitted_at.as_ref().map(text)),
                    ("eventData", data.as_ref().map(|data| given::value(data, false)).transpose()?),
                    ("stepId", step.as_ref().map(text)),
                    ("logicalAttemptId", attempt.as_ref().map(text)),
                ];
                let given = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
                let event: Members<UserJson> = given.collect();
                let query = AppendEvents { run_type: run_type.clone(), ..AppendEvents::default() };
                let call = connection.call(RUNS_APPEND, &[run]).query(&query).json(&event);
                output.one(&call.if_version(*expect).ask().await?, APPENDED)
            }
            Verb::Show { run, events } => show(connection, output, run, *events).await,
            Verb::Tail { run, after, follow, limit, time } => {
                let follow = follow.then(|| Follow { time: *time, ..Follow::default() });
                tail(connection, output, run, *after, *limit, follow).await
            }
            Verb::Ls { prefix, status, run_type, stuck, cursor, listing } => {
                let query = ListRuns {
                    prefix: Some(prefix.clone()).filter(|prefix| !prefix.is_empty()),
                    status: given::word_if_given("--status", status)?,
                    run_type: run_type.clone(),
                    stalled: stuck.map(DurationText),
                    limit: Some(listing.limit),
                    cursor: given::word_if_given("--cursor", cursor)?,
                };
                let once = async || {
                    let found = connection.call(RUNS_LIST, &[]).query(&query).ask().await?;
                    output.list(&found, "runs", LISTED)?;
                    match found["cursor"].as_str() {
                        Some(cursor) => output.note(&format!("there may be more: --cursor {cursor}")),
                        None => Ok(()),
                    }
                };
                listing.run(output, once).await
            }
            Verb::Verify { run } => verify(connection, output, run).await,
            Verb::Fork { run, at, new } => {
                let fork = Fork { at: *at, name: new.clone() };
                let mut forked = connection.call(RUNS_FORK, &[run]).json(&fork).ask().await?;
                // A fork is in the group of its source.
                forked["group"] = connection.group().unwrap_or(run).into();
                output.one(&forked, FORKED)
            }
            Verb::Close { run } => last(connection, output, RUNS_CLOSE, run).await,
            Verb::Del { run, sure } => {
                sure.or_ask(&format!("delete the run {run:?} and all its events"))?;
                last(connection, output, RUNS_DELETE, run).await
            }
        }
    }
}

/// A unique key: the time and this process.
fn own_key(now: jiff::Timestamp) -> String {
    format!("statehouse-{}-{}", now.as_nanosecond(), std::process::id())
}

/// Makes a change to a run and shows the resulting sequence.
async fn last(connection: &Connection, output: &Output, route: Route, run: &str) -> Result<(), Failure> {
    output.one(&connection.call(route, &[run]).ask().await?, LAST)
}

async fn show(connection: &Connection, output: &Output, run: &str, events: u64) -> Result<(), Failure> {
    let snapshot = connection.call(RUNS_SNAPSHOT, &[run]).ask().await?;
    let last = snapshot["lastEventSeq"].as_u64().unwrap_or(0);
    let mut shown = Vec::new();
    if events > 0 {
        let (after, limit) = (Some(last.saturating_sub(events)), Some(events.min(PAGE)));
        let query = ReadEvents { after, limit, ..ReadEvents::default() };
        let found = connection.call(RUNS_EVENTS, &[run]).query(&query).ask().await?;
        shown = found["events"].as_array().cloned().unwrap_or_default();
    }
    if output.format != Format::Table {
        let mut found = snapshot;
        found["lastEvents"] = shown.into();
        return output.one(&found, &[]);
    }
    output.line(&table::card(&snapshot, SNAPSHOT))?;
    let steps = snapshot["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (rows, columns) in [(steps, STEP), (&shown[..], EVENT)] {
        if !rows.is_empty() {
            output.line("")?;
            output.table(rows, columns)?;
        }
    }
    Ok(())
}

async fn tail(
    connection: &Connection,
    output: &Output,
    run: &str,
    mut after: u64,
    limit: Option<u64>,
    follow: Option<Follow>,
) -> Result<(), Failure> {
    let (began, mut following) = (Instant::now(), Following::default());
    let mut left = limit.unwrap_or(u64::MAX);
    while left > 0 {
        let wait = follow.as_ref().and_then(|follow| follow.next_wait(began));
        let query = ReadEvents {
            after: Some(after),
            limit: Some(left.min(PAGE)),
            follow: wait.map(|wait| wire::follow::Follow::Wait(DurationText(wait))),
        };
        let found = following.ask(connection.call(RUNS_EVENTS, &[run]).query(&query).waiting(wait)).await?;
        let events = found["events"].as_array().map(Vec::as_slice).unwrap_or_default();
        for event in events {
            output.row(event, EVENT)?;
            after = event["runSeq"].as_u64().unwrap_or(after);
            left = left.saturating_sub(1);
        }
        if wait.is_none() && events.is_empty() {
            return Ok(());
        }
    }
    Ok(())
}

async fn verify(connection: &Connection, output: &Output, run: &str) -> Result<(), Failure> {
    // The two are read at different moments; retry if the run grew in between.
    for _ in 0..10 {
        let project = ReadSnapshot { project: Some(true) };
        let kept = connection.call(RUNS_SNAPSHOT, &[run]).ask().await?;
        let replayed = connection.call(RUNS_SNAPSHOT, &[run]).query(&project).ask().await?;
        if kept["lastEventSeq"] != replayed["lastEventSeq"] {
            continue;
        }
        let equal = kept == replayed;
        let found = json!({ "runId": run, "lastEventSeq": kept["lastEventSeq"], "equal": equal });
        output
            .one(&found, &[plain("RUN", "runId"), plain("SEQUENCE", "lastEventSeq"), plain("EQUAL", "equal").raw()])?;
        return match equal {
            true => Ok(()),
            false => Err(Failure::check(format!("the projection of run {run:?} does not match its events"))
                .next("keep the directory and report this defect")),
        };
    }
    Err(Failure::new(Exit::Unavailable, format!("run {run:?} grows too fast to be compared")).next("try again later"))
}
