//! `rec`: records, the state of jobs.
//!
//! - `attempt`: the verbs of an attempt. `types`: record types. `filter`: the tests of a scan.
//! - `why`: why a job is in its state. `bench`: jobs as a load. `contract`, `held`: records in commands across the contracts.

mod attempt;
mod bench;
mod contract;
mod filter;
mod held;
pub(crate) mod scopes;
mod types;
pub(crate) mod why;

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value as JsonValue, json};
use statehouse::records::{Filter, Ttl};
use wire::records::{CountRecords, PatchRecord, PutRecord, ReadRecord, ScanRecords, TtlText, Where};
use wire::routes::{
    RECORDS_COUNTS, RECORDS_DELETE, RECORDS_PATCH, RECORDS_PUT, RECORDS_READ, RECORDS_SCAN, TYPES_LIST,
};
use wire::values::Members;

use crate::connection::{Ask, Connection};
use crate::exit::Failure;
use crate::expect_flag::Expect;
use crate::following::Follow;
use crate::given;
use crate::output::{Format, Output};
use crate::reach::{Reach, duration};
use crate::repeating::{Listing, Sure};
use crate::table::{self, Column, Style, column, plain};

/// Jobs and other records: fields, TTL, claims, retries.
///
/// Examples:
///   statehouse rec set jobs.email.1 to=ann@example.org --type task
///   statehouse rec claim jobs. --worker w1 --lease 30s
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Rec {
    #[command(flatten)]
    reach: Reach,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Show a record.
    ///
    /// Examples:
    ///   statehouse rec get jobs.email.1
    ///   statehouse rec get jobs.email.1 to
    ///   statehouse rec get jobs.email.1 -o json | jq .fields
    #[command(verbatim_doc_comment)]
    Get {
        /// The record's name.
        name: String,
        /// Only this field; the others are not read.
        field: Option<String>,
    },
    /// Set a record to exactly these fields.
    ///
    /// Examples:
    ///   statehouse rec set jobs.email.1 to=ann@example.org --type task
    ///   statehouse rec set users.7 @user.json --ttl 7d --expect absent
    #[command(verbatim_doc_comment)]
    Set {
        /// The record's name.
        name: String,
        /// NAME=VALUE for each field; or one JSON object, as text, @FILE or - for stdin.
        fields: Vec<String>,
        /// The record's type. Default: the one declared for a prefix of its name.
        #[arg(long = "type", value_name = "TYPE")]
        record_type: Option<String>,
        /// Time until the record expires: a duration, or `keep` to leave it unchanged.
        #[arg(long, value_name = "DURATION")]
        ttl: Option<String>,
        /// Treat values as text, even if they parse as JSON.
        #[arg(long)]
        text: bool,
        #[command(flatten)]
        expect: Expect,
    },
    /// Change fields of a record in one commit, provided that every --expect matches.
    ///
    /// Examples:
    ///   statehouse rec patch users.7 email=ann@example.org --unset phone
    ///   statehouse rec patch jobs.email.1 priority=1 --expect state=pending
    #[command(verbatim_doc_comment)]
    Patch {
        /// The record's name.
        name: String,
        /// NAME=VALUE for each field to set; or one JSON object, as text, @FILE or - for stdin.
        fields: Vec<String>,
        /// A field to remove.
        #[arg(long, value_name = "FIELD")]
        unset: Vec<String>,
        /// The value that a field must have; `FIELD=null` means that it must be absent.
        #[arg(long, value_name = "FIELD=VALUE")]
        expect: Vec<String>,
        /// Time until the record expires.
        #[arg(long, value_name = "DURATION")]
        ttl: Option<String>,
        /// Treat values as text, even if they parse as JSON.
        #[arg(long)]
        text: bool,
    },
    /// Delete a record.
    ///
    /// Examples:
    ///   statehouse rec del users.7
    ///   statehouse rec del users.7 --expect 3 --yes
    #[command(verbatim_doc_comment)]
    Del {
        /// The record's name.
        name: String,
        #[command(flatten)]
        expect: Expect,
        #[command(flatten)]
        sure: Sure,
    },
    /// Add to a number in a field, starting from 0 if it is absent.
    ///
    /// Examples:
    ///   statehouse rec incr stats.today visits
    ///   statehouse rec incr stats.today visits -- -5
    #[command(verbatim_doc_comment)]
    Incr {
        /// The record's name.
        name: String,
        /// The field.
        field: String,
        /// The number to add.
        #[arg(default_value_t = 1)]
        by: i64,
    },
    /// Find records by name prefix and tests of their fields, in all groups, or in one with --group.
    ///
    /// Examples:
    ///   statehouse rec ls jobs. --where state=pending
    ///   statehouse rec scan users. --where 'age>=18' --where 'email exists' -o jsonl
    #[command(verbatim_doc_comment, visible_alias = "ls")]
    Scan {
        /// Prefix of their names.
        #[arg(default_value = "")]
        prefix: String,
        /// A test they must pass: FIELD=VALUE, !=, <, <=, >, >=, `FIELD in A,B`, `FIELD exists`.
        #[arg(long = "where", value_name = "TEST")]
        tests: Vec<String>,
        /// Their type; its indexes are used.
        #[arg(long = "type", value_name = "TYPE")]
        record_type: Option<String>,
        /// Continue where an earlier scan ended.
        #[arg(long)]
        cursor: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Follow all changes of records by name prefix, including claims, rescues and expiry.
    ///
    /// Examples:
    ///   statehouse rec watch jobs.
    ///   statehouse rec watch jobs. --for 10s -o jsonl
    #[command(verbatim_doc_comment)]
    Watch {
        /// Prefix of their names.
        #[arg(default_value = "")]
        prefix: String,
        #[command(flatten)]
        follow: Follow,
    },
    /// Show or set the time until a record expires.
    ///
    /// Examples:
    ///   statehouse rec ttl users.7
    ///   statehouse rec ttl users.7 30m
    #[command(verbatim_doc_comment)]
    Ttl {
        /// The record's name.
        name: String,
        /// The new time until it expires, starting now.
        #[arg(value_parser = duration)]
        time: Option<Duration>,
    },
    /// Count records by type and state, in all groups, or in one with --group.
    ///
    /// Examples:
    ///   statehouse rec count
    ///   statehouse rec count jobs. -o json
    #[command(verbatim_doc_comment)]
    Count {
        /// Prefix of their names.
        #[arg(default_value = "")]
        prefix: String,
        #[command(flatten)]
        listing: Listing,
    },
    /// List the declared types, or declare one.
    ///
    /// Examples:
    ///   statehouse rec type
    ///   statehouse rec type jobs. @task.json
    #[command(verbatim_doc_comment)]
    Type(types::Type),
    #[command(flatten)]
    Attempt(attempt::Verb),
}

const RECORD: &[Column] = &[
    plain("NAME", "name"),
    plain("TYPE", "type"),
    plain("VERSION", "version"),
    plain("ATTEMPT", "attempt"),
    plain("WORKER", "holder.worker"),
    column("LEASE LEFT", "holder.lease_ms", Style::Millis),
    column("TTL LEFT", "ttl_ms", Style::Millis),
];

const FIELD: &[Column] =
    &[plain("FIELD", "field"), column("VALUE", "value", Style::Value), plain("VERSION", "version")];

const SCANNED: &[Column] = &[
    plain("NAME", "name").raw(),
    plain("GROUP", "group").optional(),
    plain("TYPE", "type"),
    plain("STATE", "state"),
    column("AGE", "created_at", Style::Age),
    plain("ATTEMPT", "attempt"),
    plain("WORKER", "holder.worker"),
    plain("VERSION", "version").spare(),
    column("FIELDS", "fields", Style::Value).spare(),
];

const WRITTEN: &[Column] = &[plain("VERSION", "version").raw(), plain("COMMIT", "commit")];

const COUNTED: &[Column] = &[plain("TYPE", "type"), plain("STATE", "state"), plain("COUNT", "count").raw()];

impl Rec {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        self.reach.run(async |connection| self.verb.run(connection, &output).await)
    }
}

