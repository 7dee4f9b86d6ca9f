//! Push kills: pushes to sessions whose clients come and go, in a process that is killed repeatedly.
//!
//! `sim push-kills --times N [--seed S]`. A child commits numbered pushes to a few sessions, and clients of these
//! sessions read them, acknowledge some of them, and drop the connection and come back, often before they have
//! acknowledged what they got. It says on a pipe what it is about to do, what was answered and what was delivered. After
//! the kills of a directory a last child only delivers, until nothing is left. Then every push whose commit was answered
//! must have arrived, once and in order; numbers have no gap and stand for the same bytes each time; and nothing is
//! delivered again whose acknowledgement was answered.
//!
//! Would see broken: E5 (pushes are numbered without a gap and kept until they are acknowledged).
//! When the child dies is drawn from the seed, but what it was doing then is up to the machine.

mod child;
mod ledger;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use testkit::arguments::Arguments;
use testkit::random::Random;
use testkit::report::Report;

use crate::running::{Running, fast_directory};
use crate::sizes::Sizes;
use ledger::{Ledger, Sums};

/// Kills of one directory.
const KILLS_PER_DIRECTORY: u64 = 20;

const CHILD: &str = "push-kills-child";

/// The round of the child that only delivers.
const LAST_ROUND: u64 = u64::MAX >> 1;

/// Kills the pushing process repeatedly and checks its pushes.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let (seed, times) = (arguments.seed(), arguments.number("times", 20));
    println!("push-kills: seed {seed}, {times} kills");
    let started = Instant::now();
    let mut sums = Sums::default();
    let outcome = kill_and_look(seed, times, &mut sums);
    println!("push-kills: {sums}, {:.1} s", started.elapsed().as_secs_f64());
    if let Err(what) = &outcome {
        println!("push-kills: FAILED: {what}");
        println!("replay: cargo run --profile stress -p sim -- push-kills --seed {seed} --times {times}");
    }
    // Without clients that came back to pushes they had seen, nothing was tried.
    let tried = sums.answered > 0 && sums.reconnects > 0 && sums.delivered_again > 0;
    let ok = outcome.is_ok() && tried && sums.is_sound();
    let mut report = Report::new("sessions");
    let Sums { kills, reconnects, answered, lost, doubled, wrong, .. } = &sums;
    let figure =
        format!("{kills}-kills-{reconnects}-reconnects-{answered}-pushes-{lost}-lost-{doubled}-doubled-{wrong}-wrong");
    report.add("pushes", figure, "100 kills, 0 lost, 0 doubled, in order", ok);
    report
}

/// The child's side.
pub(crate) fn child(arguments: &Arguments) -> ExitCode {
    child::run(arguments)
}

fn kill_and_look(seed: u64, times: u64, sums: &mut Sums) -> Result<(), String> {
    let mut random = Random::new(seed);
    for directory in 0.. {
        if sums.kills >= times {
            break;
        }
        let kills = KILLS_PER_DIRECTORY.min(times - sums.kills);
        let mut place = if directory % 2 == 0 { tempfile::tempdir() } else { fast_directory() }
            .map_err(|error| error.to_string())?;
        let outcome = one_directory(&place.path().join("house"), kills, &mut random, sums);
        if let Err(what) = outcome {
            place.disable_cleanup(true);
            return Err(format!("{what}\n  in {}, kept", place.path().display()));
        }
    }
    Ok(())
}

fn one_directory(path: &std::path::Path, kills: u64, random: &mut Random, sums: &mut Sums) -> Result<(), String> {
    let sizes = Sizes::draw(random);
    let mut ledger = Ledger::default();
    for round in 0..kills {
        let running = Running::start(CHILD, path, sizes, round, random.next() >> 1)?;
        let after = if random.one_in(6) {
            // In the middle of opening, which is the recovery of the kill before.
            Duration::from_micros(random.below(25_000))
        } else {
            running.await_answer()?;
            Duration::from_micros(random.below(150_000))
        };
        let said = running.kill(after)?.said()?;
        sums.kills += 1;
        ledger.read(&said, sums)?;
    }
    let said = Running::start(CHILD, path, sizes, LAST_ROUND, random.next() >> 1)?.finish()?;
    ledger.read(&said, sums)?;
    ledger.settle(sums)
}
