//! Draws commands that are likely to hit existing state: a known key, the last sequence, a deleted run.

use contract::Json;
use contract::runs::{NewEvent, StoredEvent};
use kernel::{Body, Duplicates, Op, Transact};
use testkit::random::Random;

use super::command::{Act, NewAppend};
use crate::model::drawn::Drawn;
use crate::model::places::{GROUPS, PLACES};
use crate::model::reference::{Id, Reference, Run};

/// Kinds of runs.
pub(crate) const RUN_TYPES: [&str; 3] = ["", "etl", "etl.daily"];

/// The types of the contract, and some that it does not know.
const EVENT_TYPES: [&str; 18] = [
    "RunApproved",
    "RunStarted",
    "RunPaused",
    "RunResumed",
    "RunCompleted",
    "RunFailed",
    "RunCancelled",
    "StepStarted",
    "StepCompleted",
    "StepFailed",
    "StepSkipped",
    "StepCorrected",
    "SignalAccepted",
    "SignalRejected",
    "Progress",
    "RunOdd",
    "StepOdd",
    "runStarted",
];

const STEPS: [&str; 6] = ["load", "load2", "a", "", "\u{0}", "é"];

const DATA: [&str; 11] = [
    "{}",
    "null",
    "7",
    r#"{"artifactRefs":[{"uri":"s3://x","kind":"log"}]}"#,
    r#"{"artifacts":[{"a":1},7,{"b":[2]},{"c":null}]}"#,
    r#"{"artifactRefs":"none"}"#,
    r#"{"error":{"code":"E1","message":"it broke","retryable":true}}"#,
    r#"{"code":"E2","message":7}"#,
    r#"{"error":[],"artifacts":[{}]}"#,
    r#"{"status":"SUCCESS","completedAt":null}"#,
    r#"{"status":"PENDING","startedAt":"2026-02-11T09:00:00Z","error":null}"#,
];

const TIMES: [&str; 5] = [
    "2026-02-11T10:00:00Z",
    "2026-02-11T10:00:01.5Z",
    "2026-02-11T12:00:00+02:00",
    "2025-12-31T23:59:59.999999999Z",
    "1969-01-01T00:00:00Z",
];

/// What a stretch does more or less of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    place: (u32, u32),
    group: &'static str,
    fork_one_in: u64,
    delete_one_in: u64,
    new_one_in: u64,
    end_one_in: u64,
}

impl Habits {
    pub(crate) fn draw(random: &mut Random) -> Self {
        Self {
            place: random.pick(&PLACES),
            group: random.pick(&GROUPS),
            fork_one_in: random.pick(&[8, 30, 120]),
            delete_one_in: random.pick(&[30, 120, 400]),
            new_one_in: random.pick(&[12, 40, 160]),
            end_one_in: random.pick(&[1, 4, 20]),
        }
    }
}

/// Draws random commands on runs.
pub(crate) struct Generator<'draw> {
    pub(crate) random: &'draw mut Random,
    pub(crate) habits: Habits,
    pub(crate) reference: &'draw Reference,
}

