//! The verbs that write a key, each with a version: `set` and `del`.
//!
//! Keeps: what became of the update is printed, whatever it is. That it was applied before, or that something newer was, is what
//! a replay brings, and no failure; another value under the same version is one.

use clap::Subcommand;
use statehouse::keyed::LogicalTime;
use wire::keyed::WriteKey;
use wire::keyed::key::KeyText;
use wire::keyed::version::VersionText;
use wire::routes::{MAPS_DELETE_KEY, MAPS_PUT_KEY};

use super::{key, name, of_key, text_of, with_key};
use crate::connection::{Ask, Connection};
use crate::exit::{Exit, Failure};
use crate::given;
use crate::output::Output;
use crate::table::{Column, Style, column, plain};

#[derive(Subcommand)]
pub(super) enum Verb {
    /// Set a key, if the version is newer than that of the key.
    ///
    /// Prints what became of it: applied; duplicate, if it was applied before; stale, if something newer was;
    /// version_conflict, which exits with 4, if the key has this version with another value. In an ordered map, it
    /// waits for the seal.
    ///
    /// Examples:
    ///   statehouse keyed set prices apple 30 --version 7
    ///   statehouse keyed set prices apple @apple.json --version 1:7
    #[command(verbatim_doc_comment)]
    Set {
        /// The map, created if missing.
        #[arg(value_parser = name)]
        map: String,
        /// The key: text, or bytes as {"$b64":"..."}.
        #[arg(value_parser = key)]
        key: KeyText,
        /// The value: JSON if it parses as JSON, otherwise text; - reads stdin, @FILE a file.
        value: String,
        /// The version of the value: 7, or an epoch and a round, 1:7.
        #[arg(long)]
        version: LogicalTime,
        /// Treat the value as text, even if it parses as JSON.
        #[arg(long)]
        text: bool,
    },
    /// Delete a key, if the version is newer than that of the key.
    ///
    /// Prints what became of it, as `keyed set` does. The version is remembered, so an older value does not come back.
    ///
    /// Examples:
    ///   statehouse keyed del prices apple --version 8
    ///   statehouse keyed del prices '{"$b64":"/wE="}' --version 1:7
    #[command(verbatim_doc_comment)]
    Del {
        /// The map, created if missing.
        #[arg(value_parser = name)]
        map: String,
        /// The key: text, or bytes as {"$b64":"..."}.
        #[arg(value_parser = key)]
        key: KeyText,
        /// The version of the deletion: 7, or an epoch and a round, 1:7.
        #[arg(long)]
        version: LogicalTime,
    },
}

const UPDATED: &[Column] = &[
    plain("MAP", "map"),
    column("KEY", "key", Style::Value),
    plain("OUTCOME", "outcome").raw(),
    plain("CURRENT", "current").optional(),
];

impl Verb {
    pub(super) async fn run(&self, connection: &Connection, output: &Output) -> Result<(), Failure> {
        let (map, key, version, call) = match self {
            Verb::Set { map, key, value, version, text } => {
                let call = of_key(connection, MAPS_PUT_KEY, map, key).json(&given::value(value, *text)?);
                (map, key, version, call)
            }
            Verb::Del { map, key, version } => (map, key, version, of_key(connection, MAPS_DELETE_KEY, map, key)),
        };
        let found = call.query(&WriteKey { version: VersionText(*version) }).ask().await?;
        output.one(&found, UPDATED)?;
        if found["outcome"] != "version_conflict" {
            return Ok(());
        }
        let other = match self {
            Verb::Set { .. } => "with another value",
            Verb::Del { .. } => "with a value",
        };
        let detail = format!("key {:?} of map {map:?} has version {version} {other}, and keeps it", text_of(key));
        let next = "read it, and find out why one version means two things";
        Err(Failure::new(Exit::Conflict, detail).run(next, with_key(&["get"], map, key)))
    }
}
