//! The verbs of a worker: claim a record, then extend, step, release, complete or fail the attempt.

use std::time::Duration;

use clap::Subcommand;
use client::Call;
use statehouse::shell::Suggested;
use wire::records::claims::Claim;
use wire::records::{CompleteAttempt, ExtendAttempt, FailAttempt, ReleaseAttempt, StepAttempt};
use wire::routes::{
    RECORDS_CLAIM, RECORDS_COMPLETE, RECORDS_EXTEND, RECORDS_FAIL, RECORDS_RELEASE, RECORDS_STEP, Route,
};
use wire::values::DurationText;

use super::WRITTEN;
use crate::connection::{Ask, Connection};
use crate::exit::{Exit, Failure};
use crate::given;
use crate::output::Output;
use crate::reach::duration;
use crate::table::{Column, Style, column, plain};

/// Verbs of `rec` that workers use.
#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Claim the next jobs with a prefix, or one job by name. Exits with 3 if there is none.
    ///
    /// Examples:
    ///   statehouse rec claim jobs. --worker w1
    ///   statehouse rec claim jobs. --n 10 --lease 5m --wait 30s -o jsonl
    #[command(verbatim_doc_comment)]
    Claim {
        /// Prefix of their names.
        #[arg(default_value = "")]
        prefix: String,
        /// Claim the record with this name.
        #[arg(long, conflicts_with = "prefix")]
        name: Option<String>,
        /// Claim at most this many.
        #[arg(long, default_value_t = 1)]
        n: u32,
        /// Name of the worker.
        #[arg(long)]
        worker: Option<String>,
        /// How long the worker holds them unless it extends the lease. Default: the lease of the type.
        #[arg(long, value_parser = duration)]
        lease: Option<Duration>,
        /// How long to wait if nothing is ready.
        #[arg(long, value_parser = duration, default_value = "0s")]
        wait: Duration,
    },
    /// Extend the lease of a claimed record.
    ///
    /// Examples:
    ///   statehouse rec extend jobs.email.1 1
    ///   statehouse rec extend jobs.email.1 1 --lease 5m
    #[command(verbatim_doc_comment)]
    Extend {
        /// The record's name.
        name: String,
        /// The attempt number from the claim.
        attempt: u64,
        /// The lease, starting now. Default: the same as at the claim.
        #[arg(long, value_parser = duration)]
        lease: Option<Duration>,
    },
    /// Change fields of a claimed record, including its state.
    ///
    /// Examples:
    ///   statehouse rec step jobs.email.1 1 state=running
    ///   statehouse rec step jobs.email.1 1 progress=40
    #[command(verbatim_doc_comment)]
    Step {
        /// The record's name.
        name: String,
        /// The attempt number from the claim.
        attempt: u64,
        /// NAME=VALUE for each field; or one JSON object, as text, @FILE or - for stdin.
        fields: Vec<String>,
    },
    /// Release a claimed record; it can be claimed again at once.
    ///
    /// Examples:
    ///   statehouse rec release jobs.email.1 1
    ///   statehouse rec release jobs.email.1 1 -o json
    #[command(verbatim_doc_comment)]
    Release {
        /// The record's name.
        name: String,
        /// The attempt number from the claim.
        attempt: u64,
    },
    /// Complete a claimed record.
    ///
    /// Examples:
    ///   statehouse rec complete jobs.email.1 1 result=sent
    ///   statehouse rec complete jobs.email.1 1 @result.json
    #[command(verbatim_doc_comment)]
    Complete {
        /// The record's name.
        name: String,
        /// The attempt number from the claim.
        attempt: u64,
        /// NAME=VALUE for each field; or one JSON object, as text, @FILE or - for stdin.
        fields: Vec<String>,
    },
    /// Report a failed attempt. The record is retried after a back-off, as often as its type allows.
    ///
    /// Examples:
    ///   statehouse rec fail jobs.email.1 1 --error "mail server is down"
    ///   statehouse rec fail jobs.email.1 2 -o json
    #[command(verbatim_doc_comment)]
    Fail {
        /// The record's name.
        name: String,
        /// The attempt number from the claim.
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
        let of = |route: Route, name: &str| -> Call { connection.call(route, &[name]) };
        match self {
            Verb::Claim { prefix, name, n, worker, lease, wait } => {
                let claim = Claim {
                    prefix: name.is_none().then(|| prefix.clone()),
                    name: name.clone(),
                    n: Some(*n),
                    worker: worker.clone(),
                    lease: lease.map(DurationText),
                    wait: Some(DurationText(*wait)),
                };
                let call = connection.call(RECORDS_CLAIM, &[]).json(&claim).waiting(Some(*wait));
                let found = call.ask().await?;
                if found["claimed"].as_array().is_none_or(Vec::is_empty) {
                    let which = name.as_ref().unwrap_or(prefix);
                    return Err(Failure::new(Exit::NotFound, format!("nothing ready to claim: {which:?}"))
                        .run("see which records exist", Suggested::new(["statehouse", "rec", "count"])));
                }
                output.list(&found, "claimed", CLAIMED)
            }
            Verb::Extend { name, attempt, lease } => {
                let body = ExtendAttempt { attempt: *attempt, lease: lease.map(DurationText) };
                output.one(&of(RECORDS_EXTEND, name).json(&body).ask().await?, WRITTEN)
            }
            Verb::Step { name, attempt, fields } => {
                let body = StepAttempt { attempt: *attempt, fields: Some(given::fields(fields, false)?) };
                output.one(&of(RECORDS_STEP, name).json(&body).ask().await?, WRITTEN)
            }
            Verb::Release { name, attempt } => {
                let body = ReleaseAttempt { attempt: *attempt };
                output.one(&of(RECORDS_RELEASE, name).json(&body).ask().await?, WRITTEN)
            }
            Verb::Complete { name, attempt, fields } => {
                let body = CompleteAttempt { attempt: *attempt, fields: Some(given::fields(fields, false)?) };
                output.one(&of(RECORDS_COMPLETE, name).json(&body).ask().await?, WRITTEN)
            }
            Verb::Fail { name, attempt, error } => {
                let body = FailAttempt { attempt: *attempt, error: Some(error.clone()) };
                output.one(&of(RECORDS_FAIL, name).json(&body).ask().await?, FAILED)
            }
        }
    }
}
