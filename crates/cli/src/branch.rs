//! `branch`: branches of a space.

use clap::{Args, Subcommand};
use serde_json::json;
use wire::routes::BRANCHES_LIST;

use crate::connection::Connection;
use crate::exit::Failure;
use crate::output::Output;
use crate::reach::Reach;
use crate::repeating::{Listing, Sure};
use crate::table::{Column, plain};

/// Branches of a space: separate sets of data, independent of each other.
///
/// Examples:
///   statehouse branch create trial
///   statehouse cell ls --branch trial
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Branch {
    #[command(flatten)]
    reach: Reach,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List branches.
    ///
    /// Examples:
    ///   statehouse branch ls
    ///   statehouse branch ls --space shop -o raw
    #[command(verbatim_doc_comment)]
    Ls {
        #[command(flatten)]
        listing: Listing,
    },
    /// Create an empty branch.
    ///
    /// Examples:
    ///   statehouse branch create trial
    ///   statehouse branch create trial --space shop
    #[command(verbatim_doc_comment)]
    Create {
        /// The branch's name.
        name: String,
    },
    /// Delete a branch and everything in it.
    ///
    /// Examples:
    ///   statehouse branch rm trial
    ///   statehouse branch rm trial --yes
    #[command(verbatim_doc_comment)]
    Rm {
        /// The branch's name.
        name: String,
        #[command(flatten)]
        sure: Sure,
    },
}

const NAMED: &[Column] = &[plain("BRANCH", "name").raw()];

impl Branch {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        self.reach.run(async |connection| self.verb.run(connection, &output).await)
    }
}

impl Verb {
    async fn run(&self, connection: &Connection, output: &Output) -> Result<(), Failure> {
        match self {
            Verb::Ls { listing } => listing.run_names(connection, output, (BRANCHES_LIST, "branches"), NAMED).await,
            Verb::Create { name } => {
                connection.client().catalogue().create_branch(name).await?;
                output.one(&json!({ "name": name }), NAMED)
            }
            Verb::Rm { name, sure } => {
                sure.or_ask(&format!("delete the branch {name:?} and everything in it"))?;
                connection.client().catalogue().delete_branch(name).await?;
                output.one(&json!({ "name": name, "deleted": true }), NAMED)
            }
        }
    }
}
