//! The child: appends, projects and keeps read models, each in threads of its own, until it is killed.
//!
//! It says [`OPENED`], and `A run RUN N` or `A model MODEL N` when the n-th event of a run was answered. It goes on from what it finds.

use std::collections::VecDeque;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use contract::Error;
use statehouse::runs::{AppendOptions, AppendResult};
use statehouse::{Pending, Statehouse};
use testkit::arguments::Arguments;

use super::OPENED;
use super::work::{
    APPENDERS, MODEL_SHARE, MODELS, RUNS, append_with_model, event, last, model_name, open, projector, run_name, share,
    target,
};
use crate::kills::child::{self, complain_of, say};

/// Appends that a thread has under way.
const WINDOW: usize = 50;

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let (events, upto) = (arguments.number("events", 1_000), arguments.number("upto", 1_000));
    child::run(arguments, |directory, deadline| work(directory, deadline, events, upto))
}

fn work(directory: &Path, deadline: Instant, events: u64, upto: u64) -> Result<(), Error> {
    let house = open(directory)?;
    say(OPENED);
    std::thread::scope(|scope| {
        for thread in 0..APPENDERS {
            let house = &house;
            scope.spawn(move || complain_of("an appender", append(house, thread, events, upto)));
        }
        scope.spawn(|| complain_of("the read models", keep_models(&house, upto / MODEL_SHARE)));
        scope.spawn(|| {
            let mut projector = projector(&house);
            while Instant::now() < deadline {
                if let Err(error) = projector.step(Duration::from_millis(20)) {
                    return complain_of("the projector", Err(error));
                }
            }
        });
    });
    Ok(())
}

/// Appends to the runs of one thread, one after the other, until each has what it is to have by now.
fn append(house: &Statehouse, thread: usize, events: u64, upto: u64) -> Result<(), Error> {
    let runs = house.runs();
    let options = AppendOptions::default();
    let mut under_way: VecDeque<(usize, u64, Pending<AppendResult>)> = VecDeque::new();
    let settle = |under_way: &mut VecDeque<_>, most: usize| {
        while under_way.len() > most {
            let (run, number, answer): (usize, u64, Pending<AppendResult>) = under_way.pop_front().expect("one");
            let result = answer.wait()?;
            if result.run_seq != number || result.payload_mismatch {
                say(&format!("E event {number} of run {run} was answered {result:?}"));
            }
            say(&format!("A run {run} {number}"));
        }
        Ok::<_, Error>(())
    };
    for run in (thread..RUNS).step_by(APPENDERS) {
        let name = run_name(run);
        let (last, target) = (last(&runs, &name)?, target(events, upto, run));
        // The last one of a run that goes on is sent again: nobody knows whether it was answered.
        let first = if last < target { last.max(1) } else { target + 1 };
        for number in first..=target {
            under_way.push_back((run, number, runs.append_later(&name, &event(number), &options)));
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
                say(&format!("A model {model} {number}"));
            }
        }
    }
    Ok(())
}
