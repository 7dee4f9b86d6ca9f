//! The parent: starts children, kills them, and looks at what they left.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use contract::runs::StoredEvent;
use contract::{Error, Rejection};
use statehouse::Statehouse;
use statehouse::runs::Runs;
use testkit::random::Random;

use super::work::{
    MODEL_SHARE, MODELS, RUNS, append_with_model, event, expected, model, model_name, open, projector, read_state,
    run_name, share,
};
use crate::model::instance::fast_directory;

/// How long a child may take to open the directory.
const OPENING_MAX: Duration = Duration::from_secs(60);

/// What was done and found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) kills: u64,
    pub(super) kills_while_opening: u64,
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

/// Kills children `times` times, while `events` events are appended.
pub(super) fn run(seed: u64, times: u64, events: u64, sums: &mut Sums) -> Result<(), String> {
    let mut random = Random::new(seed);
    let place = fast_directory()?;
    let directory = place.path().join("house");
    let mut answered = Answered { runs: [0; RUNS], models: [0; MODELS] };
    while sums.kills < times {
        // Each child may append a little more, so that all of them have something to do.
        let upto = events * (sums.kills + 1) / times;
        let said = round(&directory, (events, upto), &mut random, sums)?;
        answered.enter(&said)?;
        sums.answered += said.iter().filter(|line| !line.starts_with('O')).count() as u64;
        sums.kills += 1;
        let house = open(&directory).map_err(text)?;
        look(&house, &answered, sums)?;
        house.close().map_err(text)?;
    }
    let house = open(&directory).map_err(text)?;
    finish(&house, events).map_err(text)?;
    sums.events = compare_all(&house, events)?;
    house.close().map_err(text)
}

/// Starts a child and kills it. Gives what it said.
fn round(
    directory: &Path,
    (events, upto): (u64, u64),
    random: &mut Random,
    sums: &mut Sums,
) -> Result<Vec<String>, String> {
    let program = std::env::current_exe().map_err(text)?;
    let mut child = Command::new(program)
        .arg("projector-child")
        .arg("--directory")
        .arg(directory)
        .args(["--events", &events.to_string(), "--upto", &upto.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(text)?;
    let out = child.stdout.take().expect("it was asked for");
    let (sender, opened) = channel();
    let listener = std::thread::spawn(move || {
        let mut said = Vec::new();
        // A read fails only when the child is gone; what it said before counts.
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if line == "O" {
                let _ = sender.send(());
            }
            said.push(line);
        }
        said
    });
    let while_opening = random.one_in(10);
    let pause = Duration::from_micros(random.below(if while_opening { 20_000 } else { 60_000 }));
    if !while_opening && opened.recv_timeout(OPENING_MAX) == Err(RecvTimeoutError::Timeout) {
        child.kill().map_err(text)?;
        return Err("the child did not open the directory".into());
    }
    std::thread::sleep(pause);
    let ended = child.try_wait().map_err(text)?;
    child.kill().map_err(text)?;
    child.wait().map_err(text)?;
    let said = listener.join().map_err(|_| "the listener panicked")?;
    sums.kills_while_opening += u64::from(said.is_empty());
    if let Some(complaint) = said.iter().find(|line| line.starts_with('E')) {
        return Err(format!("the child complained: {complaint}"));
    }
    match ended {
        None => Ok(said),
        Some(status) => Err(format!("the child ended by itself: {status}")),
    }
}

impl Answered {
    fn enter(&mut self, said: &[String]) -> Result<(), String> {
        for line in said.iter().filter(|line| *line != "O") {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |place: usize| words.get(place).and_then(|word| word.parse::<u64>().ok());
            let (Some(which), Some(seq)) = (number(1), number(2)) else {
                return Err(format!("the child said {line:?}"));
            };
            let which = usize::try_from(which).expect("it fits");
            let last = if words[0] == "R" { &mut self.runs[which] } else { &mut self.models[which] };
            *last = seq.max(*last);
        }
        Ok(())
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
fn finish(house: &Statehouse, events: u64) -> Result<(), Error> {
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

/// The last sequence of a run; 0 if there is none.
fn last(runs: &Runs, run: &str) -> Result<u64, Error> {
    match runs.fetch(run, u64::MAX, 1) {
        Ok(fetched) => Ok(fetched.stable_seq),
        Err(Error::Rejected(Rejection::NoSuchRun { .. })) => Ok(0),
        Err(error) => Err(error),
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