impl Generator<'_> {
    pub(crate) fn command(&mut self) -> Drawn {
        if self.random.one_in(10) {
            return Drawn::plain(&Body::Tick);
        }
        let mut run = self.run();
        if self.random.one_in(self.habits.fork_one_in) {
            // Mostly of a name that is still free.
            let name = self.new_name();
            run = run.sibling(&name);
            let act = self.fork(&run);
            return transaction(&[(run, act)]);
        }
        let mut acts = vec![(run.clone(), self.act(&run))];
        while acts.len() < 6 && self.random.one_in(if acts.len() == 1 { 4 } else { 2 }) {
            let other = if self.random.one_in(2) { run.clone() } else { self.sibling(&run) };
            let act = self.act(&other);
            acts.push((other, act));
        }
        transaction(&acts)
    }

    /// A run, mostly one of the last that were made.
    fn run(&mut self) -> Id {
        let made = &self.reference.made;
        if made.is_empty() || self.random.one_in(self.habits.new_one_in) {
            let focused = self.random.one_in(2);
            let place = if focused { self.habits.place } else { *self.random.choose(&self.reference.live_places()) };
            let group = if focused { self.habits.group } else { self.random.pick(&GROUPS) };
            let name = self.new_name();
            return match self.random.below(8) {
                0 => Id::new(place.0, place.1, None, group),
                1 | 2 => Id::new(place.0, place.1, None, &name),
                _ => Id::new(place.0, place.1, Some(group), &name),
            };
        }
        let newest = match self.random.below(10) {
            0..=4 => made.len().min(8),
            5..=8 => made.len().min(30),
            _ => made.len(),
        };
        let mut run = &made[made.len() - 1 - self.random.index(newest)];
        // What has ended is met too, but not most of the time.
        let goes_on = |id| self.reference.runs.get(id).is_some_and(|run| !run.life.deleted && !run.life.closed);
        for _ in 0..6 {
            if goes_on(run) {
                break;
            }
            run = &made[made.len() - 1 - self.random.index(newest)];
        }
        run.clone()
    }

    fn new_name(&mut self) -> String {
        format!("r{}", self.random.below(2 * self.reference.made.len() as u64 + 10))
    }

    /// Another run of the same group, or one that could be made there.
    pub(crate) fn sibling(&mut self, run: &Id) -> Id {
        let made = self.reference.made.iter().rev();
        let near = made.filter(|id| id.place() == run.place() && id.home() == run.home() && id.name != run.name);
        let siblings: Vec<_> = near.take(8).collect();
        if siblings.is_empty() || self.random.one_in(8) {
            let name = self.new_name();
            return run.sibling(&name);
        }
        (*self.random.choose(&siblings)).clone()
    }

    pub(crate) fn act(&mut self, id: &Id) -> Act {
        if self.random.one_in(100) {
            return self.fork(id);
        }
        if self.random.one_in(self.habits.delete_one_in) {
            return Act::Delete;
        }
        if self.random.one_in(200) {
            return Act::Close;
        }
        Act::Append(Box::new(self.append(id)))
    }

    fn fork(&mut self, id: &Id) -> Act {
        let mut from = self.sibling(id);
        // Now and then of the one that is deepest, or no chain of forks would ever get long.
        if self.random.one_in(2) {
            let family = self.reference.live_runs(id.place()).filter(|(other, _)| other.home() == id.home());
            from = family.max_by_key(|(_, run)| run.depth).map_or(from, |(deepest, _)| deepest.clone());
        }
        let last = self.reference.runs.get(&from).map_or(0, |run| run.last);
        let at = match self.random.below(8) {
            0..=3 => last,
            4..=6 => 1 + self.random.below(last.max(1)),
            _ => self.random.below(last + 2),
        };
        Act::Fork { from: from.name, at }
    }

    fn append(&mut self, id: &Id) -> NewAppend {
        let run = self.reference.runs.get(id);
        let last = run.map_or(0, |run| run.last);
        let expected_last = match self.random.below(20) {
            0..=3 => Some(last),
            4 => Some(last + 1),
            5 => Some(self.random.below(last + 1)),
            _ => None,
        };
        let duplicates = match self.random.below(20) {
            0..=2 => Duplicates::RefuseOthers,
            3..=4 => Duplicates::Refuse,
            _ => Duplicates::Answer,
        };
        let event = match run.filter(|run| !run.events.is_empty()) {
            Some(run) if self.random.one_in(4) => self.like_one_of(id, run),
            _ => self.new_event(),
        };
        NewAppend { expected_last, duplicates, run_type: self.random.pick(&RUN_TYPES), event }
    }

    /// The key, the id or all of an event that is there already, or of one that the run's parent got later.
    fn like_one_of(&mut self, id: &Id, run: &Run) -> NewEvent {
        let family = match &run.parent {
            Some((parent, _)) if self.random.one_in(3) => parent.clone(),
            _ => id.clone(),
        };
        let events = match self.reference.runs.get(&family) {
            Some(other) if !other.events.is_empty() => &other.events,
            _ => &run.events,
        };
        let stored = self.random.choose(events).clone();
        let mut one = stored.event.clone();
        let mut new = self.new_event();
        match self.random.below(8) {
            // Sent again; when it was emitted does not matter.
            0 | 1 => one.emitted_at = new.emitted_at,
            2 => {
                new.idempotency_key = one.idempotency_key;
                return new;
            }
            3 => {
                new.event_id = Some(stored.event_id.clone());
                return new;
            }
            // The id that an event to come would get.
            6 => {
                let (name, seq) = (id.name.clone(), run.last + 1 + self.random.below(2));
                new.event_id = None;
                let coming = StoredEvent::new(name, run.created_us, seq, seq - 1, 0, 0, new.clone());
                new.event_id = Some(coming.event_id);
                return new;
            }
            4 => one.idempotency_key = new.idempotency_key,
            // Sent again with one thing changed.
            5 => match self.random.below(4) {
                0 => one.event_type = new.event_type,
                1 => one.step_id = new.step_id,
                2 => one.logical_attempt_id = new.logical_attempt_id,
                _ => one.data = new.data,
            },
            // The key of one and the id of another.
            _ => one.event_id = Some(self.random.choose(&run.events).event_id.clone()),
        }
        one
    }

    fn new_event(&mut self) -> NewEvent {
        let mut event_type = self.random.pick(&EVENT_TYPES);
        // Most runs go on for long.
        if matches!(event_type, "RunCompleted" | "RunFailed" | "RunCancelled")
            && !self.random.one_in(self.habits.end_one_in)
        {
            event_type = "Progress";
        }
        let key = match self.random.one_in(12) {
            true => format!("k{}", self.random.below(6)),
            false => format!("{:x}", self.random.next()),
        };
        let data = Json::from_checked(self.random.pick(&DATA).to_owned());
        let mut event = NewEvent::new(event_type, key, self.random.pick(&TIMES), data);
        if self.random.one_in(4) {
            event.emitted_at = None;
        }
        let text = |random: &mut Random, one_in, text: &str| random.one_in(one_in).then(|| text.to_owned());
        if event_type.starts_with("Step") && !self.random.one_in(8) || self.random.one_in(8) {
            event.step_id = Some(self.random.pick(&STEPS).to_owned());
        }
        event.logical_attempt_id = self.random.one_in(2).then(|| self.random.below(3).to_string());
        event.engine_attempt_id = text(self.random, 3, "e1");
        event.adapter_version = text(self.random, 4, "1.2.3");
        event.engine_run_ref = text(self.random, 5, r#"{"engine":"x"}"#).map(Json::from_checked);
        if self.random.one_in(3) {
            event.event_id = Some(self.uuid());
        }
        if self.random.one_in(6) {
            event.caused_by_signal_id = Some(self.uuid());
        }
        if self.random.one_in(6) {
            event.parent_event_id = Some(self.uuid());
        }
        event
    }

    fn uuid(&mut self) -> String {
        let number = if self.random.one_in(10) { self.random.below(4) } else { self.random.next() };
        format!("0190c4d0-7a3b-7def-{:04x}-{:012x}", number >> 48, number & 0xffff_ffff_ffff)
    }
}

/// Several acts in one group, all or none.
fn transaction(acts: &[(Id, Act)]) -> Drawn {
    let Id { space, branch, .. } = acts[0].0;
    // A run that is its own group is named without one, as the library does.
    let alone = acts.iter().all(|(id, act)| *id == acts[0].0 && !matches!(act, Act::Fork { .. }));
    let group = Some(acts[0].0.home()).filter(|_| !alone || acts[0].0.group.is_some());
    let ops = acts.iter().map(|(id, act)| Op::Run(&id.name, act.as_kernel_act())).collect();
    let transact = Transact { space, branch, group, fences: Vec::new(), force: false, guards: Vec::new(), ops };
    Drawn::plain(&Body::Transact(transact))
}

/// Lets time go on, mostly a little, at times by more than the index may lag: wall time, none if the clock was set back,
/// and cluster time.
pub(crate) fn time_passed(random: &mut Random) -> (Option<u64>, u64) {
    let wall = match random.below(100) {
        0..=69 => Some(random.below(300)),
        70..=94 => Some(random.below(5_000_000)),
        95..=97 => Some(random.below(150_000_000)),
        _ => None,
    };
    (wall, random.below(300))
}
