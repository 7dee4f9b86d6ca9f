//! `explain`: the page of an error code, compiled in.

use clap::Args;
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::output::Output;

/// What an error code means, and what to do.
///
/// Examples:
///   statehouse explain SH-1003
///   statehouse explain 4002 -o json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Explain {
    /// The code; `SH-` may be left out.
    code: String,
}

impl Explain {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        let number = self.code.trim_start_matches("SH-").trim_start_matches("sh-");
        let code = format!("SH-{number}");
        match server::errors::page(&code) {
            Some(page) => output.told(page, &json!({ "code": code, "page": page })),
            None => Err(Failure::new(Exit::NotFound, format!("there is no code {code}"))
                .next("codes are in the first line of what a command says, as SH-1003")),
        }
    }
}
