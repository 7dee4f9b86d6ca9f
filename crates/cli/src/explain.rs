//! `explain`: the page of an error code, compiled in.

use clap::Args;
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Explain an error code and what to do about it.
///
/// Examples:
///   statehouse explain SH-1003
///   statehouse explain 4002 -o json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Explain {
    /// The code, with or without `SH-`.
    code: String,
}

impl Explain {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        let number = self.code.trim_start_matches("SH-").trim_start_matches("sh-");
        let code = format!("SH-{number}");
        match server::errors::page(&code) {
            Some(page) => output.told(page, &json!({ "code": code, "page": page })),
            None => Err(Failure::new(Exit::NotFound, format!("there is no code {code}"))
                .next("the first line of an error message starts with its code, such as SH-1003")),
        }
    }
}
