//! What a worker does with a record: claim it, and extend, step, release, complete or fail the attempt.

use std::time::Duration;

use clap::Subcommand;
use serde_json::{Map, Value as JsonValue, json};
use statehouse::shell::Suggested;

use crate::connection::{Call, Connection, path};
use crate::exit::{Exit, Failure};
use crate::given;
use crate::output::Output;
use crate::reach::duration;
use crate::rec::WRITTEN;
use crate::table::{Column, Style, column, plain};

/// Verbs of `rec`.
#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Claim the next jobs with a prefix, or one by name. Exits with 3 if there is none.
    ///
    /// Examples:
    ///   statehouse rec claim jobs. --worker w1
    ///   statehouse rec claim jobs. --n 10 --lease 5m --wait 30s -o jsonl
    #[command(verbatim_doc_comment)]
    Claim {
        /// How their names begin.
        #[arg(default_value = "")]
        prefix: String,
        /// This record, by name.
        #[arg(long, conflicts_with = "prefix")]
        name: Option<String>,
        /// How many, at most.
        #[arg(long, default_value_t = 1)]
        n: u64,
        /// Who claims.
        #[arg(long)]
        worker: Option<String>,
        /// How long they are held, unless that is extended; left out, what the type says.
        #[arg(long, value_parser = duration)]
        lease: Option<Duration>,
        /// How long to wait for one.
        #[arg(long, value_parser = duration, default_value = "0s")]
        wait: Duration,
    },
    /// Hold a claimed record longer.
    ///
    /// Examples:
    ///   statehouse rec extend jobs.email.1 1
    ///   statehouse rec extend jobs.email.1 1 --lease 5m
    #[command(verbatim_doc_comment)]
    Extend {
        /// Its name.
        name: String,
        /// The attempt, as the claim said.
        attempt: u64,
        /// How long from now on; left out, as long as the claim was.
        #[arg(long, value_parser = duration)]
        lease: Option<Duration>,
    },
    /// Change fields of a claimed record, its state among them.
    ///
    /// Examples:
    ///   statehouse rec step jobs.email.1 1 state=running
    ///   statehouse rec step jobs.email.1 1 progress=40
    #[command(verbatim_doc_comment)]
    Step {
        /// Its name.
        name: String,
        /// The attempt, as the claim said.
        attempt: u64,
        /// NAME=VALUE for each field; or one JSON object, as text, @FILE or - for stdin.
        fields: Vec<String>,
    },
    /// Give a claimed record back, to be claimed again at once.
    ///
    /// Examples:
    ///   statehouse rec release jobs.email.1 1
    ///   statehouse rec release jobs.email.1 1 -o json
    #[command(verbatim_doc_comment)]
    Release {
        /// Its name.
        name: String,
        /// The attempt, as the claim said.
        attempt: u64,
    },
    /// Finish a claimed record.
    ///
    /// Examples:
    ///   statehouse rec complete jobs.email.1 1 result=sent
    ///   statehouse rec complete jobs.email.1 1 @result.json
    #[command(verbatim_doc_comment)]
    Complete {
        /// Its name.
        name: String,
        /// The attempt, as the claim said.
        attempt: u64,
        /// NAME=VALUE for each field; or one JSON object, as text, @FILE or - for stdin.
        fields: Vec<String>,
    },
    /// Say that an attempt failed; the record is tried again after a pause, as long as its type allows.
    ///
    /// Examples:
    ///   statehouse rec fail jobs.email.1 1 --error "mail server is down"
    ///   statehouse rec fail jobs.email.1 2 -o json
    #[command(verbatim_doc_comment)]
    Fail {
        /// Its name.
        name: String,
        /// The attempt, as the claim said.
        attempt: u64,
        /// What went wrong.
        #[arg(long, default_value = "")]
        error: String,
    },
}

const CLAIMED: &[Column] = &[
    plain("RECORD", "record").raw(),
    plain("ATTEMPT", "attempt"),
    column("LEASE", "lease_ms", Style::Millis),
    plain("TOKEN", "token"),
    column("FIELDS", "fields", Style::Value),
];

const FAILED: &[Column] = &[column("NEXT TRY IN", "retry_in_ms", Style::Millis).raw(), plain("EXHAUSTED", "exhausted")];

impl Verb {
    pub(crate) async fn run(&self, connection: &Connection, output: &Output) -> Result<(), Failure> {
        let post = async |name: &str, action: &str, body: JsonValue| {
            connection.ask(Call::post(format!("{}/{action}", path("/v1/records", name)), body)).await
        };
        match self {
            Verb::Claim { prefix, name, n, worker, lease, wait } => {
                let mut body = Map::new();
                match name {
                    Some(name) => body.insert("name".into(), name.clone().into()),
                    None => body.insert("prefix".into(), prefix.clone().into()),
                };
                body.insert("n".into(), (*n).into());
                body.insert("wait".into(), text(*wait));
                body.extend(worker.clone().map(|worker| ("worker".to_owned(), worker.into())));
                body.extend(lease.map(|lease| ("lease".to_owned(), text(lease))));
                let found = connection.ask(Call::post("/v1/claims", body.into()).wait(*wait)).await?;
                if found["claimed"].as_array().is_none_or(Vec::is_empty) {
                    let which = name.as_ref().unwrap_or(prefix);
                    return Err(Failure::new(Exit::NotFound, format!("nothing is ready to be claimed: {which:?}"))
                        .run("see what there is", Suggested::new(["statehouse", "rec", "count"])));
                }
                output.list(&found, "claimed", CLAIMED)
            }
            Verb::Extend { name, attempt, lease } => {
                let body = json!({ "attempt": attempt, "lease": lease.map(text) });
                output.one(&post(name, "extend", body).await?, WRITTEN)
            }
            Verb::Step { name, attempt, fields } => {
                let body = json!({ "attempt": attempt, "fields": given::fields(fields, false)? });
                output.one(&post(name, "step", body).await?, WRITTEN)
            }
            Verb::Release { name, attempt } => {
                output.one(&post(name, "release", json!({ "attempt": attempt })).await?, WRITTEN)
            }
            Verb::Complete { name, attempt, fields } => {
                let body = json!({ "attempt": attempt, "fields": given::fields(fields, false)? });
                output.one(&post(name, "complete", body).await?, WRITTEN)
            }
            Verb::Fail { name, attempt, error } => {
                output.one(&post(name, "fail", json!({ "attempt": attempt, "error": error })).await?, FAILED)
            }
        }
    }
}

fn text(duration: Duration) -> JsonValue {
    format!("{}ms", duration.as_millis()).into()
}
