//! `principal`: who may do what.

use clap::{Args, Subcommand};
use serde_json::json;
use wire::access::{ListPrincipals, SetPrincipal};
use wire::routes::{PRINCIPALS_LIST, PRINCIPALS_READ, PRINCIPALS_SET};

use crate::connection::{Ask, Connection};
use crate::exit::Failure;
use crate::output::Output;
use crate::reach::Reach;
use crate::repeating::{Listing, Sure};
use crate::table::{Column, Style, column, plain};

/// Principals: who may do what, and how they are known.
///
/// A grant is VERBS@SPACE/AREA/PREFIX. Verbs are separated by commas: read, list, watch, write, cas, append, claim, session, force,
/// operate, snapshot, restore, audit, administer, or the roles reader, writer, worker, operator, admin. A * stands for every space or
/// area; /AREA/PREFIX may be left out.
///
/// Examples:
///   statehouse principal set mailer worker@default/records/jobs.
///   statehouse principal ls
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Principal {
    #[command(flatten)]
    reach: Reach,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List principals.
    ///
    /// Examples:
    ///   statehouse principal ls
    ///   statehouse principal ls -o json
    #[command(verbatim_doc_comment)]
    Ls {
        /// Start after this principal.
        #[arg(long, value_name = "NAME")]
        after: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Show a principal.
    ///
    /// Examples:
    ///   statehouse principal show mailer
    ///   statehouse principal show mailer -o json
    #[command(verbatim_doc_comment)]
    Show {
        /// The principal's name.
        name: String,
    },
    /// Set what a principal may do and how it is known, or create it. Its tokens stay as they are.
    ///
    /// Examples:
    ///   statehouse principal set mailer worker@default/records/jobs.
    ///   statehouse principal set ops operator@* --identity uid:1000
    #[command(verbatim_doc_comment)]
    Set {
        /// The principal's name.
        name: String,
        /// What it may do; none for nothing.
        #[arg(value_name = "GRANT")]
        grants: Vec<String>,
        /// The URI of a client certificate, or uid: and the number of a user of this machine. May be given several times.
        #[arg(long = "identity", value_name = "IDENTITY")]
        identities: Vec<String>,
        /// Requests that it may send in a second.
        #[arg(long = "rate", value_name = "N")]
        requests_per_second_max: Option<u32>,
    },
    /// Remove a principal, and so its tokens.
    ///
    /// Examples:
    ///   statehouse principal rm mailer
    ///   statehouse principal rm mailer --yes
    #[command(verbatim_doc_comment)]
    Rm {
        /// The principal's name.
        name: String,
        #[command(flatten)]
        sure: Sure,
    },
}

const PRINCIPALS: &[Column] = &[
    plain("PRINCIPAL", "principal").raw(),
    column("GRANTS", "grants", Style::Value),
    column("IDENTITIES", "identities", Style::Value),
    plain("RATE", "requests_per_second_max"),
];

impl Principal {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        self.reach.run(async |connection| self.verb.run(connection, &output).await)
    }
}

impl Verb {
    async fn run(&self, connection: &Connection, output: &Output) -> Result<(), Failure> {
        match self {
            Verb::Ls { after, listing } => {
                let query = ListPrincipals { after: after.clone(), limit: Some(listing.limit) };
                let once = async || {
                    let found = connection.call(PRINCIPALS_LIST, &[]).query(&query).ask().await?;
                    output.list(&found, "principals", PRINCIPALS)?;
                    match found["next_after"].as_str() {
                        Some(last) => output.more("there are more", "--after", last),
                        None => Ok(()),
                    }
                };
                listing.run(output, once).await
            }
            Verb::Show { name } => output.card(&connection.call(PRINCIPALS_READ, &[name]).ask().await?, PRINCIPALS),
            Verb::Set { name, grants, identities, requests_per_second_max } => {
                let body = SetPrincipal {
                    grants: grants.clone(),
                    identities: Some(identities.clone()),
                    requests_per_second_max: *requests_per_second_max,
                };
                output.card(&connection.call(PRINCIPALS_SET, &[name]).json(&body).ask().await?, PRINCIPALS)
            }
            Verb::Rm { name, sure } => {
                sure.or_ask(&format!("remove principal {name:?} and its tokens"))?;
                connection.client().principals().remove(name).await?;
                output.one(&json!({ "principal": name, "deleted": true }), &[plain("PRINCIPAL", "principal").raw()])
            }
        }
    }
}
