//! `cell`: named values with versions and history.

use clap::{Args, Subcommand};
use hyper::Method;

use crate::connection::{Call, Connection, path};
use crate::exit::Failure;
use crate::expecting::{Expect, Expected};
use crate::following::Follow;
use crate::given;
use crate::output::Output;
use crate::reach::Reach;
use crate::repeating::Listing;
use crate::table::{Column, Style, column, plain};

/// Values with versions: get, set, compare and swap, history.
///
/// Examples:
///   statehouse cell set greeting hello
///   statehouse cell get greeting -o raw
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Cell {
    #[command(flatten)]
    reach: Reach,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Show a cell.
    ///
    /// Examples:
    ///   statehouse cell get greeting
    ///   statehouse cell get config/app -o raw > app.json
    #[command(verbatim_doc_comment)]
    Get {
        /// Its name.
        name: String,
    },
    /// Set a cell. The value is JSON if it reads as JSON, text otherwise; - is stdin, @FILE a file.
    ///
    /// Examples:
    ///   statehouse cell set deployment/colour blue
    ///   statehouse cell set config/app @app.json --expect 7
    #[command(verbatim_doc_comment)]
    Set {
        /// Its name.
        name: String,
        /// The value.
        value: String,
        /// Take the value as text, whatever it looks like.
        #[arg(long)]
        text: bool,
        #[command(flatten)]
        expect: Expect,
    },
    /// Make a cell if it does not exist; one that does is left as it is.
    ///
    /// Examples:
    ///   statehouse cell init deployment/colour blue
    ///   statehouse cell init retries 0 -o json
    #[command(verbatim_doc_comment)]
    Init {
        /// Its name.
        name: String,
        /// The value.
        value: String,
        /// Take the value as text, whatever it looks like.
        #[arg(long)]
        text: bool,
    },
    /// Set a cell if it is at a version, or `absent`.
    ///
    /// Examples:
    ///   statehouse cell cas leader absent worker-1
    ///   statehouse cell cas deployment/colour 7 green
    #[command(verbatim_doc_comment)]
    Cas {
        /// Its name.
        name: String,
        /// The version that it has to be at, or `absent`.
        expected: Expected,
        /// The value.
        value: String,
        /// Take the value as text, whatever it looks like.
        #[arg(long)]
        text: bool,
    },
    /// Delete a cell. What it was stays in its history.
    ///
    /// Examples:
    ///   statehouse cell del greeting
    ///   statehouse cell del leader --expect 3
    #[command(verbatim_doc_comment)]
    Del {
        /// Its name.
        name: String,
        #[command(flatten)]
        expect: Expect,
    },
    /// List cells by a prefix of their names, of all groups or with --group of one.
    ///
    /// Examples:
    ///   statehouse cell ls config/
    ///   statehouse cell ls --limit 10 -o jsonl
    #[command(verbatim_doc_comment)]
    Ls {
        /// How their names begin.
        #[arg(default_value = "")]
        prefix: String,
        /// Begin where the page before ended, as it said.
        #[arg(long, value_name = "CURSOR")]
        after: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Follow changes of cells by a prefix of their names.
    ///
    /// Examples:
    ///   statehouse cell watch config/
    ///   statehouse cell watch "" --from 0 --limit 10 -o jsonl
    #[command(verbatim_doc_comment)]
    Watch {
        /// How their names begin.
        #[arg(default_value = "")]
        prefix: String,
        #[command(flatten)]
        follow: Follow,
    },
    /// What a cell was, newest first.
    ///
    /// Examples:
    ///   statehouse cell history greeting
    ///   statehouse cell history greeting --before 100 --limit 10
    #[command(verbatim_doc_comment)]
    History {
        /// Its name.
        name: String,
        /// Begin below this version.
        #[arg(long, value_name = "VERSION")]
        before: Option<u64>,
        #[command(flatten)]
        listing: Listing,
    },
    /// What a cell was at a version, or at a time in RFC 3339.
    ///
    /// Examples:
    ///   statehouse cell at greeting 1
    ///   statehouse cell at greeting 2026-11-15T10:00:00Z -o raw
    #[command(verbatim_doc_comment)]
    At {
        /// Its name.
        name: String,
        /// A version, or a time.
        when: String,
    },
}

const CELL: &[Column] = &[
    plain("NAME", "name"),
    column("VALUE", "value", Style::Value).raw(),
    plain("VERSION", "version"),
    column("UPDATED", "updated_at", Style::Ago),
];

const LISTED: &[Column] = &[
    plain("NAME", "name").raw(),
    plain("GROUP", "group").optional(),
    column("VALUE", "value", Style::Value),
    plain("VERSION", "version"),
    column("UPDATED", "updated_at", Style::Ago),
];

const WRITTEN: &[Column] = &[plain("NAME", "name"), plain("VERSION", "version").raw(), plain("COMMIT", "commit")];

const INITIALISED: &[Column] = &[plain("NAME", "name"), plain("VERSION", "version").raw(), plain("CREATED", "created")];

const DELETED: &[Column] = &[plain("NAME", "name"), plain("VERSION", "version").raw()];

const PAST: &[Column] = &[
    plain("VERSION", "version").raw(),
    column("VALUE", "value", Style::Value),
    plain("DELETED", "deleted"),
    plain("COMMIT", "commit"),
    column("UPDATED", "updated_at", Style::Ago),
];

const CELLS: &str = "/v1/cells";

impl Cell {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        self.reach.run(async |connection| self.verb.run(connection, &output).await)
    }
}

