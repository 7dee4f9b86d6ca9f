//! `ctx`: named stores.

use clap::{Args, Subcommand};
use serde_json::{Value as JsonValue, json};
use statehouse::shell::Suggested;
use wire::routes::SERVER_READY;

use crate::connection::transport;
use crate::contexts::{Context, Contexts, Target};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::reach::Reach;
use crate::table::{Column, plain};

/// Named stores: add, select, list and check them.
///
/// Examples:
///   statehouse ctx add staging http://127.0.0.1:7421
///   statehouse ctx use staging
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Ctx {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Add or change a context: a server's URL or a directory.
    ///
    /// Examples:
    ///   statehouse ctx add local http://127.0.0.1:7420
    ///   statehouse ctx add copy ./data --use
    #[command(verbatim_doc_comment)]
    Add {
        /// The context's name.
        name: String,
        /// A URL or a directory.
        target: String,
        /// Make it the current context.
        #[arg(long = "use")]
        make_current: bool,
    },
    /// Make a context the current one.
    ///
    /// Examples:
    ///   statehouse ctx use staging
    ///   statehouse ctx use local -o json
    #[command(verbatim_doc_comment)]
    Use {
        /// The context's name.
        name: String,
    },
    /// List contexts.
    ///
    /// Examples:
    ///   statehouse ctx ls
    ///   statehouse ctx ls -o raw
    #[command(verbatim_doc_comment)]
    Ls {
        /// List at most this many.
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: usize,
    },
    /// Check that a context answers. Default: the current one.
    ///
    /// Examples:
    ///   statehouse ctx check
    ///   statehouse ctx check staging -o json
    #[command(verbatim_doc_comment)]
    Check {
        /// The context's name.
        name: Option<String>,
    },
}

const LISTED: &[Column] = &[plain("NAME", "name").raw(), plain("TARGET", "target"), plain("CURRENT", "current")];

impl Ctx {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        let mut contexts = Contexts::read(&|name| std::env::var(name).ok())?;
        match self.verb {
            Verb::Add { name, target, make_current } => {
                let target = target_of(&target)?;
                contexts.contexts.insert(name.clone(), Context::of(&target));
                if make_current || contexts.current.is_none() {
                    contexts.current = Some(name.clone());
                }
                contexts.write()?;
                output.one(&row(&contexts, &name, &target), LISTED)
            }
            Verb::Use { name } => {
                let target = contexts.find(&name)?;
                contexts.current = Some(name.clone());
                contexts.write()?;
                output.one(&row(&contexts, &name, &target), LISTED)
            }
            Verb::Ls { limit } => {
                let mut rows = Vec::new();
                for (name, context) in contexts.contexts.iter().take(limit) {
                    rows.push(row(&contexts, name, &context.target(name)?));
                }
                output.list(&json!({ "contexts": rows }), "contexts", LISTED)
            }
            Verb::Check { name } => check(Reach { context: name, ..Reach::new() }, &output),
        }
    }
}

fn row(contexts: &Contexts, name: &str, target: &Target) -> JsonValue {
    let current = contexts.current.as_deref() == Some(name);
    json!({ "name": name, "target": target.to_string(), "current": current })
}

/// Anything with a scheme is a URL; everything else is a directory, stored by its absolute path.
fn target_of(given: &str) -> Result<Target, Failure> {
    if given.contains("://") {
        transport(given)?;
        return Ok(Target::Url(given.to_owned()));
    }
    let full = std::path::absolute(given).map_err(|error| Failure::usage(format!("{given}: {error}")))?;
    match full.is_dir() {
        true => Ok(Target::Data(full)),
        false => Err(Failure::new(Exit::NotFound, format!("there is no directory {}", full.display()))
            .next("give a URL like http://HOST:PORT, or an existing directory")),
    }
}

fn check(reach: Reach, output: &Output) -> Result<(), Failure> {
    let target = reach.target(&|name| std::env::var(name).ok())?;
    reach.run(async |connection| {
        let version = connection.client().version().await?;
        let ready = connection.call(SERVER_READY, &[]).answer().await?.status.is_success();
        let found = json!({
            "target": target.to_string(),
            "version": version.statehouse,
            "ready": ready,
        });
        output.one(&found, &[plain("TARGET", "target").raw(), plain("VERSION", "version"), plain("READY", "ready")])?;
        match ready {
            true => Ok(()),
            false => Err(Failure::check(format!("{target} answers, but is not ready"))
                .run("see why", Suggested::new(["statehouse", "status"]))),
        }
    })
}
