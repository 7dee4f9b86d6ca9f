//! The effect of an event on the projection of its run. Only this module gives event types a meaning.
//!
//! | event | effect |
//! |---|---|
//! | `RunApproved` | the run is approved |
//! | `RunStarted` | the run is running; sets when it started |
//! | `RunPaused`, `RunResumed` | the run is paused; is running again |
//! | `RunCompleted`, `RunFailed`, `RunCancelled` | the run is over for good; artifacts of the run as a whole |
//! | `StepStarted` | the step is running |
//! | `StepCompleted` | the step succeeded; its artifacts |
//! | `StepFailed` | the step failed; its error |
//! | `StepSkipped` | the step was skipped |
//! | `StepCorrected` | replaces what its content names: `status`, `artifacts` (or `artifactRefs`), `error`, `startedAt`, `completedAt` |
//! | `SignalAccepted`, `SignalRejected` | none: the event records the decision |
//! | any other | none |

use std::borrow::Cow;

use super::event::NewEvent;
use super::snapshot::{RunStatus, StepError, StepStatus};
use crate::limits::STEP_ERROR_BYTES_MAX;
use crate::object_text::{self, Member};
use crate::value::Json;

/// The effect of an event: on the run, on its step, or none.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Effect {
    /// On the run as a whole.
    pub run: Option<RunEffect>,
    /// On the event's step.
    pub step: Option<StepChange>,
}

/// How a step changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepChange {
    /// It went on.
    Went(StepEffect),
    /// What was said about it is put right.
    Corrected(StepCorrection),
}

/// The effect on the run as a whole. It does not change a run that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEffect {
    /// The new status.
    pub status: RunStatus,
    /// When it started, if the event is the first to tell.
    pub started_at: Option<String>,
    /// When it ended.
    pub completed_at: Option<String>,
    /// Its artifacts.
    pub artifacts: Vec<Json>,
}

/// The effect on a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepEffect {
    /// The new status.
    pub status: StepStatus,
    /// The time of the event.
    pub at: String,
    /// The logical attempt of the event.
    pub logical_attempt_id: Option<String>,
    /// The engine attempt of the event.
    pub engine_attempt_id: Option<String>,
    /// Its artifacts.
    pub artifacts: Vec<Json>,
    /// Why it failed.
    pub error: Option<StepError>,
}

/// What a correction of a step says. What is none stays as it was; an inner none removes it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StepCorrection {
    /// Its status.
    pub status: Option<StepStatus>,
    /// All its artifacts.
    pub artifacts: Option<Vec<Json>>,
    /// Why it failed.
    pub error: Option<Option<StepError>>,
    /// When it started.
    pub started_at: Option<Option<String>>,
    /// When it ended.
    pub completed_at: Option<Option<String>>,
    /// The logical attempt of the event.
    pub logical_attempt_id: Option<String>,
    /// The engine attempt of the event.
    pub engine_attempt_id: Option<String>,
}

/// The effect of an event.
pub fn effect(event: &NewEvent) -> Effect {
    let run = match event.event_type.as_str() {
        "RunApproved" => Some(RunStatus::Approved),
        "RunStarted" | "RunResumed" => Some(RunStatus::Running),
        "RunPaused" => Some(RunStatus::Paused),
        "RunCompleted" => Some(RunStatus::Completed),
        "RunFailed" => Some(RunStatus::Failed),
        "RunCancelled" => Some(RunStatus::Cancelled),
        _ => None,
    };
    let step = match event.event_type.as_str() {
        "StepStarted" => Some(StepStatus::Running),
        "StepCompleted" => Some(StepStatus::Success),
        "StepFailed" => Some(StepStatus::Failed),
        "StepSkipped" => Some(StepStatus::Skipped),
        _ => None,
    };
    if event.event_type == "StepCorrected" {
        let corrected = event.step_id.as_ref().map(|_| StepChange::Corrected(correction(event)));
        return Effect { run: None, step: corrected };
    }
    // The content is parsed only where it matters.
    let ends =
        run.is_some_and(RunStatus::is_terminal) || matches!(step, Some(StepStatus::Success | StepStatus::Failed));
    let data = if ends { Content::read(event.data.as_str()) } else { Content::default() };
    // An applied event has its time; see `StoredEvent::new`.
    let at = event.emitted_at.clone().unwrap_or_default();
    Effect {
        run: run.map(|status| RunEffect {
            status,
            started_at: (event.event_type == "RunStarted").then(|| at.clone()),
            completed_at: status.is_terminal().then(|| at.clone()),
            artifacts: data.artifacts(),
        }),
        step: step.filter(|_| event.step_id.is_some()).map(|status| {
            StepChange::Went(StepEffect {
                status,
                at: at.clone(),
                logical_attempt_id: event.logical_attempt_id.clone(),
                engine_attempt_id: event.engine_attempt_id.clone(),
                artifacts: data.artifacts(),
                error: (status == StepStatus::Failed).then(|| data.error()),
            })
        }),
    }
}

fn correction(event: &NewEvent) -> StepCorrection {
    let data = Content::read(event.data.as_str());
    let status = data.text("status").and_then(|name| StepStatus::ALL.into_iter().find(|status| status.name() == name));
    // What has the wrong form says nothing: a slip must not remove what is there.
    let artifacts = data.artifact_list().filter(|list| list.starts_with('['));
    let error = match data.member("error") {
        Some("null") => Some(None),
        Some(error) if error.starts_with('{') => Some(Some(data.error())),
        _ => None,
    };
    StepCorrection {
        status,
        artifacts: artifacts.map(|_| data.artifacts()),
        error,
        started_at: data.time("startedAt"),
        completed_at: data.time("completedAt"),
        logical_attempt_id: event.logical_attempt_id.clone(),
        engine_attempt_id: event.engine_attempt_id.clone(),
    }
}

