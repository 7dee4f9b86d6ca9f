//! `cell`: named values with versions and history.
//!
//! `bench` is a load, `contract` is for commands across the contracts.

mod bench;
mod contract;
pub(crate) mod scopes;

use clap::{Args, Subcommand};
use statehouse::Expected;
use wire::cells::{ListCells, ReadCell, View};
use wire::routes::{CELLS_DELETE, CELLS_INIT, CELLS_LIST, CELLS_READ, CELLS_WRITE};

use crate::connection::{Ask, Connection};
use crate::exit::Failure;
use crate::expect_flag::{Expect, expected};
use crate::following::Follow;
use crate::given;
use crate::output::Output;
use crate::reach::Reach;
use crate::repeating::Listing;
use crate::table::{Column, Style, column, plain};

/// Versioned values: get, set, compare-and-swap, history.
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
        /// The cell's name.
        name: String,
    },
    /// Set a cell. The value is JSON if it parses as JSON, otherwise text; - reads stdin, @FILE a file.
    ///
    /// Examples:
    ///   statehouse cell set deployment/colour blue
    ///   statehouse cell set config/app @app.json --expect 7
    #[command(verbatim_doc_comment)]
    Set {
        /// The cell's name.
        name: String,
        /// The value.
        value: String,
        /// Treat the value as text, even if it parses as JSON.
        #[arg(long)]
        text: bool,
        #[command(flatten)]
        expect: Expect,
    },
    /// Create a cell unless it exists; an existing cell is left unchanged.
    ///
    /// Examples:
    ///   statehouse cell init deployment/colour blue
    ///   statehouse cell init retries 0 -o json
    #[command(verbatim_doc_comment)]
    Init {
        /// The cell's name.
        name: String,
        /// The value.
        value: String,
        /// Treat the value as text, even if it parses as JSON.
        #[arg(long)]
        text: bool,
    },
    /// Set a cell only if it is at a given version, or `absent`.
    ///
    /// Examples:
    ///   statehouse cell cas leader absent worker-1
    ///   statehouse cell cas deployment/colour 7 green
    #[command(verbatim_doc_comment)]
    Cas {
        /// The cell's name.
        name: String,
        /// The expected version, or `absent`.
        #[arg(value_parser = expected)]
        expected: Expected,
        /// The value.
        value: String,
        /// Treat the value as text, even if it parses as JSON.
        #[arg(long)]
        text: bool,
    },
    /// Delete a cell. Its history is kept.
    ///
    /// Examples:
    ///   statehouse cell del greeting
    ///   statehouse cell del leader --expect 3
    #[command(verbatim_doc_comment)]
    Del {
        /// The cell's name.
        name: String,
        #[command(flatten)]
        expect: Expect,
    },
    /// List cells by name prefix, in all groups, or in one with --group.
    ///
    /// Examples:
    ///   statehouse cell ls config/
    ///   statehouse cell ls --limit 10 -o jsonl
    #[command(verbatim_doc_comment)]
    Ls {
        /// Prefix of their names.
        #[arg(default_value = "")]
        prefix: String,
        /// Continue after the previous page, with the value that it printed.
        #[arg(long, value_name = "CURSOR")]
        after: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Follow changes of cells by name prefix.
    ///
    /// Examples:
    ///   statehouse cell watch config/
    ///   statehouse cell watch "" --from 0 --limit 10 -o jsonl
    #[command(verbatim_doc_comment)]
    Watch {
        /// Prefix of their names.
        #[arg(default_value = "")]
        prefix: String,
        #[command(flatten)]
        follow: Follow,
    },
    /// Show the past versions of a cell, newest first.
    ///
    /// Examples:
    ///   statehouse cell history greeting
    ///   statehouse cell history greeting --before 100 --limit 10
    #[command(verbatim_doc_comment)]
    History {
        /// The cell's name.
        name: String,
        /// Start below this version.
        #[arg(long, value_name = "VERSION")]
        before: Option<u64>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Show a cell as of a version, or of a time in RFC 3339.
    ///
    /// Examples:
    ///   statehouse cell at greeting 1
    ///   statehouse cell at greeting 2026-11-15T10:00:00Z -o raw
    #[command(verbatim_doc_comment)]
    At {
        /// The cell's name.
        name: String,
        /// A version or a time.
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

impl Cell {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        self.reach.run(async |connection| self.verb.run(connection, &output).await)
    }
}

impl Verb {
    async fn run(&self, connection: &Connection, output: &Output) -> Result<(), Failure> {
        match self {
            Verb::Get { name } => output.one(&connection.call(CELLS_READ, &[name]).ask().await?, CELL),
            Verb::Set { name, value, text, expect } => {
                let call = connection.call(CELLS_WRITE, &[name]).json(&given::value(value, *text)?);
                output.one(&expect.of(call).ask().await?, WRITTEN)
            }
            Verb::Init { name, value, text } => {
                let call = connection.call(CELLS_INIT, &[name]).json(&given::value(value, *text)?);
                output.one(&call.ask().await?, INITIALISED)
            }
            Verb::Cas { name, expected, value, text } => {
                let call = connection.call(CELLS_WRITE, &[name]).json(&given::value(value, *text)?);
                output.one(&call.if_expected(Some(*expected)).ask().await?, WRITTEN)
            }
            Verb::Del { name, expect } => {
                output.one(&expect.of(connection.call(CELLS_DELETE, &[name])).ask().await?, DELETED)
            }
            Verb::Ls { prefix, after, listing } => {
                let query = ListCells {
                    prefix: Some(prefix.clone()),
                    cursor: given::word_if_given("--after", after)?,
                    limit: Some(listing.limit),
                };
                let once = async || {
                    let found = connection.call(CELLS_LIST, &[]).query(&query).ask().await?;
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
                let query = ReadCell {
                    view: Some(View::History),
                    before: *before,
                    limit: Some(listing.limit),
                    ..ReadCell::default()
                };
                let once = async || {
                    let found = connection.call(CELLS_READ, &[name]).query(&query).ask().await?;
                    output.list(&found, "versions", PAST)
                };
                listing.run(output, once).await
            }
            Verb::At { name, when } => {
                let query = ReadCell { at: Some(given::word("WHEN", when)?), ..ReadCell::default() };
                output.one(&connection.call(CELLS_READ, &[name]).query(&query).ask().await?, CELL)
            }
        }
    }
}
