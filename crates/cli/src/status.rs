//! `status`: one screen of how a store is doing. The exit code is its health.

use clap::Args;
use serde_json::{Value as JsonValue, json};

use crate::checks::{self, Checked};
use crate::connection::{Call, Connection};
use crate::exit::Failure;
use crate::output::Output;
use crate::reach::Reach;
use crate::table::{Column, Style, column, one_line, plain, rows, size};

/// How a store is doing, on one screen. Exits with 7 if it is not well, with 5 if it does not answer.
///
/// Examples:
///   statehouse status
///   statehouse status -o json | jq .problems
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Status {
    #[command(flatten)]
    reach: Reach,
}

/// Runs that had no event for so long are shown.
const QUIET: &str = "10m";
/// How many of them.
const QUIET_SHOWN: u64 = 5;

const COUNTS: &[Column] = &[plain("TYPE", "type"), plain("STATE", "state"), plain("COUNT", "count")];
const RUNS: &[Column] =
    &[plain("QUIET RUN", "runId"), plain("STATUS", "status"), column("LAST EVENT", "lastEventAt", Style::Ago)];

impl Status {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        self.reach.run(async |connection| {
            let mut checked = checks::health(connection).await?;
            checked.extend(checks::disk(connection).await?);
            checked.extend(checks::clock(connection).await?);
            let found = gather(connection, &checked).await?;
            output.told(&screen(connection, &found, &checked), &found)?;
            match checked.iter().find(|checked| !checked.ok) {
                None => Ok(()),
                Some(first) => {
                    let failure = Failure::check(format!("it is not well: {}", first.said));
                    Err(failure.next(first.next.clone().unwrap_or("see its log".to_owned())))
                }
            }
        })
    }
}

async fn gather(connection: &Connection, checked: &[Checked]) -> Result<JsonValue, Failure> {
    let version = connection.ask(Call::get("/version")).await?;
    let status = connection.ask(Call::get("/status")).await?;
    let counts = connection.ask(Call::get("/v1/counts")).await?;
    let sessions = connection.ask(Call::get("/v1/sessions").query("limit", Some(1_000))).await?;
    let quiet = Call::get("/v1/runs").query("status", Some("RUNNING")).query("stalled", Some(QUIET));
    let quiet = connection.ask(quiet.query("limit", Some(QUIET_SHOWN))).await?;
    let sessions = sessions["sessions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let connected = sessions.iter().filter(|session| session["state"] == "connected").count();
    let problems: Vec<JsonValue> = checked.iter().filter(|checked| !checked.ok).map(Checked::to_json).collect();
    Ok(json!({
        "healthy": problems.is_empty(),
        "problems": problems,
        "url": connection.named(),
        "version": version["statehouse"],
        "status": status,
        "records": counts["counts"],
        "sessions": { "listed": sessions.len(), "connected": connected },
        "quiet_runs": quiet["runs"],
    }))
}

fn screen(connection: &Connection, found: &JsonValue, checked: &[Checked]) -> String {
    let word = if found["healthy"] == true { "HEALTHY" } else { "NOT WELL" };
    let number = |of: &JsonValue| of.as_u64().unwrap_or(0);
    let status = &found["status"];
    let mut screen =
        format!("{}  {word}  statehouse {}\n", connection.named(), one_line(found["version"].as_str().unwrap_or("?")));
    for one in checked.iter().filter(|checked| !checked.ok) {
        screen.push_str(&format!(" ✗ {}: {}\n", one.name, one.said));
        if let Some(next) = &one.next {
            screen.push_str(&format!("   next: {next}\n"));
        }
    }
    screen.push_str(&format!(
        " commit {}, journal {}, store {}, waiting in memory {}\n sessions {}, connected {}\n",
        number(&status["commit"]),
        size(number(&status["journal_bytes"])),
        size(number(&status["store_bytes"])),
        size(number(&status["memory_bytes"])),
        found["sessions"]["listed"],
        found["sessions"]["connected"],
    ));
    for (key, columns) in [("records", COUNTS), ("quiet_runs", RUNS)] {
        let found = found[key].as_array().map(Vec::as_slice).unwrap_or_default();
        if !found.is_empty() {
            screen.push_str(&format!("\n{}\n", rows(found, columns)));
        }
    }
    screen
}
