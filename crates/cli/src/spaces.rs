//! `space`: spaces, their retention, and what they take.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use statehouse::time::millis;
use wire::catalogue::{ContractUsage, SetRetention, UsageAnswer};
use wire::routes::SPACES_LIST;

use crate::connection::Connection;
use crate::exit::Failure;
use crate::output::Output;
use crate::reach::{Reach, duration};
use crate::repeating::Listing;
use crate::table::{Column, Style, column, plain};

/// Spaces: separate sets of names, each with its own retention.
///
/// Examples:
///   statehouse space create shop
///   statehouse cell ls --space shop
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Space {
    #[command(flatten)]
    reach: Reach,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List spaces.
    ///
    /// Examples:
    ///   statehouse space ls
    ///   statehouse space ls -o raw
    #[command(verbatim_doc_comment)]
    Ls {
        #[command(flatten)]
        listing: Listing,
    },
    /// Create a space.
    ///
    /// Examples:
    ///   statehouse space create shop
    ///   statehouse space create shop -o json
    #[command(verbatim_doc_comment)]
    Create {
        /// The space's name.
        name: String,
    },
    /// Show or set how much cell history a space keeps.
    ///
    /// Examples:
    ///   statehouse space retention shop
    ///   statehouse space retention shop --versions 10 --age 30d
    #[command(verbatim_doc_comment)]
    Retention {
        /// The space's name.
        name: String,
        /// Versions to keep per cell, including the current one.
        #[arg(long, value_name = "N")]
        versions: Option<u64>,
        /// How long to keep a version after it was replaced.
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        age: Option<Duration>,
    },
    /// Show how many things a space has, and how many bytes they take.
    ///
    /// Examples:
    ///   statehouse space usage shop
    ///   statehouse space usage shop -o json
    #[command(verbatim_doc_comment)]
    Usage {
        /// The space's name.
        name: String,
    },
}

const NAMED: &[Column] = &[plain("SPACE", "name").raw()];

const RETENTION: &[Column] = &[plain("VERSIONS", "versions").raw(), column("AGE", "age_ms", Style::Millis)];

const USAGE: &[Column] = &[plain("CONTRACT", "contract").raw(), plain("THINGS", "things"), plain("BYTES", "bytes")];

impl Space {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        self.reach.run(async |connection| self.verb.run(connection, &output).await)
    }
}

impl Verb {
    async fn run(&self, connection: &Connection, output: &Output) -> Result<(), Failure> {
        match self {
            Verb::Ls { listing } => listing.run_names(connection, output, (SPACES_LIST, "spaces"), NAMED).await,
            Verb::Create { name } => {
                connection.client().catalogue().create_space(name).await?;
                output.one(&json!({ "name": name }), NAMED)
            }
            Verb::Retention { name, versions, age } => {
                let catalogue = connection.client().catalogue();
                let mut kept = catalogue.retention(name).await?;
                if versions.is_some() || age.is_some() {
                    // A flag that is not given leaves its bound unchanged; the API would remove the bound.
                    kept.versions = versions.or(kept.versions);
                    kept.age_ms = age.map(millis).or(kept.age_ms);
                    let set = SetRetention { versions: kept.versions, age: None, age_ms: kept.age_ms };
                    catalogue.set_retention(name, &set).await?;
                }
                output.one(&json!({ "versions": kept.versions, "age_ms": kept.age_ms }), RETENTION)
            }
            Verb::Usage { name } => {
                let UsageAnswer { contracts, things, bytes } = connection.client().catalogue().usage(name).await?;
                let of = |usage: &ContractUsage| json!({ "contract": usage.contract, "things": usage.things, "bytes": usage.bytes });
                let contracts = contracts.iter().map(of).collect::<Vec<_>>();
                output.list(&json!({ "contracts": contracts, "things": things, "bytes": bytes }), "contracts", USAGE)
            }
        }
    }
}
