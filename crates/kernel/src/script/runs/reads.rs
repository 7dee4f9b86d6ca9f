//! What a script can read of runs.

use contract::limits::SCAN_ROWS_MAX;
use contract::runs::{FETCH_LIMIT, RunSnapshot, RunStatus, StepSnapshot, StoredEvent};
use contract::time::parse_iso;
use contract::{Json, Rejection};

use super::super::Stage;
use super::super::words::{
    groups_and_prefix, joined, number, option, prefix, show_time, shown_name, small_number, time_us,
};
use crate::keys::ThingId;
use crate::names::InGroup;
use crate::runs::list::{ListedRun, RunFilter, RunPage, ViewRuns};
use crate::runs::read;
use crate::runs::row::RunHead;

const LIST_OPTIONS: [&str; 6] = ["status", "kind", "idle", "limit", "examine", "more"];

impl Stage {
    pub(in crate::script) fn read_runs(&mut self, words: &[&str]) -> Option<String> {
        Some(match words {
            ["events", run, options @ ..] => self.of_run(run, |stage, id, head| stage.events(id, head, options)),
            ["event", run, seq] => self.of_run(run, |stage, id, head| stage.event(id, head, number(seq))),
            ["before", run, time] => self.of_run(run, |stage, id, head| {
                let (view, keys) = (stage.view(), stage.kernel.keys());
                format!("{}", read::seq_before(&*view, &keys, id, head, time_us(time)).unwrap())
            }),
            ["snapshot", run] => self.of_run(run, |stage, id, head| {
                let (view, keys) = (stage.view(), stage.kernel.keys());
                show_snapshot(&read::snapshot(&*view, &keys, id, head).unwrap())
            }),
            ["runs", options @ ..] => self.runs(options),
            ["count", "runs", options @ ..] => self.count_runs(options),
            ["all", "runs", options @ ..] => self.all_runs(options),
            ["quietest", kind] => self.quietest(kind),
            _ => return None,
        })
    }

