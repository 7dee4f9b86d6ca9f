//! Problems of operators: a partition in which nothing moves.

use std::time::Duration;

use contract::shell::Suggested;
use statehouse::Overview;

use super::{Severity, Trouble, in_place, long_time};

/// An owned partition in which nothing has changed for this long is a problem.
const SILENT_LONG: Duration = Duration::from_secs(3_600);

/// Its owner keeps its lease, and its inputs do not move.
pub(super) fn silent(overview: &Overview) -> Option<Trouble> {
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
