//! The projection of a run, in its head and in a row per step, written in the commit of the event.
//!
//! Keeps: L3 (the projection equals a replay of the events).

use contract::Json;
use contract::limits::RUN_STEPS_MAX;
use contract::runs::effect::RunEffect;
use contract::runs::{Effect, RunSnapshot, StepSnapshot, effect};
use session::Halt;

use super::row::{RunHead, decode_step, encode_step};
use crate::context::Applying;
use crate::held::Was;
use crate::keys::ThingId;
use crate::runs::command::EventRef;

/// Brings the projection up to an event.
pub(crate) fn apply(
    applying: &mut Applying<'_>,
    run: &ThingId<'_>,
    head: &mut RunHead,
    event: &EventRef<'_>,
) -> Result<(), Halt> {
    // Most events of an engine's own mean nothing here, and need no copy.
    if !event.event_type.starts_with("Run") && !event.event_type.starts_with("Step") {
        return Ok(());
    }
    let Effect { run: on_run, step: on_step } = effect(&event.to_new_event());
    if let Some(effect) = on_run {
        apply_to_run(head, effect);
    }
    let (Some(effect), Some(step_id)) = (on_step, event.step_id) else {
        return Ok(());
    };
    let key = applying.keys.run_step(run, step_id);
    let row = applying.state.get(&key)?;
    let was = row.as_ref().map(|row| Was::part(row.len()));
    let mut step = match row {
        Some(row) => decode_step(step_id, &row)?,
        None if head.steps >= RUN_STEPS_MAX as u64 => {
            head.steps_left_out += 1;
            return Ok(());
        }
        None => {
            head.steps += 1;
            StepSnapshot { step_id: step_id.to_owned(), ..StepSnapshot::default() }
        }
    };
    step.change(effect);
    applying.held().put(key, was, false, |writer| encode_step(writer, &step));
    Ok(())
}

/// The contract defines the rule; the head stores the result.
fn apply_to_run(head: &mut RunHead, effect: RunEffect) {
    let mut run = RunSnapshot::empty("");
    run.status = head.status;
    run.started_at = head.started_at.take();
    run.completed_at = head.completed_at.take();
    run.artifacts = std::mem::take(&mut head.artifacts).into_iter().map(Json::from_checked).collect();
    run.apply_to_run(effect);
    head.status = run.status;
    head.started_at = run.started_at;
    head.completed_at = run.completed_at;
    head.artifacts = run.artifacts.into_iter().map(Json::into_string).collect();
}
