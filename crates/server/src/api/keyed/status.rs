//! Keyed state on the status page: partitions in which nothing moves. Nothing is said of maps, because the store does not count them.

use std::time::Duration;

use contract::shell::Suggested;
use serde_json::Value as JsonValue;
use statehouse::keyed::KeyedOverview;
use statehouse::{Counters, Overview};

use crate::status::trouble::{Severity, Trouble, in_place, long_time};

/// An owned partition in which nothing has changed for this long is a problem.
const SILENT_LONG: Duration = Duration::from_secs(3_600);

pub(in crate::api) fn members(_: &KeyedOverview) -> Vec<(&'static str, JsonValue)> {
    Vec::new()
}

pub(in crate::api) fn lines(_: &KeyedOverview) -> Vec<String> {
    Vec::new()
}

pub(in crate::api) fn problems(_: &Counters, overview: &Overview) -> Vec<Trouble> {
    silent(overview).into_iter().collect()
}

/// Its owner keeps its lease, and its inputs do not move.
fn silent(overview: &Overview) -> Option<Trouble> {
    let silent = overview.keyed.silent.as_ref().filter(|silent| silent.silent_for > SILENT_LONG)?;
    let command = in_place(Suggested::new(["statehouse", "why", "operator"]), &silent.space, &silent.branch);
    Some(Trouble {
        problem: "partition_silent",
        severity: Severity::Warning,
        object: format!("partition {}/{}", silent.operator, silent.number),
        text: format!(
            "it is owned, and nothing of it has changed for {}: its source is quiet, or its worker is stuck",
            long_time(silent.silent_for)
        ),
        number: silent.silent_for.as_secs_f64(),
        threshold: SILENT_LONG.as_secs_f64(),
        unit: "s",
        command: command.flag("--partition", silent.number.to_string()).name(&silent.operator),
    })
}
