//! `watch`: the change feed, and optionally a command for each change.

use std::io::Write;
use std::process::{Command, Stdio};

use clap::Args;
use serde_json::Value as JsonValue;

use crate::exit::Failure;
use crate::following::{COLUMNS, Follow};
use crate::output::{Format, Output};
use crate::raw_json::value_text;
use crate::reach::Reach;

/// Follow changes by name prefix: cells, records, runs and messages.
///
/// With --exec, a shell runs the command once per change, one after the other. It gets the change as
/// JSON on stdin and in CHANGE_KIND, CHANGE_REASON, CHANGE_NAME, CHANGE_VERSION and CHANGE_COMMIT.
/// If it fails, watching ends with that failure and the commit to resume from.
///
/// Examples:
///   statehouse watch jobs.
///   statehouse watch config/ --exec 'systemctl reload app'
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Watch {
    #[command(flatten)]
    reach: Reach,
    /// Prefix of the names.
    #[arg(default_value = "")]
    prefix: String,
    /// Shell command to run for each change.
    #[arg(long, value_name = "COMMAND")]
    exec: Option<String>,
    #[command(flatten)]
    follow: Follow,
}

impl Watch {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        self.reach.run(async |connection| {
            let each = |change: &JsonValue| {
                output.row(change, COLUMNS)?;
                self.exec.as_ref().map_or(Ok(()), |command| execute(command, change, output.format == Format::Table))
            };
            self.follow.changes(connection, &self.prefix, None, each).await
        })
    }
}

/// Runs the command. Its output goes to stderr, unless it may be mixed with results.
fn execute(command: &str, change: &JsonValue, beside_results: bool) -> Result<(), Failure> {
    let commit = change["commit"].as_u64().unwrap_or(0);
    let failed = |why: String| {
        Failure::other(format!("the command for commit {commit} {why}"))
            .next(format!("resume with it: --from {}", commit.saturating_sub(1)))
    };
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::piped());
    if !beside_results {
        shell.stdout(std::io::stderr());
    }
    for (variable, member) in [
        ("CHANGE_KIND", "kind"),
        ("CHANGE_REASON", "reason"),
        ("CHANGE_NAME", "name"),
        ("CHANGE_VERSION", "version"),
        ("CHANGE_COMMIT", "commit"),
    ] {
        if !change[member].is_null() {
            shell.env(variable, value_text(&change[member]));
        }
    }
    let mut child = shell.spawn().map_err(|error| failed(format!("cannot be started: {error}")))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command may close its input without reading it; that is not a failure.
        let _ = writeln!(stdin, "{change}");
    }
    let status = child.wait().map_err(|error| failed(format!("cannot be waited for: {error}")))?;
    if status.success() { Ok(()) } else { Err(failed(format!("failed: {status}"))) }
}
