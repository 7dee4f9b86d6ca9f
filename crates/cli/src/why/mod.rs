//! `why`: who holds a record, run, operator or session, since when, what it waits for, and what happens next.
//!
//! Combines what the API reports; contracts explain their own things with what is here. Keeps: states only what was read, and
//! says when the change feed no longer keeps the rest.

mod session;

use clap::{Args, Subcommand};
use client::{Call, Client};
use serde_json::{Value as JsonValue, json};
use wire::changes::ReadChanges;
use wire::routes::CHANGES_READ;
use wire::values::{FeedCursor, PageCursor};

use crate::connection::{Ask, Connection};
use crate::exit::Failure;
use crate::output::{Format, Output};
use crate::reach::Reach;
use crate::table::{self, Column, Style, column, paragraph, plain};
use crate::with_contracts;

/// Explain the state of a job, a run, an operator or a session, and what happens next.
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

macro_rules! what {
    ($($folder:ident: $noun:ident { $($explained:ident)? })*) => {
        #[derive(Subcommand)]
        enum What {
            $($($explained(crate::$folder::why::$explained),)?)*
            Session(session::Session),
        }

        impl What {
            async fn explain(&self, connection: &Connection) -> Result<Vec<Reasons>, Failure> {
                match self {
                    $($(What::$explained(explained) => explained.explain(connection).await,)?)*
                    What::Session(session) => Ok(vec![session.explain(connection).await?]),
                }
            }
        }
    };
}

with_contracts!(what);

/// The explanation.
pub(crate) struct Reasons {
    /// What it is now, and since when.
    pub(crate) now: String,
    /// What it waits for.
    pub(crate) waits_for: String,
    /// What happens next.
    pub(crate) next: String,
    /// All of the above as data, with its sources.
    pub(crate) found: JsonValue,
    /// What happened to it, oldest first.
    pub(crate) history: Vec<JsonValue>,
    pub(crate) columns: &'static [Column],
}

/// How a change is shown here.
pub(crate) const CHANGES: &[Column] =
    &[column("WHEN", "at", Style::Ago), plain("WHAT", "reason"), plain("VERSION", "version")];

/// Changes to show.
const SHOWN_MAX: usize = 10;
/// Pages of the change feed to read at most.
const PAGES_MAX: usize = 500;

impl Why {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        self.reach.run(async |connection| show(self.what.explain(connection).await?, &output))
    }
}

/// Shows the explanation of one thing, or of everything with the name.
fn show(mut reasons: Vec<Reasons>, output: &Output) -> Result<(), Failure> {
    match output.format {
        Format::Table | Format::Raw => {
            for (place, one) in reasons.iter().enumerate() {
                if place > 0 {
                    output.line("")?;
                }
                one.show(output)?;
            }
            Ok(())
        }
        Format::Json if reasons.len() > 1 => {
            let found: Vec<_> = reasons.into_iter().map(Reasons::data).collect();
            output.one(&json!({ "found": found }), &[])
        }
        _ => reasons.drain(..).try_for_each(|reasons| output.one(&reasons.data(), &[])),
    }
}

impl Reasons {
    fn shown_history(&self) -> &[JsonValue] {
        &self.history[self.history.len().saturating_sub(SHOWN_MAX)..]
    }

    fn data(self) -> JsonValue {
        let history = self.shown_history().to_vec();
        let Self { now, waits_for, next, mut found, .. } = self;
        found["now"] = now.into();
        found["waits_for"] = waits_for.into();
        found["next"] = next.into();
        found["history"] = history.into();
        found
    }

    fn show(&self, output: &Output) -> Result<(), Failure> {
        let columns = output.columns();
        let mut text = paragraph("", &self.now, columns);
        text += &paragraph("  waits for: ", &self.waits_for, columns);
        text += &paragraph("  next:      ", &self.next, columns);
        output.line(text.trim_end())?;
        match self.shown_history() {
            [] => Ok(()),
            history => {
                output.line("")?;
                output.table(history, self.columns)
            }
        }
    }
}

/// The thing to explain.
pub(crate) struct Thing<'why> {
    pub(crate) name: &'why str,
    /// Its group; none if the group is its own name.
    pub(crate) group: Option<String>,
}

impl Thing<'_> {
    /// A client in the thing's group.
    pub(crate) fn client(&self, connection: &Connection) -> Client {
        match &self.group {
            Some(group) => connection.client().group(group),
            None => connection.client().clone(),
        }
    }

    /// The name for people.
    pub(crate) fn title(&self) -> String {
        match &self.group {
            None => table::one_line(self.name),
            Some(group) => format!("{} in group {}", table::one_line(self.name), table::one_line(group)),
        }
    }

    /// Whether a change is of this thing.
    pub(crate) fn is_of(&self, change: &JsonValue) -> bool {
        change["name"] == self.name && change["group"].as_str() == self.group.as_deref()
    }
}

