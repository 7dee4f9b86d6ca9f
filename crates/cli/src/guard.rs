//! `guard`: which groups only their owner writes.

use clap::{Args, Subcommand};
use serde_json::json;
use wire::owners::SetGuard;
use wire::routes::{GUARDS_LIST, GUARDS_SET};

use crate::connection::{Ask, Connection};
use crate::exit::Failure;
use crate::output::Output;
use crate::reach::Reach;
use crate::repeating::{Listing, Sure};
use crate::table::{Column, Style, column, plain};

/// Guarded groups: only their owner writes them.
///
/// Examples:
///   statehouse guard set agents. --open inbox
///   statehouse group own agents.7 --worker w1
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Guard {
    #[command(flatten)]
    reach: Reach,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List the guards of a space.
    ///
    /// Examples:
    ///   statehouse guard ls
    ///   statehouse guard ls --space shop -o json
    #[command(verbatim_doc_comment)]
    Ls {
        #[command(flatten)]
        listing: Listing,
    },
    /// Guard the groups whose names begin with a prefix; replaces the guard of the same prefix.
    ///
    /// Examples:
    ///   statehouse guard set agents.
    ///   statehouse guard set agents. --open inbox --open log
    #[command(verbatim_doc_comment)]
    Set {
        /// Prefix of group names.
        prefix: String,
        /// A name, or a prefix of names, that anybody may create and append to. May be given several times.
        #[arg(long, value_name = "NAME")]
        open: Vec<String>,
    },
    /// Remove the guard of a prefix: anybody writes these groups again.
    ///
    /// Examples:
    ///   statehouse guard rm agents.
    ///   statehouse guard rm agents. --yes
    #[command(verbatim_doc_comment)]
    Rm {
        /// Prefix of group names.
        prefix: String,
        #[command(flatten)]
        sure: Sure,
    },
}

const GUARDS: &[Column] = &[plain("PREFIX", "prefix").raw(), column("OPEN", "open", Style::Value)];

impl Guard {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        self.reach.run(async |connection| self.verb.run(connection, &output).await)
    }
}

impl Verb {
    async fn run(&self, connection: &Connection, output: &Output) -> Result<(), Failure> {
        match self {
            Verb::Ls { listing } => {
                let once = async || output.list(&connection.call(GUARDS_LIST, &[]).ask().await?, "guards", GUARDS);
                listing.run(output, once).await
            }
            Verb::Set { prefix, open } => {
                let body = SetGuard { open: Some(open.clone()) };
                output.one(&connection.call(GUARDS_SET, &[prefix]).json(&body).ask().await?, GUARDS)
            }
            Verb::Rm { prefix, sure } => {
                sure.or_ask(&format!("remove the guard of groups that begin with {prefix:?}"))?;
                connection.client().catalogue().remove_guard(prefix).await?;
                output.one(&json!({ "prefix": prefix, "deleted": true }), GUARDS)
            }
        }
    }
}
