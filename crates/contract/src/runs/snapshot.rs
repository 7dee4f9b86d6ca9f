//! The projection of a run: its current state according to its events.

use super::effect::{Effect, RunEffect, StepChange, StepCorrection, StepEffect, effect};
use super::event::StoredEvent;
use crate::limits::{RUN_ARTIFACT_BYTES_MAX, RUN_ARTIFACTS_MAX, RUN_STEPS_MAX};
use crate::object_text::ObjectText;
use crate::value::Json;

/// The status of a run. The numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum RunStatus {
    /// It has events, but none that sets a status.
    #[default]
    Pending = 0,
    /// It may start.
    Approved = 1,
    /// It is running.
    Running = 2,
    /// It is paused.
    Paused = 3,
    /// It succeeded.
    Completed = 4,
    /// It failed.
    Failed = 5,
    /// It was cancelled.
    Cancelled = 6,
}

impl RunStatus {
    /// All statuses, in the order of their numbers.
    pub const ALL: [Self; 7] =
        [Self::Pending, Self::Approved, Self::Running, Self::Paused, Self::Completed, Self::Failed, Self::Cancelled];

    /// Whether it is over.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// The contract's spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Approved => "APPROVED",
            Self::Running => "RUNNING",
            Self::Paused => "PAUSED",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }
}

/// The status of a step. The numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum StepStatus {
    /// Nothing is known about it.
    #[default]
    Pending = 0,
    /// It is running.
    Running = 1,
    /// It succeeded.
    Success = 2,
    /// It failed.
    Failed = 3,
    /// It was skipped.
    Skipped = 4,
}

impl StepStatus {
    /// All statuses, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Running, Self::Success, Self::Failed, Self::Skipped];

    /// The contract's spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Running => "RUNNING",
            Self::Success => "SUCCESS",
            Self::Failed => "FAILED",
            Self::Skipped => "SKIPPED",
        }
    }
}