impl Verb {
    async fn run(&self, connection: &Connection, output: &Output) -> Result<(), Failure> {
        match self {
            Verb::Get { name, field } => {
                let query = ReadRecord { field: field.clone() };
                show(&connection.call(RECORDS_READ, &[name]).query(&query).ask().await?, output)
            }
            Verb::Set { name, fields, record_type, ttl, text, expect } => {
                let body = PutRecord {
                    fields: given::fields(fields, *text)?,
                    record_type: record_type.clone(),
                    ttl: given::word_if_given("--ttl", ttl)?,
                };
                let call = connection.call(RECORDS_PUT, &[name]).json(&body);
                output.one(&expect.of(call).ask().await?, WRITTEN)
            }
            Verb::Patch { name, fields, unset, expect, ttl, text } => {
                let expected: Result<Members<_>, _> = expect.iter().map(|one| given::one_field(one, *text)).collect();
                let body = PatchRecord {
                    set: Some(given::fields(fields, *text)?),
                    unset: Some(unset.clone()),
                    expect: Some(expected?),
                    ttl: given::word_if_given("--ttl", ttl)?,
                    ..PatchRecord::default()
                };
                output.one(&connection.call(RECORDS_PATCH, &[name]).json(&body).ask().await?, WRITTEN)
            }
            Verb::Del { name, expect, sure } => {
                sure.or_ask(&format!("delete the record {name:?}"))?;
                let call = expect.of(connection.call(RECORDS_DELETE, &[name]));
                output.one(&call.ask().await?, &[plain("VERSION", "version").raw()])
            }
            Verb::Incr { name, field, by } => {
                let incr = Some(Members(vec![(field.clone(), *by)]));
                let body = PatchRecord { incr, ..PatchRecord::default() };
                let mut found = connection.call(RECORDS_PATCH, &[name]).json(&body).ask().await?;
                if output.format == Format::Table || output.format == Format::Raw {
                    found = json!({ "field": field, "value": found["values"][field] });
                }
                output.one(&found, &[plain("FIELD", "field"), plain("VALUE", "value").raw()])
            }
            Verb::Scan { prefix, tests, record_type, cursor, listing } => {
                let tests: Vec<_> = tests.iter().map(|test| filter::test(test)).collect::<Result<_, _>>()?;
                let query = ScanRecords {
                    prefix: Some(prefix.clone()),
                    filter: (!tests.is_empty()).then_some(Where(Filter { tests })),
                    record_type: record_type.clone(),
                    limit: Some(listing.limit),
                    cursor: given::word_if_given("--cursor", cursor)?,
                };
                let once = async || {
                    let mut found = connection.call(RECORDS_SCAN, &[]).query(&query).ask().await?;
                    if output.format == Format::Table {
                        add_states(connection, &mut found).await?;
                    }
                    output.list(&found, "records", SCANNED)?;
                    match found["cursor"].as_str() {
                        Some(cursor) => output.more("there may be more", "--cursor", cursor),
                        None => Ok(()),
                    }
                };
                listing.run(output, once).await
            }
            Verb::Watch { prefix, follow } => follow.show(connection, output, prefix, Some("record")).await,
            Verb::Ttl { name, time: None } => {
                let found = connection.call(RECORDS_READ, &[name]).ask().await?;
                let found = json!({ "name": found["name"], "ttl_ms": found["ttl_ms"] });
                output.one(&found, &[plain("NAME", "name"), column("TTL LEFT", "ttl_ms", Style::Millis).raw()])
            }
            Verb::Ttl { name, time: Some(time) } => {
                let body = PatchRecord { ttl: Some(TtlText(Ttl::After(*time))), ..PatchRecord::default() };
                output.one(&connection.call(RECORDS_PATCH, &[name]).json(&body).ask().await?, WRITTEN)
            }
            Verb::Count { prefix, listing } => {
                let query = CountRecords { prefix: Some(prefix.clone()) };
                let once = async || {
                    let found = connection.call(RECORDS_COUNTS, &[]).query(&query).ask().await?;
                    output.list(&listing.first(found, "counts"), "counts", COUNTED)
                };
                listing.run(output, once).await
            }
            Verb::Type(record_type) => record_type.run(connection, output).await,
            Verb::Attempt(verb) => verb.run(connection, output).await,
        }
    }
}

/// Shows a record, with its fields below.
fn show(record: &JsonValue, output: &Output) -> Result<(), Failure> {
    if output.format != Format::Table {
        return output.one(record, RECORD);
    }
    let fields = record["fields"].as_object().into_iter().flatten();
    let fields: Vec<_> = fields
        .map(|(field, value)| json!({ "field": field, "value": value, "version": record["field_versions"][field] }))
        .collect();
    output.line(&(table::card(record, RECORD) + "\n"))?;
    output.table(&fields, FIELD)
}

/// Adds the state to each record of a page: the value of the field that its type names.
async fn add_states(connection: &Connection, found: &mut JsonValue) -> Result<(), Failure> {
    let records = found["records"].as_array_mut().map(Vec::as_mut_slice).unwrap_or_default();
    if records.iter().all(|record| record["type"].is_null()) {
        return Ok(());
    }
    let types = connection.call(TYPES_LIST, &[]).ask().await?;
    for record in records {
        let mut declared = types["types"].as_array().into_iter().flatten();
        let declared = declared.find(|declared| declared["name"] == record["type"]);
        let field = declared.and_then(|declared| declared["state_field"].as_str());
        if let Some(field) = field {
            record["state"] = record["fields"][field].clone();
        }
    }
    Ok(())
}
