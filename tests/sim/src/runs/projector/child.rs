//! The child: appends, projects and keeps read models, each in threads of its own, until it is killed.
//!
//! It says `R RUN N` or `M MODEL N` when the n-th event of a run was answered. It goes on from what it finds.

use std::collections::VecDeque;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use contract::{Error, Rejection};
use statehouse::Statehouse;
use statehouse::runs::{AppendOptions, Runs};
use testkit::arguments::Arguments;

use super::work::{MODEL_SHARE, MODELS, RUNS, append_with_model, event, model_name, open, projector, run_name, share};

/// A child that nobody kills ends by itself.
const LIFE_MAX: Duration = Duration::from_secs(60);

const APPENDERS: usize = 4;

/// Appends that a thread has under way.
const WINDOW: usize = 50;

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let directory = arguments.text("directory").expect("the parent names a directory");
    match work(Path::new(directory), arguments.number("events", 1_000)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("E {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Says a line; ends the process if nobody listens.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let said = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
    if said.is_err() {
        std::process::exit(1);
    }
}

fn work(directory: &Path, events: u64) -> Result<(), Error> {
    let house = open(directory)?;
    say("O");
    let deadline = Instant::now() + LIFE_MAX;
    let complain = |outcome: Result<(), Error>| {
        if let Err(error) = outcome {
            say(&format!("E {error}"));
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..APPENDERS {
            let house = &house;
            scope.spawn(move || complain(append(house, thread, events)));
        }
        scope.spawn(|| complain(keep_models(&house, events / MODEL_SHARE)));
        scope.spawn(|| {
            let mut projector = projector(&house);
            while Instant::now() < deadline {
                if let Err(error) = projector.step(Duration::from_millis(20)) {
                    return complain(Err(error));
                }
            }
        });
    });
    Ok(())
}

/// The last sequence of a run; 0 if there is none.
fn last(runs: &Runs, run: &str) -> Result<u64, Error> {
    match runs.fetch(run, u64::MAX, 1) {
        Ok(fetched) => Ok(fetched.stable_seq),
        Err(Error::Rejected(Rejection::NoSuchRun { .. })) => Ok(0),
        Err(error) => Err(error),
    }
}

/// Appends to the runs of one thread, in turn, until each has its share.
fn append(house: &Statehouse, thread: usize, events: u64) -> Result<(), Error> {
    let runs = house.runs();
    let options = AppendOptions::default();
    let own: Vec<usize> = (thread..RUNS).step_by(APPENDERS).collect();
    let mut next = own.iter().map(|run| Ok(last(&runs, &run_name(*run))? + 1)).collect::<Result<Vec<_>, Error>>()?;
    // The last one is sent again: nobody knows whether it was answered.
    next.iter_mut().for_each(|number| *number = number.saturating_sub(1).max(1));
    let mut under_way = VecDeque::new();
    let settle = |under_way: &mut VecDeque<(usize, u64, statehouse::Pending<_>)>, most: usize| {
        while under_way.len() > most {
            let (run, number, answer) = under_way.pop_front().expect("one");
            let result: statehouse::runs::AppendResult = answer.wait()?;
            if result.run_seq != number || result.payload_mismatch {
                say(&format!("E event {number} of run {run} was answered {result:?}"));
            }
            say(&format!("R {run} {number}"));
        }
        Ok::<_, Error>(())
    };
    while next.iter().any(|number| *number <= share(events, RUNS)) {
        for (run, number) in own.iter().zip(&mut next) {
            if *number > share(events, RUNS) {
                continue;
            }
            let answer = runs.append_later(&run_name(*run), &event(*number), &options);
            under_way.push_back((*run, *number, answer));
            *number += 1;
            settle(&mut under_way, WINDOW)?;
        }
    }
    settle(&mut under_way, 0)
}

/// Appends to the runs with read models, in turn.
fn keep_models(house: &Statehouse, events: u64) -> Result<(), Error> {
    for number in 1..=share(events, MODELS) {
        for model in 0..MODELS {
            let name = model_name(model);
            let group = house.group(&name);
            // The last one is sent again, as above.
            if number >= last(&group.runs(), &name)? {
                append_with_model(&group, &name, number)?;
                say(&format!("M {model} {number}"));
            }
        }
    }
    Ok(())
}