/// An object in an event's content; other values have no members. The last of two equal members counts.
#[derive(Default)]
struct Content<'data>(Vec<Member<'data>>);

impl<'data> Content<'data> {
    fn read(json: &'data str) -> Self {
        Self(object_text::members(json).unwrap_or_default())
    }

    fn member(&self, name: &str) -> Option<&'data str> {
        self.0.iter().rev().find(|member| member.name == name).map(|member| member.json)
    }

    fn artifact_list(&self) -> Option<&'data str> {
        self.member("artifactRefs").or_else(|| self.member("artifacts"))
    }

    /// `artifactRefs` or `artifacts`: a list of objects, each as sent.
    fn artifacts(&self) -> Vec<Json> {
        let entries = self.artifact_list().and_then(|list| object_text::entries(list).ok()).unwrap_or_default();
        let objects = entries.into_iter().filter(|entry| entry.starts_with('{'));
        objects.map(|artifact| Json::from_checked(artifact.to_owned())).collect()
    }

    fn text(&self, name: &str) -> Option<String> {
        self.member(name).and_then(|json| object_text::text(json).ok()).map(Cow::into_owned)
    }

    /// A time, or that there is none; whatever else is there says nothing.
    fn time(&self, name: &str) -> Option<Option<String>> {
        match self.member(name) {
            Some("null") => Some(None),
            _ => self.text(name).filter(|text| text.parse::<jiff::Timestamp>().is_ok()).map(Some),
        }
    }

    /// `error`, or the content itself.
    fn error(&self) -> StepError {
        let inner = self.member("error").map(Content::read);
        let error = inner.as_ref().unwrap_or(self);
        let text = |name| {
            let mut text = error.text(name).unwrap_or_default();
            text.truncate(text.floor_char_boundary(STEP_ERROR_BYTES_MAX));
            text
        };
        StepError { code: text("code"), message: text("message"), retryable: error.member("retryable") == Some("true") }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RunSnapshot, StoredEvent};
    use super::*;

    fn event(event_type: &str, step: Option<&str>, at: &str, data: &str) -> NewEvent {
        let event = NewEvent::new(event_type, "k", at, Json::new(data).expect("JSON"));
        match step {
            Some(step) => event.of_step(step, "1"),
            None => event,
        }
    }

    #[test]
    fn a_run_is_projected_as_the_contract_says() {
        let events = [
            event("RunApproved", None, "2026-01-01T00:00:00Z", "{}"),
            event("RunStarted", None, "2026-01-01T00:00:01Z", "{}"),
            event("StepStarted", Some("b"), "2026-01-01T00:00:02Z", "{}"),
            event("StepStarted", Some("a"), "2026-01-01T00:00:02Z", "{}"),
            event(
                "StepFailed",
                Some("a"),
                "2026-01-01T00:00:03Z",
                r#"{"error":{"code":"E","message":"m","retryable":true}}"#,
            ),
            event(
                "StepCompleted",
                Some("b"),
                "2026-01-01T00:00:04Z",
                r#"{"artifactRefs":[ {"uri":"s3://x" ,"bytes":1.0e400, "uri":"s3:\/\/x"}, 1 ]}"#,
            ),
            event("SignalAccepted", None, "2026-01-01T00:00:05Z", "{}"),
            event("SomethingNew", Some("c"), "2026-01-01T00:00:05Z", "{}"),
            event("RunPaused", None, "2026-01-01T00:00:06Z", "{}"),
            event("RunResumed", None, "2026-01-01T00:00:07Z", "{}"),
            event("StepSkipped", Some("d"), "2026-01-01T00:00:07Z", "{}"),
            event("RunCompleted", None, "2026-01-01T00:00:08.500Z", "{}"),
            event("RunFailed", None, "2026-01-01T00:00:09Z", "{}"),
        ];
        let mut snapshot = RunSnapshot::empty("r");
        for (seq, event) in (1..).zip(events) {
            snapshot.apply(&StoredEvent::new("r".into(), 0, seq, seq - 1, 0, seq, event));
        }
        let expected = concat!(
            r#"{"runId":"r","status":"COMPLETED","lastEventSeq":13,"steps":["#,
            r#"{"stepId":"a","status":"FAILED","logicalAttemptId":"1","startedAt":"2026-01-01T00:00:02Z","#,
            r#""completedAt":"2026-01-01T00:00:03Z","artifacts":[],"error":{"code":"E","message":"m","retryable":true}},"#,
            r#"{"stepId":"b","status":"SUCCESS","logicalAttemptId":"1","startedAt":"2026-01-01T00:00:02Z","#,
            r#""completedAt":"2026-01-01T00:00:04Z","artifacts":[{"uri":"s3://x" ,"bytes":1.0e400, "uri":"s3:\/\/x"}]},"#,
            r#"{"stepId":"d","status":"SKIPPED","logicalAttemptId":"1","completedAt":"2026-01-01T00:00:07Z","artifacts":[]}],"#,
            r#""artifacts":[],"startedAt":"2026-01-01T00:00:01Z","completedAt":"2026-01-01T00:00:08.500Z","totalDurationMs":7500}"#,
        );
        assert_eq!(snapshot.to_json(), expected, "an artifact is the text that was given");
    }
}
