//! The lines of an export for runs.

use contract::Json;
use contract::runs::{StepError, StepSnapshot};
use kernel::catalogue::Space;
use kernel::runs::item::RunItem;
use kernel::runs::row::{EventRow, RunHead};
use session::Halt;

use crate::export::kinds;
use crate::export::line::Line;
use crate::export::lines::Place;

/// Nothing is declared for runs.
pub(crate) fn declared(_: &Space) -> Vec<(&'static str, Line)> {
    Vec::new()
}

pub(crate) fn line(place: &Place<'_>, item: &RunItem<'_>) -> Result<(&'static str, Line), Halt> {
    Ok(match item {
        RunItem::Head { run: id, head } => (kinds::RUN, run(place.line(kinds::RUN, id, "name")?, head)),
        RunItem::Event { run, seq, event: row } => {
            (kinds::EVENT, event(place.line(kinds::EVENT, run, "run")?, *seq, row))
        }
        RunItem::Step { run, step: snapshot } => (kinds::STEP, step(place.line(kinds::STEP, run, "run")?, snapshot)),
        RunItem::Removal { run, at_us } => {
            (kinds::RUN_REMOVAL, place.line(kinds::RUN_REMOVAL, run, "run")?.number("at_us", *at_us))
        }
    })
}

fn run(line: Line, head: &RunHead) -> Line {
    let line = line
        .text("type", &head.run_type)
        .text("status", head.status.name())
        .flag("closed", head.closed)
        .flag("deleted", head.deleted)
        .number("last_seq", head.last_seq)
        .number("commit", head.commit)
        .number("created_us", head.created_us)
        .number("last_event_us", head.last_event_us);
    let line = match &head.parent {
        None => line,
        Some((run, seq)) => line.nested("parent", Line::object().text("run", run).number("seq", *seq)),
    };
    line.number_unless_zero("depth", head.depth)
        .number_unless_zero("forks", head.forks)
        .number("steps", head.steps)
        .number_unless_zero("steps_left_out", head.steps_left_out)
        .text_if("started_at", head.started_at.as_deref())
        .text_if("completed_at", head.completed_at.as_deref())
        .texts("artifacts", head.artifacts.iter().map(String::as_str))
}

fn event(line: Line, seq: u64, row: &EventRow<'_>) -> Line {
    let event = &row.event;
    line.number("seq", seq)
        .number("prev_seq", row.prev_seq)
        .number("commit", row.commit)
        .number("persisted_us", row.persisted_us)
        .text("type", event.event_type)
        .text("key", event.idempotency_key)
        .text_if("emitted_at", event.emitted_at)
        .text_if("event_id", event.event_id)
        .text_if("step_id", event.step_id)
        .text_if("engine_attempt_id", event.engine_attempt_id)
        .text_if("logical_attempt_id", event.logical_attempt_id)
        .text_if("adapter_version", event.adapter_version)
        .json_if("engine_run_ref", event.engine_run_ref)
        .text_if("caused_by_signal_id", event.caused_by_signal_id)
        .text_if("parent_event_id", event.parent_event_id)
        .json_if("extra", event.extra)
        .json("data", event.data)
}

fn step(line: Line, step: &StepSnapshot) -> Line {
    let error = |error: &StepError| {
        let line = Line::object().text("code", &error.code).text("message", &error.message);
        line.boolean("retryable", error.retryable)
    };
    let line = line
        .text("step_id", &step.step_id)
        .text("status", step.status.name())
        .text("logical_attempt_id", &step.logical_attempt_id)
        .text_if("engine_attempt_id", step.engine_attempt_id.as_deref())
        .text_if("started_at", step.started_at.as_deref())
        .text_if("completed_at", step.completed_at.as_deref());
    let line = match &step.error {
        Some(found) => line.nested("error", error(found)),
        None => line,
    };
    line.texts("artifacts", step.artifacts.iter().map(Json::as_str))
}
