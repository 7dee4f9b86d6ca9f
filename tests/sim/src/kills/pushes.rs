//! Pushes: pushes to sessions whose clients come and go, in a process that is killed repeatedly.
//!
//! `sim push-kills --times N [--seed S]`. A child commits numbered pushes to a few sessions, and clients of these
//! sessions read them, acknowledge some of them, and drop the connection and come back, often before they have
//! acknowledged what they got. It says on a pipe what it is about to do, what was answered and what was delivered. After
//! the kills of a directory a last child only delivers, until nothing is left. Then every push whose commit was answered
//! must have arrived, once and in order; numbers have no gap and stand for the same bytes each time; and nothing is
//! delivered again whose acknowledgement was answered.
//!
//! Would see broken: E5 (pushes are numbered without a gap and kept until they are acknowledged).

mod child;
mod ledger;
mod secrets;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use testkit::arguments::Arguments;
use testkit::random::Random;
use testkit::report::Report;

use super::child::Running;
use super::sizes::Sizes;
use super::{Killing, print_failure};
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
    let mut killing = Killing::<Sums>::new(seed);
    let outcome = killing.in_many_directories(times, KILLS_PER_DIRECTORY, PushesVictim::new);
    let sums = &killing.sums;
    println!("push-kills: {killing}; {sums}, {:.1} s", started.elapsed().as_secs_f64());
    print_failure("push-kills", &outcome, &format!("--seed {seed} --times {times}"));
    // Without clients that came back to pushes they had seen, nothing was tried.
    let tried = sums.answered > 0 && sums.reconnects > 0 && sums.delivered_again > 0;
    let ok = outcome.is_ok() && tried && sums.is_sound();
    let mut report = Report::new("sessions");
    let Sums { reconnects, answered, lost, doubled, wrong, .. } = sums;
    let did = format!("{}-kills-{reconnects}-reconnects-{answered}-pushes", killing.at_work);
    let figure = format!("{did}-{lost}-lost-{doubled}-doubled-{wrong}-wrong");
    report.add("pushes", figure, "100 kills, 0 lost, 0 doubled, in order", ok);
    report
}

/// The child's side.
pub(crate) fn child(arguments: &Arguments) -> ExitCode {
    child::run(arguments)
}

/// A directory with sessions, and what its children said.
struct PushesVictim {
    path: PathBuf,
    sizes: Sizes,
    ledger: Ledger,
}

impl PushesVictim {
    fn new(path: PathBuf, random: &mut Random) -> Self {
        Self { path, sizes: Sizes::draw(random), ledger: Ledger::default() }
    }
}

impl super::Victim for PushesVictim {
    type Process = Running;
    type Sums = Sums;

    fn start(&mut self, round: u64, random: &mut Random) -> Result<Running, String> {
        self.sizes.start(CHILD, &self.path, round, random)
    }

    fn await_work(&mut self, process: &mut Running, _random: &mut Random) -> Result<(), String> {
        process.await_answer()
    }

    fn kill(&mut self, process: Running, sums: &mut Sums) -> Result<bool, String> {
        let said = process.kill()?;
        self.ledger.read(&said, sums)?;
        Ok(!said.is_empty())
    }

    /// Delivers until nothing is left.
    fn finish(&mut self, random: &mut Random, sums: &mut Sums) -> Result<(), String> {
        let said = self.start(LAST_ROUND, random)?.finish()?;
        self.ledger.read(&said, sums)?;
        self.ledger.settle(sums)
    }
}
