//! Cells on the status page: nothing is said of them, because the store does not count them.

use serde_json::Value as JsonValue;
use statehouse::{CellsOverview, Counters, Overview};

use crate::status::trouble::Trouble;

pub(in crate::api) fn members(_: &CellsOverview) -> Vec<(&'static str, JsonValue)> {
    Vec::new()
}

pub(in crate::api) fn lines(_: &CellsOverview) -> Vec<String> {
    Vec::new()
}

pub(in crate::api) fn problems(_: &Counters, _: &Overview) -> Vec<Trouble> {
    Vec::new()
}
