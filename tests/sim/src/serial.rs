//! Serialisability.

use crate::arguments::Arguments;
use crate::report::Report;

pub fn run(_arguments: &Arguments) -> Report {
    Report::new()
}
