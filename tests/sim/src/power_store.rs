//! Power loss of the whole store.

use std::process::ExitCode;

use crate::arguments::Arguments;
use crate::report::Report;

pub fn run(_arguments: &Arguments) -> Report {
    Report::new()
}

pub fn run_syncs(_arguments: &Arguments) -> Report {
    Report::new()
}

pub fn child(_arguments: &Arguments) -> ExitCode {
    ExitCode::FAILURE
}
