//! `--expect`: the precondition of a write.

use clap::Args;
use client::Call;
use statehouse::Expected;

/// A version, or `absent`.
pub(crate) fn expected(text: &str) -> Result<Expected, String> {
    match text {
        "absent" => Ok(Expected::Absent),
        _ => text.parse().map(Expected::Version).map_err(|_| "write a version, or `absent`".to_owned()),
    }
}

/// The flag.
#[derive(Args, Clone, Debug)]
pub(crate) struct Expect {
    /// Only write if it is at this version, or `absent`; otherwise exit with 4.
    #[arg(long, value_name = "VERSION", value_parser = expected)]
    expect: Option<Expected>,
}

impl Expect {
    /// Adds the condition to a call.
    pub(crate) fn of(&self, call: Call) -> Call {
        call.if_expected(self.expect)
    }
}
