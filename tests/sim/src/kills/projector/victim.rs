//! The victim: a directory that is opened after each kill, and its projections compared with its events.

use std::path::PathBuf;

use contract::Error;
use contract::runs::StoredEvent;
use statehouse::Statehouse;
use statehouse::runs::Runs;
use testkit::random::Random;

use super::work::{
    MODEL_SHARE, MODELS, RUNS, append_with_model, event, expected, last, model, model_name, open, projector,
    read_state, run_name, share,
};
use super::{CHILD, OPENED};
use crate::kills::child::Running;
use crate::kills::{self, text};

/// What was done and found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) answered: u64,
    /// Read models that were compared with a replay.
    pub(super) models: u64,
    /// Projections that were compared with the events up to their positions.
    pub(super) projections: u64,
    /// How many of those were behind their runs.
    pub(super) behind: u64,
    pub(super) events: u64,
}

/// The last event of each run that was answered.
struct Answered {
    runs: [u64; RUNS],
    models: [u64; MODELS],
}

/// A directory, to which so many events are appended over so many kills.
pub(super) struct ProjectorVictim {
    path: PathBuf,
    times: u64,
    events: u64,
    /// How often it was killed at work.
    worked: u64,
    answered: Answered,
}

impl ProjectorVictim {
    pub(super) fn new(path: PathBuf, times: u64, events: u64) -> Self {
        let answered = Answered { runs: [0; RUNS], models: [0; MODELS] };
        Self { path, times, events, worked: 0, answered }
    }
}

impl kills::Victim for ProjectorVictim {
    type Process = Running;
    type Sums = Sums;

    fn start(&mut self, _round: u64, _random: &mut Random) -> Result<Running, String> {
        // Each child that gets to work may append a little more, so that all of them have something to do.
        let upto = self.events * (self.worked + 1).min(self.times) / self.times;
        Running::start(CHILD, &self.path, &[("events", self.events), ("upto", upto)])
    }

    fn await_work(&mut self, process: &mut Running, _random: &mut Random) -> Result<(), String> {
        self.worked += 1;
        process.await_answer()
    }

    fn kill(&mut self, process: Running, sums: &mut Sums) -> Result<bool, String> {
        let said = process.kill()?;
        sums.answered += self.answered.enter(&said)?;
        let house = open(&self.path).map_err(text)?;
        look(&house, &self.answered, sums)?;
        house.close().map_err(text)?;
        Ok(!said.is_empty())
    }

    /// Appends what is missing, projects it, and compares everything.
    fn finish(&mut self, _random: &mut Random, sums: &mut Sums) -> Result<(), String> {
        let house = open(&self.path).map_err(text)?;
        append_the_rest(&house, self.events).map_err(text)?;
        sums.events = compare_all(&house, self.events)?;
        house.close().map_err(text)
    }
}

impl Answered {
    /// Takes what a child said, and gives the number of its answers.
    fn enter(&mut self, said: &[String]) -> Result<u64, String> {
        let answers = said.iter().filter(|line| *line != OPENED);
        for line in answers.clone() {
            let words: Vec<&str> = line.split(' ').collect();
            let ["A", what, which, seq] = words[..] else { return Err(format!("the child said {line:?}")) };
            let (Ok(which), Ok(seq)) = (which.parse::<usize>(), seq.parse::<u64>()) else {
                return Err(format!("the child said {line:?}"));
            };
            let last = if what == "run" { &mut self.runs[which] } else { &mut self.models[which] };
            *last = seq.max(*last);
        }
        Ok(answers.count() as u64)
    }
}

/// What a killed child has left.
fn look(house: &Statehouse, answered: &Answered, sums: &mut Sums) -> Result<(), String> {
    let projector = projector(house);
    for (run, answered) in answered.runs.iter().enumerate() {
        let name = run_name(run);
        let last = last(&house.runs(), &name).map_err(text)?;
        if last < *answered {
            return Err(format!("{answered} events of {name} were answered, and it has {last}"));
        }
        let Some(projection) = projector.projection(&name).map_err(text)? else {
            sums.behind += u64::from(last > 0);
            continue;
        };
        let found = if projection.position == 0 { (0, 0) } else { read_state(&projection.state) };
        if projection.position > last || found != expected(projection.position) {
            return Err(format!("{name} of {last} events was projected as {found:?}: {projection:?}"));
        }
        sums.projections += 1;
        sums.behind += u64::from(projection.position < last);
    }
    for (number, answered) in answered.models.iter().enumerate() {
        let name = model_name(number);
        let group = house.group(&name);
        let events = all_events(&group.runs(), &name).map_err(text)?;
        if (events.len() as u64) < *answered {
            return Err(format!("{answered} events of {name} were answered, and it has {}", events.len()));
        }
        let (found, replayed) = (model(&group).map_err(text)?, replay(&events));
        if found != replayed {
            return Err(format!("the read model of {name} says {found:?}, its events {replayed:?}"));
        }
        sums.models += 1;
    }
    Ok(())
}

/// Appends what is missing, and projects it.
fn append_the_rest(house: &Statehouse, events: u64) -> Result<(), Error> {
    for run in 0..RUNS {
        let (runs, name) = (house.runs(), run_name(run));
        let missing: Vec<_> = (last(&runs, &name)? + 1..=share(events, RUNS)).map(event).collect();
        for some in missing.chunks(100) {
            runs.append_all(&name, some, &statehouse::runs::AppendOptions::default())?;
        }
    }
    for number in 0..MODELS {
        let name = model_name(number);
        let group = house.group(&name);
        for missing in last(&group.runs(), &name)? + 1..=share(events / MODEL_SHARE, MODELS) {
            append_with_model(&group, &name, missing)?;
        }
    }
    projector(house).catch_up()
}

/// Every projection and every read model, against all events. Gives how many events those were.
fn compare_all(house: &Statehouse, events: u64) -> Result<u64, String> {
    let projector = projector(house);
    let mut count = 0;
    for run in 0..RUNS {
        let name = run_name(run);
        let replayed = replay(&all_events(&house.runs(), &name).map_err(text)?);
        let projection = projector.projection(&name).map_err(text)?;
        let found = projection.map(|projection| read_state(&projection.state));
        if found != Some(replayed) || replayed != expected(share(events, RUNS)) {
            return Err(format!("{name} was projected as {found:?}, its events say {replayed:?}"));
        }
        count += replayed.1;
    }
    for number in 0..MODELS {
        let group = house.group(model_name(number));
        let replayed = replay(&all_events(&group.runs(), &model_name(number)).map_err(text)?);
        let found = model(&group).map_err(text)?;
        if found != replayed || replayed != expected(share(events / MODEL_SHARE, MODELS)) {
            return Err(format!("the read model of {number} says {found:?}, its events {replayed:?}"));
        }
        count += replayed.1;
    }
    Ok(count)
}

fn replay(events: &[StoredEvent]) -> (u64, u64) {
    let sum = events.iter().map(|event| event.event.data.as_str().parse::<u64>().unwrap_or(0)).sum();
    (sum, events.len() as u64)
}

fn all_events(runs: &Runs, run: &str) -> Result<Vec<StoredEvent>, Error> {
    let mut events: Vec<StoredEvent> = Vec::new();
    while (events.len() as u64) < last(runs, run)? {
        let after = events.last().map_or(0, |event| event.run_seq);
        events.extend(runs.fetch(run, after, 1_000)?.events);
    }
    Ok(events)
}
