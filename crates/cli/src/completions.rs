//! `completions`, `version` and `info`: facts about this command and the store it reaches.

use std::time::Duration;

use clap::{Args, CommandFactory};
use serde_json::{Value as JsonValue, json};
use wire::routes::{LIMITS_READ, SPACES_LIST};

use crate::connection::{Ask, Connection};
use crate::exit::Failure;
use crate::output::Output;
use crate::reach::Reach;
use crate::table::{Column, plain};

/// Print completions for a shell.
///
/// Examples:
///   statehouse completions bash > /etc/bash_completion.d/statehouse
///   statehouse completions zsh > ~/.zfunc/_statehouse
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Completions {
    /// The shell.
    shell: clap_complete::Shell,
}

impl Completions {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::Arguments::command(), "statehouse", &mut script);
        let script = String::from_utf8_lossy(&script);
        output.told(&script, &json!({ "shell": self.shell.to_string(), "script": script }))
    }
}

/// Show the version of this command, and of the server if one answers.
///
/// Examples:
///   statehouse version
///   statehouse version --url http://127.0.0.1:7421 -o json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Version {
    #[command(flatten)]
    reach: Reach,
}

const VERSION: &[Column] = &[plain("COMMAND", "command").raw(), plain("SERVER", "server"), plain("AT", "url")];

impl Version {
    pub(crate) fn run(mut self, output: Output) -> Result<(), Failure> {
        self.reach.timeout = self.reach.timeout.min(Duration::from_secs(2));
        self.reach.run(async |connection| {
            let server = connection.client().version().await.ok().map(|version| version.statehouse);
            let found = json!({ "command": env!("CARGO_PKG_VERSION"), "server": server, "url": connection.named() });
            output.card(&found, VERSION)
        })
    }
}

/// Describe a store: its version, address, spaces and limits.
///
/// Examples:
///   statehouse info
///   statehouse info -o json | jq .limits
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Info {
    #[command(flatten)]
    reach: Reach,
}

impl Info {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        self.reach.run(async |connection| {
            let found = info(connection).await?;
            let mut text =
                format!("statehouse {} at {}\n", found["version"].as_str().unwrap_or("?"), connection.named());
            for (name, limit) in found["limits"].as_object().into_iter().flatten() {
                text.push_str(&format!("  {name} = {limit}\n"));
            }
            output.told(&text, &found)
        })
    }
}

async fn info(connection: &Connection) -> Result<JsonValue, Failure> {
    let version = connection.client().version().await?;
    let spaces = connection.call(SPACES_LIST, &[]).ask().await?;
    let limits = connection.call(LIMITS_READ, &[]).ask().await?;
    Ok(json!({
        "version": version.statehouse,
        "url": connection.named(),
        "spaces": spaces["spaces"],
        "limits": limits,
    }))
}
