//! `space`: spaces, and how much history they keep.

use std::time::Duration;

use clap::{Args, Subcommand};
use hyper::Method;
use serde_json::json;
use statehouse::time::millis;

use crate::connection::{Call, Connection, path};
use crate::exit::Failure;
use crate::output::Output;
use crate::reach::{Reach, duration};
use crate::repeating::Listing;
use crate::table::{Column, Style, column, plain};

/// Spaces: names that have nothing to do with each other, each with its own retention.
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
    /// Make a space.
    ///
    /// Examples:
    ///   statehouse space create shop
    ///   statehouse space create shop -o json
    #[command(verbatim_doc_comment)]
    Create {
        /// Its name.
        name: String,
    },
    /// How much history of its cells a space keeps; or set it.
    ///
    /// Examples:
    ///   statehouse space retention shop
    ///   statehouse space retention shop --versions 10 --age 30d
    #[command(verbatim_doc_comment)]
    Retention {
        /// Its name.
        name: String,
        /// How many versions of a cell are kept, the current one counted.
        #[arg(long, value_name = "N")]
        versions: Option<u64>,
        /// How long ago an old version was current, at most.
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        age: Option<Duration>,
    },
}

const SPACES: &str = "/v1/spaces";

const NAMED: &[Column] = &[plain("SPACE", "name").raw()];

const RETENTION: &[Column] = &[plain("VERSIONS", "versions").raw(), column("AGE", "age_ms", Style::Millis)];

impl Space {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        self.reach.run(async |connection| self.verb.run(connection, &output).await)
    }
}

impl Verb {
    async fn run(&self, connection: &Connection, output: &Output) -> Result<(), Failure> {
        match self {
            Verb::Ls { listing } => listing.run_names(connection, output, (SPACES, "spaces"), NAMED).await,
            Verb::Create { name } => {
                connection.ask(Call::new(Method::PUT, path(SPACES, name)).body(json!({}))).await?;
                output.one(&json!({ "name": name }), NAMED)
            }
            Verb::Retention { name, versions, age } => {
                let place = format!("{}/retention", path(SPACES, name));
                let mut kept = connection.ask(Call::get(place.clone())).await?;
                if versions.is_some() || age.is_some() {
                    // What is left out is meant to stay as it is; the API would take the bound away.
                    if let Some(versions) = versions {
                        kept["versions"] = (*versions).into();
                    }
                    if let Some(age) = age {
                        kept["age_ms"] = millis(*age).into();
                    }
                    connection.ask(Call::new(Method::PUT, place).body(kept.clone())).await?;
                }
                output.one(&kept, RETENTION)
            }
        }
    }
}
