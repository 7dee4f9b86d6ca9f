//! Explains the state of a job.

use clap::Args;
use serde_json::{Value as JsonValue, json};
use wire::records::ScanRecords;
use wire::routes::{RECORDS_READ, RECORDS_SCAN, SESSIONS_READ, TYPES_LIST};

use crate::connection::{Ask, Connection};
use crate::exit::Failure;
use crate::table::millis;
use crate::why::{CHANGES, Reasons, Thing, changes, explain_all, last_of, named, not_there, when, with};

/// Explain a job: who holds it, which attempt, what it waits for. Searches all groups.
///
/// Examples:
///   statehouse why job jobs.import.9001
///   statehouse why job charge --group order-7
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Job {
    /// The record's name.
    name: String,
}

impl Job {
    pub(crate) async fn explain(&self, connection: &Connection) -> Result<Vec<Reasons>, Failure> {
        let page = |cursor| {
            let query = ScanRecords { prefix: Some(self.name.clone()), cursor, ..ScanRecords::default() };
            connection.call(RECORDS_SCAN, &[]).query(&query)
        };
        let of_one = async |thing: Thing<'_>| reasons(connection, thing).await;
        explain_all(connection, "record", ("records", "name"), page, &self.name, of_one).await
    }
}

async fn reasons(connection: &Connection, thing: Thing<'_>) -> Result<Reasons, Failure> {
    let record = thing.client(connection).call(RECORDS_READ, &[thing.name]).ask_if_there().await?;
    let (history, complete) = changes(connection, "record", |change| thing.is_of(change), thing.name).await?;
    let Some(record) = record else {
        return Err(not_there("record", thing.name, &history));
    };
    let declared = match record["type"].as_str() {
        Some(record_type) => declared(connection, record_type).await?,
        None => JsonValue::Null,
    };
    let session = match record["holder"]["session"].as_str() {
        Some(session) => connection.call(SESSIONS_READ, &[session]).ask_if_there().await?,
        None => None,
    };
    let title = thing.title();
    let job =
        State { title: &title, record: &record, declared: &declared, session: session.as_ref(), history: &history };
    let (now, waits_for, next) = job.say();
    let mut found = with(&record, "job");
    found["group"] = thing.group.clone().into();
    found["state"] = job.state().into();
    found["attempts_max"] = declared["attempts_max"].clone();
    found["claimed_at"] = last_of(&history, &["claimed"]).map_or(JsonValue::Null, |change| change["at"].clone());
    found["session"] = session.unwrap_or(JsonValue::Null);
    found["history_complete"] = complete.into();
    Ok(Reasons { now, waits_for, next, found, history, columns: CHANGES })
}

/// The type with this name.
async fn declared(connection: &Connection, name: &str) -> Result<JsonValue, Failure> {
    let found = connection.call(TYPES_LIST, &[]).ask().await?;
    let types = found["types"].as_array().into_iter().flatten();
    let mut types = types.filter(|declared| declared["name"] == name);
    Ok(types.next().cloned().unwrap_or(JsonValue::Null))
}

/// Everything that is known of a job.
struct State<'a> {
    title: &'a str,
    record: &'a JsonValue,
    declared: &'a JsonValue,
    session: Option<&'a JsonValue>,
    history: &'a [JsonValue],
}

impl State<'_> {
    fn state(&self) -> &str {
        let field = self.declared["state_field"].as_str().unwrap_or("state");
        self.record["fields"][field].as_str().unwrap_or("without a state")
    }

    fn kind(&self) -> &str {
        let states = self.declared["states"].as_array().into_iter().flatten();
        let mut found = states.filter(|state| state["name"] == self.state());
        found.next().and_then(|state| state["kind"].as_str()).unwrap_or("")
    }

    fn attempt(&self) -> u64 {
        self.record["attempt"].as_u64().unwrap_or(0)
    }

    fn failures(&self) -> String {
        let failures = self.record["failures"].as_u64().unwrap_or(0);
        match self.declared["attempts_max"].as_u64() {
            Some(max) => format!("{failures} of {max}"),
            None => failures.to_string(),
        }
    }

    /// Its state now, what it waits for, what happens next.
    fn say(&self) -> (String, String, String) {
        let name = self.title;
        if self.record["type"].is_null() {
            let now = format!("{name} is a record without a type, written {}", when(self.history.last()));
            return (now, "nothing".into(), "it cannot be claimed; set it with --type task to make it a job".into());
        }
        if !self.record["holder"].is_null() {
            return self.held(name);
        }
        match self.kind() {
            "terminal" => self.finished(name),
            _ => self.ready(name),
        }
    }

    fn held(&self, name: &str) -> (String, String, String) {
        let worker = named(&self.record["holder"]["worker"]);
        let since = when(last_of(self.history, &["claimed"]));
        let lease = millis(self.record["holder"]["lease_ms"].as_u64().unwrap_or(0));
        let session = match (self.record["holder"]["session"].as_str(), self.session) {
            (Some(id), Some(session)) => {
                format!("; its session {id} is {}", session["state"].as_str().unwrap_or("there"))
            }
            (Some(id), None) => format!("; its session {id} has ended, and the record is about to be released"),
            _ => String::new(),
        };
        let now =
            format!("{name} is {}: claimed by {worker} (attempt {}) {since}{session}", self.state(), self.attempt());
        let waits_for = format!("{worker}, whose lease ends in {lease} unless it is extended");
        let next = format!(
            "the worker completes, fails or releases it; otherwise the lease ends in {lease} and it is rescued ({} failed)",
            self.failures()
        );
        (now, waits_for, next)
    }

    fn finished(&self, name: &str) -> (String, String, String) {
        let ended = when(last_of(self.history, &["finished", "exhausted"]));
        let error = self.error();
        let now = format!("{name} is {}: it ended {ended}, with attempt {}{error}", self.state(), self.attempt());
        let next = match self.record["ttl_ms"].as_u64() {
            Some(ttl) => format!("nothing; it is removed in {}", millis(ttl)),
            None => "nothing; a finished record stays until it is deleted".to_owned(),
        };
        (now, "nothing".into(), next)
    }

    fn ready(&self, name: &str) -> (String, String, String) {
        let back = last_of(self.history, &["released", "failed", "rescued", "session_ended", "claimed", "written"]);
        let how = match back.and_then(|change| change["reason"].as_str()) {
            Some("failed") => format!("attempt {} failed {}", self.attempt(), when(back)),
            Some("released") => format!("attempt {} released it {}", self.attempt(), when(back)),
            Some("rescued") => format!("attempt {} lost it when its lease ended {}", self.attempt(), when(back)),
            Some("session_ended") => format!("the session of attempt {} ended {}", self.attempt(), when(back)),
            _ => format!("written {}", when(back)),
        };
        let now = format!("{name} is {}: {how}{}", self.state(), self.error());
        let attempt = self.attempt() + 1;
        match self.record["ready_in_ms"].as_u64() {
            Some(pause) => {
                let pause = millis(pause);
                let waits_for = format!("the back-off after a failure, which ends in {pause}");
                (now, waits_for, format!("attempt {attempt} can start in {pause} ({} failed)", self.failures()))
            }
            None => (
                now,
                "a worker to claim it".into(),
                format!("attempt {attempt} starts when it is claimed ({} failed)", self.failures()),
            ),
        }
    }

    fn error(&self) -> String {
        match &self.record["fields"]["error"] {
            JsonValue::String(error) if !error.is_empty() => format!("; last error: {}", json!(error)),
            _ => String::new(),
        }
    }
}
