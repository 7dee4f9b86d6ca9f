//! The events that are appended, and what projectors and read models make of them.
//!
//! The n-th event of a run has the key and the content n, and each run has one appender. So what any number of events
//! sums up to is known without reading them. Runs get their events one after the other, so that most are quiet: what a
//! projector has lost of those is not made good by an event that comes later.

use contract::runs::{NewEvent, StoredEvent};
use contract::{Error, Json, Rejection, RunRejection, Value};
use statehouse::runs::{Projector, Runs};
use statehouse::{Group, Options, Statehouse};

/// Runs that the projector follows.
pub(super) const RUNS: usize = 2_000;

/// Threads that append, each to runs of its own.
pub(super) const APPENDERS: usize = 4;

/// Runs with a read model of their own, each in its group.
pub(super) const MODELS: usize = 4;

/// What becomes of one event in so many goes to a read model.
pub(super) const MODEL_SHARE: u64 = 10;

/// A projector of sums.
pub(super) type Sum = fn(&str, Option<Vec<u8>>, &[StoredEvent]) -> Vec<u8>;

/// Tables are small, so that kills meet flushes.
pub(super) fn open(directory: &std::path::Path) -> Result<Statehouse, Error> {
    let mut options = Options::default().buckets(8).replay_bytes_max(2 << 20);
    options.overlay.table_bytes_max = 300_000;
    options.open(directory)
}

pub(super) fn projector(house: &Statehouse) -> Projector<Sum> {
    Projector::new(house, "sums", sum as Sum)
}

pub(super) fn run_name(run: usize) -> String {
    format!("run-{run}")
}

pub(super) fn model_name(model: usize) -> String {
    format!("model-{model}")
}

pub(super) fn event(number: u64) -> NewEvent {
    let data = Json::from_checked(number.to_string());
    NewEvent::new("Added", number.to_string(), "2026-02-11T10:00:00Z", data)
}

/// How many events of so many a run of several gets.
pub(super) fn share(events: u64, runs: usize) -> u64 {
    events.div_ceil(runs as u64)
}

/// How many events a run has when `upto` of all events were appended.
pub(super) fn target(events: u64, upto: u64, run: usize) -> u64 {
    let share = share(events, RUNS);
    let earlier = (run / APPENDERS * APPENDERS) as u64 * share;
    (upto.saturating_sub(earlier) / APPENDERS as u64).min(share)
}

/// The last sequence of a run; 0 if there is none.
pub(super) fn last(runs: &Runs, run: &str) -> Result<u64, Error> {
    match runs.fetch(run, u64::MAX, 1) {
        Ok(fetched) => Ok(fetched.stable_seq),
        Err(Error::Rejected(Rejection::Run(RunRejection::NoSuchRun { .. }))) => Ok(0),
        Err(error) => Err(error),
    }
}

/// The sum and the number of the first so many events.
pub(super) fn expected(events: u64) -> (u64, u64) {
    (events * (events + 1) / 2, events)
}

/// The projector's state: the sum of what the events hold, and how many there were.
fn sum(_: &str, state: Option<Vec<u8>>, events: &[StoredEvent]) -> Vec<u8> {
    let (mut sum, mut count) = state.map_or((0, 0), |state| read_state(&state));
    for event in events {
        sum += event.event.data.as_str().parse::<u64>().unwrap_or(u64::MAX / 2);
        count += 1;
    }
    [sum.to_le_bytes(), count.to_le_bytes()].concat()
}

pub(super) fn read_state(state: &[u8]) -> (u64, u64) {
    let number = |bytes: &[u8]| bytes.try_into().map_or(u64::MAX, u64::from_le_bytes);
    (number(&state[..8]), number(&state[8..]))
}

/// Appends the n-th event of a model's run, with the model in the same commit.
pub(super) fn append_with_model(group: &Group, name: &str, number: u64) -> Result<(), Error> {
    let appended = group.append_with_model(name, &event(number), |commit| {
        let (sum, count) = model(group)?;
        Ok(commit.set_cell("sum", integer(sum + number)).set_cell("count", integer(count + 1)))
    });
    appended.map(|_| ())
}

/// The sum and the number, as a read model has them.
pub(super) fn model(group: &Group) -> Result<(u64, u64), Error> {
    let read = |cell| -> Result<u64, Error> {
        let value = group.cells().get(cell)?.and_then(|value| value.as_integer());
        Ok(value.map_or(0, i64::cast_unsigned))
    };
    Ok((read("sum")?, read("count")?))
}

fn integer(number: u64) -> Value {
    Value::from(number.cast_signed())
}
