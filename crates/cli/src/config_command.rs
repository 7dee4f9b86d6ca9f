//! `config`: a server's settings, their origins, and whether they are valid.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value as JsonValue, json};
use statehouse::backup::file::WholeFile;

use crate::backup::cannot_write;
use crate::config::{Effective, template};
use crate::exit::Failure;
use crate::output::Output;
use crate::table::{Column, plain};

/// Server settings: print a template, check a file, show the values in effect.
///
/// Examples:
///   statehouse config init > statehouse.toml
///   statehouse config show --origins --config statehouse.toml
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Config {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Print a file with every setting, its default and its purpose, all commented out.
    ///
    /// Examples:
    ///   statehouse config init > statehouse.toml
    ///   statehouse config init --to /etc/statehouse.toml
    #[command(verbatim_doc_comment)]
    Init {
        /// Write to this new file instead of stdout.
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
    /// Check that a file and the environment are valid. Exits with 2 if they are not.
    ///
    /// Examples:
    ///   statehouse config check --config statehouse.toml
    ///   statehouse config check -o json
    #[command(verbatim_doc_comment)]
    Check {
        /// The settings file. Default: STATEHOUSE_CONFIG, or none.
        #[arg(long, value_name = "FILE", env = "STATEHOUSE_CONFIG")]
        config: Option<PathBuf>,
    },
    /// Show the settings that a server started here and now would use.
    ///
    /// Examples:
    ///   statehouse config show
    ///   statehouse config show --origins --config statehouse.toml
    #[command(verbatim_doc_comment)]
    Show {
        /// The settings file. Default: STATEHOUSE_CONFIG, or none.
        #[arg(long, value_name = "FILE", env = "STATEHOUSE_CONFIG")]
        config: Option<PathBuf>,
        /// Also show the origin of each value.
        #[arg(long)]
        origins: bool,
    },
}

const VALUES: &[Column] = &[plain("SETTING", "key"), plain("VALUE", "value").raw()];
const ORIGINS: &[Column] = &[plain("SETTING", "key"), plain("VALUE", "value").raw(), plain("FROM", "origin")];

impl Config {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        match self.verb {
            Verb::Init { to: None } => output.told(&template(), &json!({ "template": template() })),
            Verb::Init { to: Some(path) } => {
                // Never overwrite an existing file: it is somebody's.
                let write = || {
                    let mut file = WholeFile::begin(&path)?;
                    file.write_all(template().as_bytes())?;
                    file.finish()
                };
                write().map_err(|error| cannot_write(&path, &error))?;
                output.one(&json!({ "file": path }), &[plain("FILE", "file").raw()])
            }
            Verb::Check { config } => {
                let count = gather(config.as_ref())?.rows().filter(|(.., origin)| origin.is_said()).count();
                let found = json!({ "ok": true, "set": count });
                output.one(&found, &[plain("OK", "ok").raw(), plain("SET", "set")])
            }
            Verb::Show { config, origins } => {
                let effective = gather(config.as_ref())?;
                let settings: Vec<JsonValue> = effective
                    .rows()
                    .map(|(key, value, origin)| json!({ "key": key, "value": value, "origin": origin.to_string() }))
                    .collect();
                let columns = if origins { ORIGINS } else { VALUES };
                output.list(&json!({ "settings": settings }), "settings", columns)
            }
        }
    }
}

fn gather(path: Option<&PathBuf>) -> Result<Effective, Failure> {
    let environment = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let environment = environment.map(|(name, value)| (name, value.to_string_lossy().into_owned()));
    let gathered = Effective::gather(path.map(PathBuf::as_path), environment, []);
    gathered.map_err(|error| Failure::from(&error))
}