/// Explains everything with the name, in the requested group or in all groups. `page` lists things of the kind, with their
/// names in the member `member` of the rows in `key`.
pub(crate) async fn explain_all(
    connection: &Connection,
    kind: &str,
    (key, member): (&str, &str),
    page: impl Fn(Option<PageCursor>) -> Call,
    name: &str,
    explain: impl AsyncFn(Thing<'_>) -> Result<Reasons, Failure>,
) -> Result<Vec<Reasons>, Failure> {
    let mut found = Vec::new();
    for thing in things(connection, kind, (key, member), page, name).await? {
        found.push(explain(thing).await?);
    }
    Ok(found)
}

async fn things<'why>(
    connection: &Connection,
    kind: &str,
    (key, member): (&str, &str),
    page: impl Fn(Option<PageCursor>) -> Call,
    name: &'why str,
) -> Result<Vec<Thing<'why>>, Failure> {
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = page(cursor).ask().await?;
        let rows = page[key].as_array().map(Vec::as_slice).unwrap_or_default();
        let named = rows.iter().take_while(|row| row[member] == name);
        found.extend(named.map(|row| Thing { name, group: row["group"].as_str().map(str::to_owned) }));
        cursor = page["cursor"].as_str().and_then(PageCursor::parse);
        // The list is sorted by name, so nothing with the name follows another name.
        if cursor.is_none() || rows.last().is_some_and(|row| row[member] != name) {
            break;
        }
    }
    if found.is_empty() {
        let (history, _) = changes(connection, kind, |change| change["name"] == name, name).await?;
        return Err(not_there(kind, name, &history));
    }
    Ok(found)
}

/// The changes of everything with a name, oldest first, and whether they are complete.
pub(crate) async fn changes(
    connection: &Connection,
    kind: &str,
    is_of: impl Fn(&JsonValue) -> bool,
    name: &str,
) -> Result<(Vec<JsonValue>, bool), Failure> {
    let (mut found, mut from, mut complete) = (Vec::new(), FeedCursor(0), true);
    for _ in 0..PAGES_MAX {
        let query = ReadChanges {
            prefix: Some(name.to_owned()),
            from: Some(from),
            limit: Some(1_000),
            ..ReadChanges::default()
        };
        let page = connection.call(CHANGES_READ, &[]).query(&query).ask().await?;
        if let Some(oldest) = page["gap"]["oldest"].as_str().and_then(FeedCursor::parse) {
            (from, complete) = (oldest, false);
            continue;
        }
        let changes = page["changes"].as_array().into_iter().flatten();
        found.extend(changes.filter(|change| change["kind"] == kind && is_of(change)).cloned());
        from = page["next"].as_str().and_then(FeedCursor::parse).unwrap_or(from);
        if page["more"] != true {
            return Ok((found, complete));
        }
    }
    Ok((found, false))
}

/// The last change for one of these reasons.
pub(crate) fn last_of<'found>(history: &'found [JsonValue], reasons: &[&str]) -> Option<&'found JsonValue> {
    history.iter().rev().find(|change| reasons.iter().any(|reason| change["reason"] == *reason))
}

/// The time of a change, for people.
pub(crate) fn when(change: Option<&JsonValue>) -> String {
    match change.and_then(|change| change["at"].as_str()) {
        Some(at) => table::ago(at),
        None => "at an unknown time".to_owned(),
    }
}

pub(crate) fn not_there(kind: &str, name: &str, history: &[JsonValue]) -> Failure {
    let gone = last_of(history, &["deleted", "expired", "session_ended"]);
    let detail = match gone {
        Some(change) => {
            let how = match change["reason"].as_str() {
                Some("expired") => "it expired",
                Some("session_ended") => "its session ended",
                _ => "it was deleted",
            };
            format!("there is no {kind} {name:?} any more: {how} {}", when(Some(change)))
        }
        None => format!("there is no {kind} {name:?}, and the change feed has no trace of one"),
    };
    Failure::new(crate::exit::Exit::NotFound, detail).next("check the name, --group, --space and --branch")
}

pub(crate) fn named(worker: &JsonValue) -> String {
    match worker.as_str() {
        Some(worker) if !worker.is_empty() => table::one_line(worker),
        _ => "an unnamed worker".to_owned(),
    }
}

pub(crate) fn with(found: &JsonValue, kind: &str) -> JsonValue {
    let mut found = found.clone();
    found["kind"] = json!(kind);
    found
}