/// The error of a failed step.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StepError {
    /// A code for programs.
    pub code: String,
    /// A message for people.
    pub message: String,
    /// Whether a retry may help.
    pub retryable: bool,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StepSnapshot {
    /// Its id.
    pub step_id: String,
    /// Its status.
    pub status: StepStatus,
    /// The logical attempt of its last event; empty if that had none.
    pub logical_attempt_id: String,
    /// The engine attempt of its last event.
    pub engine_attempt_id: Option<String>,
    /// When it started, according to its event.
    pub started_at: Option<String>,
    /// When it ended, according to its event.
    pub completed_at: Option<String>,
    /// Its artifacts, each a JSON object.
    pub artifacts: Vec<Json>,
    /// Its error, if it failed.
    pub error: Option<StepError>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RunSnapshot {
    /// Its id.
    pub run_id: String,
    /// Its status.
    pub status: RunStatus,
    /// The sequence of the last event in the projection.
    pub last_event_seq: u64,
    /// The steps, in the order of their ids.
    pub steps: Vec<StepSnapshot>,
    /// The number of events of steps beyond [`RUN_STEPS_MAX`].
    pub steps_left_out: u64,
    /// Artifacts of the run as a whole, each a JSON object.
    pub artifacts: Vec<Json>,
    /// When it started, according to its event.
    pub started_at: Option<String>,
    /// When it ended, according to its event.
    pub completed_at: Option<String>,
    /// The time between the two.
    pub total_duration_ms: Option<u64>,
}

impl RunSnapshot {
    /// A run before its first event.
    pub fn empty(run_id: impl Into<String>) -> Self {
        Self { run_id: run_id.into(), ..Self::default() }
    }

    /// The projection after one more event.
    pub fn apply(&mut self, event: &StoredEvent) {
        self.last_event_seq = event.run_seq;
        let Effect { run, step } = effect(&event.event);
        if let Some(run) = run {
            self.apply_to_run(run);
        }
        let (Some(step), Some(step_id)) = (step, &event.event.step_id) else {
            return;
        };
        match self.steps.binary_search_by(|known| known.step_id.as_str().cmp(step_id)) {
            Ok(place) => self.steps[place].change(step),
            Err(_) if self.steps.len() >= RUN_STEPS_MAX => self.steps_left_out += 1,
            Err(place) => {
                let mut new = StepSnapshot { step_id: step_id.clone(), ..StepSnapshot::default() };
                new.change(step);
                self.steps.insert(place, new);
            }
        }
    }

    /// Applies the effect of an event on the run as a whole.
    pub fn apply_to_run(&mut self, effect: RunEffect) {
        // A run that is over does not change.
        if self.status.is_terminal() {
            return;
        }
        self.status = effect.status;
        if effect.started_at.is_some() && self.started_at.is_none() {
            self.started_at = effect.started_at;
        }
        if effect.completed_at.is_some() {
            self.completed_at = effect.completed_at;
            self.total_duration_ms = duration_ms(self.started_at.as_deref(), self.completed_at.as_deref());
        }
        keep(&mut self.artifacts, effect.artifacts);
    }

    /// The projection as the contract's JSON.
    pub fn to_json(&self) -> String {
        let steps: Vec<String> = self.steps.iter().map(StepSnapshot::to_json).collect();
        let mut json = ObjectText::default();
        json.text("runId", &self.run_id).text("status", self.status.name());
        json.number("lastEventSeq", self.last_event_seq);
        json.list("steps", steps.iter().map(String::as_str)).jsons("artifacts", &self.artifacts);
        json.text_if("startedAt", self.started_at.as_deref()).text_if("completedAt", self.completed_at.as_deref());
        if let Some(duration) = self.total_duration_ms {
            json.number("totalDurationMs", duration);
        }
        if self.steps_left_out > 0 {
            json.number("stepsLeftOut", self.steps_left_out);
        }
        json.finish()
    }
}

/// The time between two ISO 8601 times; none if one is missing or they are in the wrong order.
pub fn duration_ms(started_at: Option<&str>, completed_at: Option<&str>) -> Option<u64> {
    let ms =
        |text: Option<&str>| text.and_then(|text| text.parse::<jiff::Timestamp>().ok()).map(|at| at.as_millisecond());
    u64::try_from(ms(completed_at)?.checked_sub(ms(started_at)?)?).ok()
}

/// Adds artifacts, as long as they fit.
fn keep(kept: &mut Vec<Json>, artifacts: Vec<Json>) {
    let mut bytes: usize = kept.iter().map(|artifact| artifact.as_str().len()).sum();
    for artifact in artifacts {
        let fits = kept.len() < RUN_ARTIFACTS_MAX && bytes + artifact.as_str().len() <= RUN_ARTIFACT_BYTES_MAX;
        if fits {
            bytes += artifact.as_str().len();
            kept.push(artifact);
        }
    }
}

impl StepSnapshot {
    /// The step after one more event.
    pub fn change(&mut self, change: StepChange) {
        match change {
            StepChange::Went(effect) => self.apply(effect),
            StepChange::Corrected(correction) => self.correct(correction),
        }
    }

    fn apply(&mut self, effect: StepEffect) {
        self.status = effect.status;
        self.logical_attempt_id = effect.logical_attempt_id.unwrap_or_default();
        self.engine_attempt_id = effect.engine_attempt_id;
        match effect.status {
            StepStatus::Running => {
                self.started_at = Some(effect.at);
                self.completed_at = None;
            }
            _ => self.completed_at = Some(effect.at),
        }
        self.error = effect.error;
        keep(&mut self.artifacts, effect.artifacts);
    }

    /// The step after a correction: what it names is replaced, and what would contradict the new status goes.
    fn correct(&mut self, correction: StepCorrection) {
        if let Some(status) = correction.status {
            self.status = status;
            if status != StepStatus::Failed {
                self.error = None;
            }
            if matches!(status, StepStatus::Pending | StepStatus::Running) {
                self.completed_at = None;
            }
        }
        let replace = |kept: &mut Option<String>, given: Option<Option<String>>| *kept = given.unwrap_or(kept.take());
        replace(&mut self.started_at, correction.started_at);
        replace(&mut self.completed_at, correction.completed_at);
        if let Some(error) = correction.error {
            self.error = error;
        }
        if let Some(artifacts) = correction.artifacts {
            self.artifacts.clear();
            keep(&mut self.artifacts, artifacts);
        }
        if let Some(attempt) = correction.logical_attempt_id {
            self.logical_attempt_id = attempt;
        }
        self.engine_attempt_id = correction.engine_attempt_id.or(self.engine_attempt_id.take());
    }

    fn to_json(&self) -> String {
        let mut json = ObjectText::default();
        json.text("stepId", &self.step_id).text("status", self.status.name());
        json.text("logicalAttemptId", &self.logical_attempt_id);
        json.text_if("engineAttemptId", self.engine_attempt_id.as_deref());
        json.text_if("startedAt", self.started_at.as_deref()).text_if("completedAt", self.completed_at.as_deref());
        json.jsons("artifacts", &self.artifacts);
        if let Some(error) = &self.error {
            let mut found = ObjectText::default();
            found.text("code", &error.code).text("message", &error.message);
            found.raw("retryable", if error.retryable { "true" } else { "false" });
            json.raw("error", &found.finish());
        }
        json.finish()
    }
}
