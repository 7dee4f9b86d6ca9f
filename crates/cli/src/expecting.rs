//! `--expect`: what a thing has to be for a write to be done.

use std::str::FromStr;

use clap::Args;

use crate::connection::Call;

/// A version, or that there is nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Absent,
    Version(u64),
}

impl FromStr for Expected {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "absent" => Ok(Self::Absent),
            _ => text.parse().map(Self::Version).map_err(|_| "write a version, or `absent`".to_owned()),
        }
    }
}

impl Expected {
    /// Says it in the headers of a request.
    pub(crate) fn in_headers(self, call: Call) -> Call {
        match self {
            Expected::Absent => call.header("if-none-match", Some("*")),
            Expected::Version(version) => call.header("if-match", Some(format!("\"{version}\""))),
        }
    }
}

/// The flag.
#[derive(Args, Clone, Debug)]
pub(crate) struct Expect {
    /// Do it only if it is at this version, or `absent`; otherwise exit with 4.
    #[arg(long, value_name = "VERSION")]
    expect: Option<Expected>,
}

impl Expect {
    pub(crate) fn in_headers(&self, call: Call) -> Call {
        match self.expect {
            Some(expected) => expected.in_headers(call),
            None => call,
        }
    }
}
