//! `status`: one screen about a store, as reported by itself. The exit code is its health.

use clap::Args;
use serde_json::Value as JsonValue;
use statehouse::shell::Suggested;
use wire::routes::SERVER_STATUS;

use crate::connection::Ask;
use crate::exit::Failure;
use crate::output::{Format, Output};
use crate::reach::Reach;
use crate::table::one_line;

/// Show a store's health on one screen. Exits with 7 if it has a problem, with 5 if it does not answer.
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

impl Status {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        self.reach.run(async |connection| {
            let found = connection.call(SERVER_STATUS, &[]).ask().await?;
            let text = match output.format {
                Format::Table | Format::Raw => {
                    let reply = connection.call(SERVER_STATUS, &[]).header("accept", "text/plain").answer().await?;
                    let page = String::from_utf8_lossy(&reply.body);
                    format!("{}\n{}", one_line(&connection.named()), self.reach.in_text(&page, &found))
                }
                Format::Json | Format::Jsonl => String::new(),
            };
            output.told(&text, &found)?;
            let problems = found["problems"].as_array().map(Vec::as_slice).unwrap_or_default();
            let Some(first) = problems.first() else {
                return Ok(());
            };
            let (object, text) = (first["object"].as_str().unwrap_or("?"), first["text"].as_str().unwrap_or("?"));
            let failure = match problems.len() {
                1 => Failure::check(format!("1 problem: {object}: {text}")),
                count => Failure::check(format!("{count} problems; the first: {object}: {text}")),
            };
            let argv = first["command"]["argv"].as_array().into_iter().flatten();
            let argv: Vec<&str> = argv.filter_map(JsonValue::as_str).collect();
            Err(failure.run("look closer", Suggested::new(argv)))
        })
    }
}