    fn of_run(&self, run: &str, show: impl FnOnce(&Self, &ThingId<'_>, &RunHead) -> String) -> String {
        let id = self.thing(run);
        match read::head(&*self.view(), &self.kernel.keys(), &id).unwrap() {
            Ok(head) => show(self, &id, &head),
            Err(rejection) => rejection.to_string(),
        }
    }

    pub(in crate::script) fn fetch(
        &self,
        run: &ThingId<'_>,
        head: &RunHead,
        after: u64,
        limit: usize,
    ) -> Vec<StoredEvent> {
        let fetched = read::fetch(&*self.view(), &self.kernel.keys(), run, head, after, limit).unwrap();
        assert_eq!(fetched.stable_seq, head.last_seq);
        for (place, event) in (after + 1..).zip(&fetched.events) {
            assert_eq!((event.run_seq, event.prev_seq, &*event.run_id), (place, place - 1, run.name), "L1");
        }
        fetched.events
    }

    fn events(&self, run: &ThingId<'_>, head: &RunHead, options: &[&str]) -> String {
        let after = option(options, "after").map_or(0, number);
        let limit = option(options, "limit").map_or(FETCH_LIMIT, small_number);
        let events = self.fetch(run, head, after, limit);
        let shown = events.iter().map(|event| format!("{} {}", event.run_seq, event.event.event_type));
        format!("{} of {}", joined(shown.collect()), head.last_seq)
    }

    /// Everything of an event.
    fn event(&self, run: &ThingId<'_>, head: &RunHead, seq: u64) -> String {
        let events = self.fetch(run, head, seq - 1, 1);
        let Some(StoredEvent { event, event_id, persisted_at, commit, .. }) = events.first() else {
            return "absent".into();
        };
        let mut shown = vec![event.event_type.clone(), event.idempotency_key.clone()];
        let json = |json: &Option<Json>| json.as_ref().map(|json| json.as_str().to_owned());
        for (word, text) in [
            ("id", event.event_id.clone()),
            ("step", event.step_id.clone()),
            ("logical", event.logical_attempt_id.clone()),
            ("engine", event.engine_attempt_id.clone()),
            ("adapter", event.adapter_version.clone()),
            ("ref", json(&event.engine_run_ref)),
            ("signal", event.caused_by_signal_id.clone()),
            ("parent", event.parent_event_id.clone()),
            ("extra", json(&event.extra)),
        ] {
            shown.extend(text.map(|text| format!("{word} {text}")));
        }
        assert!(event.event_id.as_ref().is_none_or(|given| given == event_id), "a given id stays");
        shown.push(format!("data {}", event.data.as_str()));
        shown.push(format!("emitted {}", show_iso(event.emitted_at.as_deref()).unwrap()));
        shown.push(format!("persisted {} c{commit}", show_time(*persisted_at)));
        shown.join(" ")
    }

    fn view_runs<T>(&self, read: impl FnOnce(&ViewRuns<'_>) -> T) -> T {
        let view = self.view();
        read(&ViewRuns { view: &*view, keys: self.kernel.keys(), catalogue: self.kernel.catalogue() })
    }

    fn runs(&mut self, options: &[&str]) -> String {
        let (groups, prefix) = groups_and_prefix(prefix(options, &LIST_OPTIONS));
        let named = |text: &str| RunStatus::ALL.into_iter().find(|status| status.name() == text).unwrap();
        let statuses: Vec<RunStatus> = match option(options, "status") {
            None => RunStatus::ALL.to_vec(),
            Some(statuses) => statuses.split('|').map(named).collect(),
        };
        let now_us = self.kernel.applied().stamp.wall_us;
        let filter = RunFilter {
            space: self.space,
            branch: self.branch,
            groups,
            prefix,
            statuses: &statuses,
            run_type: option(options, "kind"),
            quiet_since_us: option(options, "idle").map_or(u64::MAX, |idle| now_us.saturating_sub(time_us(idle))),
        };
        let cursor = self.cursor.take().filter(|_| options.contains(&"more"));
        let page = RunPage {
            limit: option(options, "limit").map_or(100, small_number),
            rows_max: option(options, "examine").map_or(SCAN_ROWS_MAX, small_number),
            cursor: cursor.as_deref(),
        };
        let listed = match self.view_runs(|runs| runs.list(&filter, &page)).unwrap() {
            Ok(listed) => listed,
            Err(rejection) => return rejection.to_string(),
        };
        let shown = listed.runs.iter().map(show_listed).chain(listed.cursor.as_ref().map(|_| "more".into()));
        let shown = joined(shown.collect());
        self.cursor = listed.cursor;
        shown
    }

    fn count_runs(&self, options: &[&str]) -> String {
        let place = (self.space, self.branch);
        let shown = |kind: &str, status: RunStatus, count: u64| {
            format!("{kind} {} {count}", status.name()).trim_start().to_owned()
        };
        match groups_and_prefix(prefix(options, &["examine"])).0 {
            InGroup::Named(group) => {
                let rows_max = option(options, "examine").map_or(SCAN_ROWS_MAX, small_number);
                match self.view_runs(|runs| runs.counts_of_group(place, group, rows_max)).unwrap() {
                    Ok(counts) => {
                        joined(counts.iter().map(|((kind, status), count)| shown(kind, *status, *count)).collect())
                    }
                    Err(rejection) => Rejection::to_string(&rejection),
                }
            }
            InGroup::Any | InGroup::Own => {
                let counts = read::counts(&*self.view(), &self.kernel.keys(), place.0, place.1).unwrap();
                joined(counts.iter().map(|(kind, status, count)| shown(kind, *status, *count)).collect())
            }
        }
    }

    /// All runs in pages, sorted by name: their order is that of the keys.
    fn all_runs(&self, options: &[&str]) -> String {
        let limit = option(options, "limit").map_or(100, small_number);
        let (view, keys, catalogue) = (self.view(), self.kernel.keys(), self.kernel.catalogue());
        let (mut names, mut cursor) = (Vec::new(), None::<Vec<u8>>);
        loop {
            let place = (self.space, self.branch);
            let (found, next) = read::all(&*view, &keys, catalogue, place, cursor.as_deref(), limit).unwrap();
            names.extend(found.iter().map(|id| shown_name(id.group.as_deref(), &id.name)));
            cursor = next;
            if cursor.is_none() {
                names.sort();
                return joined(names);
            }
        }
    }

    fn quietest(&self, kind: &str) -> String {
        let found = self.view_runs(|runs| runs.quietest((self.space, self.branch), kind)).unwrap();
        found.as_ref().map_or("none".into(), show_listed)
    }
}

fn show_listed(run: &ListedRun) -> String {
    let name = shown_name(run.group.as_deref(), &run.name);
    format!("{name} {} {} {}", run.run_type, run.status.name(), run.last_seq).replace("  ", " ")
}

fn show_iso(text: Option<&str>) -> Option<String> {
    text.map(|text| show_time(parse_iso(text).unwrap()))
}

fn show_times(started_at: Option<&str>, completed_at: Option<&str>) -> impl Iterator<Item = String> {
    let from = show_iso(started_at).map(|time| format!("from {time}"));
    from.into_iter().chain(show_iso(completed_at).map(|time| format!("to {time}")))
}

/// The run, then each of its steps.
fn show_snapshot(snapshot: &RunSnapshot) -> String {
    let mut run = vec![format!("{} at {}", snapshot.status.name(), snapshot.last_event_seq)];
    run.extend(show_times(snapshot.started_at.as_deref(), snapshot.completed_at.as_deref()));
    run.extend(snapshot.total_duration_ms.map(|ms| format!("took {}", show_time(ms * 1_000))));
    run.extend(snapshot.artifacts.iter().map(|artifact| artifact.as_str().to_owned()));
    if snapshot.steps_left_out > 0 {
        run.push(format!("{} left out", snapshot.steps_left_out));
    }
    std::iter::once(run.join(" ")).chain(snapshot.steps.iter().map(show_step)).collect::<Vec<_>>().join(", ")
}

fn show_step(step: &StepSnapshot) -> String {
    let mut shown = vec![format!("{} {}", step.step_id, step.status.name())];
    if !step.logical_attempt_id.is_empty() {
        shown.push(format!("logical {}", step.logical_attempt_id));
    }
    shown.extend(step.engine_attempt_id.as_ref().map(|engine| format!("engine {engine}")));
    shown.extend(show_times(step.started_at.as_deref(), step.completed_at.as_deref()));
    shown.extend(step.error.as_ref().map(|error| {
        let again = if error.retryable { " retryable" } else { "" };
        format!("error {:?} {:?}{again}", error.code, error.message)
    }));
    shown.extend(step.artifacts.iter().map(|artifact| artifact.as_str().to_owned()));
    shown.join(" ")
}
