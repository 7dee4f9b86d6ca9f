//! `why`: who holds a thing, since when, which attempt it is, what it waits for, and what happens next.
//!
//! Puts together what the API says of it: the record, its type, the change feed, the session, the run. Keeps: says only what was read;
//! what the change feed does not keep any more is left out, and that is said.

mod job;
mod run;
mod session;

use clap::{Args, Subcommand};
use serde_json::{Value as JsonValue, json};

use crate::connection::{Call, Connection};
use crate::exit::Failure;
use crate::output::{Format, Output};
use crate::reach::Reach;
use crate::table::{self, Column, Style, column, paragraph, plain};

/// Why a job, a run or a session is as it is, and what happens next.
///
/// Examples:
///   statehouse why job jobs.import.9001
///   statehouse why run order-7 -o json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Why {
    #[command(flatten)]
    reach: Reach,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Why a job is as it is: who holds it, which attempt, what it waits for.
    ///
    /// Examples:
    ///   statehouse why job jobs.import.9001
    ///   statehouse why job charge --group order-7
    #[command(verbatim_doc_comment)]
    Job {
        /// The record.
        name: String,
    },
    /// Why a run is as it is: its status, the steps that are under way, how long it has been quiet.
    ///
    /// Examples:
    ///   statehouse why run order-7
    ///   statehouse why run order-7 -o json
    #[command(verbatim_doc_comment)]
    Run {
        /// The run.
        name: String,
    },
    /// Why a session is as it is: whether its client lives, what it holds, what waits for it.
    ///
    /// Examples:
    ///   statehouse why session 7
    ///   statehouse why session 7 -o json
    #[command(verbatim_doc_comment)]
    Session {
        /// The session.
        name: u64,
    },
}

/// What was found out.
struct Reasons {
    /// What it is now, and since when.
    now: String,
    /// What it waits for.
    waits_for: String,
    /// What happens next.
    next: String,
    /// Everything above as data, and what it was read from.
    found: JsonValue,
    /// What happened to it, oldest first.
    history: Vec<JsonValue>,
    columns: &'static [Column],
}

/// How a change is shown here.
const CHANGES: &[Column] = &[column("WHEN", "at", Style::Ago), plain("WHAT", "reason"), plain("VERSION", "version")];

/// Changes that are shown.
const SHOWN_MAX: usize = 10;
/// Pages of the change feed that are read at most.
const PAGES_MAX: usize = 500;

impl Why {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        self.reach.run(async |connection| {
            let reasons = match &self.what {
                What::Job { name } => job::reasons(connection, name).await?,
                What::Run { name } => run::reasons(connection, name).await?,
                What::Session { name } => session::reasons(connection, *name).await?,
            };
            reasons.show(&output)
        })
    }
}

impl Reasons {
    fn show(mut self, output: &Output) -> Result<(), Failure> {
        let last = self.history.len().saturating_sub(SHOWN_MAX);
        let history = &self.history[last..];
        if output.format != Format::Table && output.format != Format::Raw {
            self.found["now"] = self.now.into();
            self.found["waits_for"] = self.waits_for.into();
            self.found["next"] = self.next.into();
            self.found["history"] = history.into();
            return output.one(&self.found, &[]);
        }
        let columns = output.columns();
        let mut text = paragraph("", &self.now, columns);
        text += &paragraph("  waits for: ", &self.waits_for, columns);
        text += &paragraph("  next:      ", &self.next, columns);
        output.line(text.trim_end())?;
        if history.is_empty() {
            return Ok(());
        }
        output.line("")?;
        output.table(history, self.columns)
    }
}

/// What the change feed says of one thing, oldest first, and whether it says all.
async fn changes(connection: &Connection, kind: &str, name: &str) -> Result<(Vec<JsonValue>, bool), Failure> {
    let (mut found, mut from, mut complete) = (Vec::new(), 0, true);
    for _ in 0..PAGES_MAX {
        let call = Call::get("/v1/changes").query("prefix", Some(name)).query("from", Some(from));
        let page = connection.ask(call.query("limit", Some(1_000))).await?;
        if let Some(oldest) = page["gap"]["oldest"].as_u64() {
            (from, complete) = (oldest, false);
            continue;
        }
        let changes = page["changes"].as_array().into_iter().flatten();
        let in_group = |change: &JsonValue| match connection.group() {
            Some(group) => change["group"] == group,
            None => change["group"].is_null(),
        };
        found.extend(
            changes.filter(|change| change["kind"] == kind && change["name"] == name && in_group(change)).cloned(),
        );
        from = page["next"].as_u64().unwrap_or(from);
        if page["more"] != true {
            return Ok((found, complete));
        }
    }
    Ok((found, false))
}

/// The last change for one of these reasons.
fn last_of<'found>(history: &'found [JsonValue], reasons: &[&str]) -> Option<&'found JsonValue> {
    history.iter().rev().find(|change| reasons.iter().any(|reason| change["reason"] == *reason))
}

/// When a change was, for people.
fn when(change: Option<&JsonValue>) -> String {
    match change.and_then(|change| change["at"].as_str()) {
        Some(at) => table::ago(at),
        None => "at a time that is not kept".to_owned(),
    }
}

fn not_there(kind: &str, name: &str, history: &[JsonValue]) -> Failure {
    let gone = last_of(history, &["deleted", "expired", "session_ended"]);
    let detail = match gone {
        Some(change) => {
            let how = match change["reason"].as_str() {
                Some("expired") => "its time was over",
                Some("session_ended") => "the session that it belonged to ended",
                _ => "it was deleted",
            };
            format!("there is no {kind} {name:?} any more: {how} {}", when(Some(change)))
        }
        None => format!("there is no {kind} {name:?}, and the change feed does not know of one"),
    };
    Failure::new(crate::exit::Exit::NotFound, detail).next("check the name, and --group, --space and --branch")
}

fn named(worker: &JsonValue) -> String {
    match worker.as_str() {
        Some(worker) if !worker.is_empty() => table::one_line(worker),
        _ => "a worker without a name".to_owned(),
    }
}

fn with(found: &JsonValue, kind: &str) -> JsonValue {
    let mut found = found.clone();
    found["kind"] = json!(kind);
    found
}