impl Verb {
    async fn run(&self, connection: &Connection, output: &Output) -> Result<(), Failure> {
        match self {
            Verb::Get { name } => output.one(&connection.ask(Call::get(path(CELLS, name))).await?, CELL),
            Verb::Set { name, value, text, expect } => {
                let call = Call::new(Method::PUT, path(CELLS, name)).body(given::value(value, *text)?);
                output.one(&connection.ask(expect.in_headers(call)).await?, WRITTEN)
            }
            Verb::Init { name, value, text } => {
                let call = Call::new(Method::POST, path(CELLS, name)).body(given::value(value, *text)?);
                output.one(&connection.ask(call).await?, INITIALISED)
            }
            Verb::Cas { name, expected, value, text } => {
                let call = Call::new(Method::PUT, path(CELLS, name)).body(given::value(value, *text)?);
                output.one(&connection.ask(expected.in_headers(call)).await?, WRITTEN)
            }
            Verb::Del { name, expect } => {
                let call = Call::new(Method::DELETE, path(CELLS, name));
                output.one(&connection.ask(expect.in_headers(call)).await?, DELETED)
            }
            Verb::Ls { prefix, after, listing } => {
                let once = async || {
                    let call = Call::get(CELLS).query("prefix", Some(prefix)).query("cursor", after.as_ref());
                    let found = connection.ask(call.query("limit", Some(listing.limit))).await?;
                    output.list(&found, "cells", LISTED)?;
                    match found["cursor"].as_str() {
                        Some(last) => output.more("there are more", "--after", last),
                        None => Ok(()),
                    }
                };
                listing.run(output, once).await
            }
            Verb::Watch { prefix, follow } => follow.show(connection, output, prefix, Some("cell")).await,
            Verb::History { name, before, listing } => {
                let once = async || {
                    let call = Call::get(path(CELLS, name)).query("view", Some("history")).query("before", *before);
                    let found = connection.ask(call.query("limit", Some(listing.limit))).await?;
                    output.list(&found, "versions", PAST)
                };
                listing.run(output, once).await
            }
            Verb::At { name, when } => {
                let call = Call::get(path(CELLS, name)).query("at", Some(when));
                output.one(&connection.ask(call).await?, CELL)
            }
        }
    }
}
