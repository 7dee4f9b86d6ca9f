//! The runs in the lines of an export.

use contract::Json;
use contract::runs::{RunStatus, StepError, StepSnapshot, StepStatus};
use kernel::portable::{Builder, Item};
use kernel::runs::item::RunItem;
use kernel::runs::row::{EventRow, RunHead};
use kernel::{Catalogue, EventRef};

use crate::export::kinds;
use crate::import::items::{Unput, thing};
use crate::import::object::{Object, Wrong};

/// The kinds of their lines.
pub(crate) const KINDS: &[&str] = &[kinds::RUN, kinds::EVENT, kinds::STEP, kinds::RUN_REMOVAL];

/// Nothing is declared for runs.
pub(crate) fn declare(_: &mut Catalogue, _: &str, _: Object<'_>) -> Result<bool, Wrong> {
    Ok(false)
}

pub(crate) fn put(builder: &mut Builder<'_>, kind: &str, line: Object<'_>) -> Result<(), Unput> {
    let run = &thing(builder.catalogue(), line, if kind == kinds::RUN { "name" } else { "run" })?;
    Ok(match kind {
        kinds::RUN => builder.put(&Item::Run(RunItem::Head { run, head: head(line)? })),
        kinds::STEP => builder.put(&Item::Run(RunItem::Step { run, step: step(line)? })),
        kinds::RUN_REMOVAL => builder.put(&Item::Run(RunItem::Removal { run, at_us: line.number("at_us")? })),
        _ => return event(builder, line),
    }?)
}

fn head(line: Object<'_>) -> Result<RunHead, Wrong> {
    let status = line.text("status")?;
    let found = RunStatus::ALL.into_iter().find(|known| known.name() == status);
    let parent = match line.object_if("parent")? {
        None => None,
        Some(parent) => Some((parent.text("run")?.to_owned(), parent.number("seq")?)),
    };
    Ok(RunHead {
        run_type: line.text("type")?.to_owned(),
        closed: line.flag("closed")?,
        deleted: line.flag("deleted")?,
        last_seq: line.number("last_seq")?,
        commit: line.number("commit")?,
        created_us: line.number("created_us")?,
        last_event_us: line.number("last_event_us")?,
        index_us: 0,
        parent,
        depth: line.number_or_zero("depth")?,
        forks: line.number_or_zero("forks")?,
        status: found.ok_or_else(|| format!("there is no status {status:?}"))?,
        steps: line.number("steps")?,
        steps_left_out: line.number_or_zero("steps_left_out")?,
        started_at: line.string_if("started_at")?,
        completed_at: line.string_if("completed_at")?,
        artifacts: line.json_texts("artifacts")?.into_iter().map(Json::into_string).collect(),
        row_bytes: 0,
    })
}

fn event(builder: &mut Builder<'_>, line: Object<'_>) -> Result<(), Unput> {
    let run = thing(builder.catalogue(), line, "run")?;
    let (data, engine_run_ref, extra) = (line.json("data")?, line.json_if("engine_run_ref")?, line.json_if("extra")?);
    let event = EventRef {
        event_type: line.text("type")?,
        data: data.as_str(),
        idempotency_key: line.text("key")?,
        event_id: line.text_if("event_id")?,
        step_id: line.text_if("step_id")?,
        engine_attempt_id: line.text_if("engine_attempt_id")?,
        logical_attempt_id: line.text_if("logical_attempt_id")?,
        emitted_at: line.text_if("emitted_at")?,
        adapter_version: line.text_if("adapter_version")?,
        engine_run_ref: engine_run_ref.as_ref().map(Json::as_str),
        caused_by_signal_id: line.text_if("caused_by_signal_id")?,
        parent_event_id: line.text_if("parent_event_id")?,
        extra: extra.as_ref().map(Json::as_str),
    };
    let event = EventRow {
        persisted_us: line.number("persisted_us")?,
        commit: line.number("commit")?,
        prev_seq: line.number("prev_seq")?,
        event,
    };
    Ok(builder.put(&Item::Run(RunItem::Event { run: &run, seq: line.number("seq")?, event }))?)
}

fn step(line: Object<'_>) -> Result<StepSnapshot, Wrong> {
    let status = line.text("status")?;
    let found = StepStatus::ALL.into_iter().find(|known| known.name() == status);
    let error = match line.object_if("error")? {
        None => None,
        Some(error) => Some(StepError {
            code: error.text("code")?.to_owned(),
            message: error.text("message")?.to_owned(),
            retryable: error.boolean("retryable")?,
        }),
    };
    Ok(StepSnapshot {
        step_id: line.text("step_id")?.to_owned(),
        status: found.ok_or_else(|| format!("there is no status {status:?}"))?,
        logical_attempt_id: line.text("logical_attempt_id")?.to_owned(),
        engine_attempt_id: line.string_if("engine_attempt_id")?,
        started_at: line.string_if("started_at")?,
        completed_at: line.string_if("completed_at")?,
        error,
        artifacts: line.json_texts("artifacts")?,
    })
}
