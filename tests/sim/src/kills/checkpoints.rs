//! Checkpoints: an operator commits and takes checkpoints in a process that is killed repeatedly.
//!
//! `sim keyed-checkpoint-kills --times N [--seed S]`: until N kills have met a checkpoint in the middle, one that was begun and has no
//! marker. Each commit is a function of its number, so what a partition should hold follows from the number of its last commit
//! alone. After each kill the parent opens the directory: the partition must be what its commits give, before anything is
//! restored; and so must what the last committed checkpoint restores, which must not be older than the last one that was
//! answered. The next child goes on from there.
//!
//! Would see broken: a marker that is written before its parts, a checkpoint of changes that lacks one, keys that went and come
//! back.

mod child;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use statehouse::Statehouse;
use statehouse::keyed::{CheckpointChoice, Checkpoints};
use statehouse::records::ClaimOptions;
use testkit::arguments::Arguments;
use testkit::random::Random;
use testkit::report::Report;

use super::child::Running;
use super::{Killing, print_failure, text};
use work::{OPERATOR, Work, found};

/// So many kills for each one that is to meet a checkpoint in the middle, at most.
const KILLS_PER_MIDDLE_MAX: u64 = 10;

/// Kills of one directory.
const KILLS_PER_DIRECTORY: u64 = 25;

const CHILD: &str = "keyed-checkpoint-kills-child";

#[derive(Debug, Default)]
struct Sums {
    /// Checkpoints that were answered.
    taken: u64,
    /// Those of them that say what has changed.
    of_changes: u64,
    restored: u64,
    /// Restored ones that nobody was told of: the process was killed after the marker.
    unanswered: u64,
    /// Live partitions that were compared with their commits.
    live: u64,
    /// Kills that left a checkpoint begun and without a marker, the newest of its series.
    in_middle: u64,
}

/// Kills the operator repeatedly, and restores what it leaves.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let (seed, times) = (arguments.seed(), arguments.number("times", 20));
    println!("keyed-checkpoint-kills: seed {seed}, {times} kills");
    let started = Instant::now();
    let mut killing = Killing::<Sums>::new(seed);
    let mut outcome = Ok(());
    while outcome.is_ok() && killing.sums.in_middle < times && killing.at_work < times * KILLS_PER_MIDDLE_MAX {
        let upto = killing.at_work + KILLS_PER_DIRECTORY.min(times - killing.sums.in_middle);
        outcome = killing.in_many_directories(upto, KILLS_PER_DIRECTORY, CheckpointsVictim::new);
    }
    let Sums { taken, of_changes, restored, live, in_middle, .. } = killing.sums;
    println!("keyed-checkpoint-kills: {killing}; {:?}, {:.1} s", killing.sums, started.elapsed().as_secs_f64());
    print_failure("keyed-checkpoint-kills", &outcome, &format!("--seed {seed} --times {times}"));
    let ok = outcome.is_ok() && in_middle >= times && restored > 0 && of_changes > 0 && live > 0;
    let mut report = Report::new("keyed");
    let did = format!("{}-kills-{in_middle}-in-the-middle-{taken}-taken-{restored}-restored", killing.at_work);
    let verdict = if ok { "" } else { "-failed" };
    let goal = format!(
        "{times} kills in the middle of a checkpoint: the partition is right, and the last committed one restores"
    );
    report.add("checkpoint-kills", did + verdict, &goal, ok);
    report
}

/// The child's side.
pub(crate) fn child(arguments: &Arguments) -> ExitCode {
    child::run(arguments)
}

/// A directory with a partition and its checkpoints.
struct CheckpointsVictim {
    path: PathBuf,
    /// The last checkpoint that was answered.
    last: u64,
    /// The last one that was found in the middle.
    unfinished: u64,
}

impl CheckpointsVictim {
    fn new(path: PathBuf, _: &mut Random) -> Self {
        Self { path, last: 0, unfinished: 0 }
    }

    /// Compares the partition with its commits, restores it, and compares again.
    fn check(&mut self, sums: &mut Sums) -> Result<(), String> {
        let house = Statehouse::open(&self.path).map_err(text)?;
        let partition = house.keyed(OPERATOR).partition(0);
        let Some(live) = partition.summary().map_err(text)? else { return Ok(()) };
        let after = |number: u64, what: &str| match found(&partition)? == *Work::default().up_to(number) {
            true => Ok(()),
            false => Err(format!("{what} is not what its {number} commits give")),
        };
        after(live.last_number, "the partition")?;
        sums.live += 1;
        let checkpoints = Checkpoints::open(&child::target(&self.path)).map_err(text)?;
        let choice = CheckpointChoice::latest();
        let listed = partition.checkpoints(&checkpoints, &choice).map_err(text)?;
        let newest = listed.first().map_or(0, |info| info.number);
        if newest < self.last {
            return Err(format!("checkpoint {} was answered, and the last one is {newest}", self.last));
        }
        sums.unanswered += u64::from(newest > self.last);
        self.last = newest;
        if let Some(number) = child::unfinished(&self.path)?.filter(|number| *number > self.unfinished) {
            self.unfinished = number;
            sums.in_middle += 1;
        }
        if newest == 0 {
            return house.close().map_err(text);
        }
        let restored = partition.restore(&checkpoints, &choice, &ClaimOptions::worker("parent")).map_err(text)?;
        let number = restored.summary().map_err(text)?.map_or(0, |summary| summary.last_number);
        if number > live.last_number {
            return Err(format!("checkpoint {newest} has commit {number}, and the last one is {}", live.last_number));
        }
        after(number, &format!("checkpoint {newest}"))?;
        sums.restored += 1;
        house.close().map_err(text)
    }
}

impl super::Victim for CheckpointsVictim {
    type Process = Running;
    type Sums = Sums;

    fn start(&mut self, round: u64, _: &mut Random) -> Result<Running, String> {
        Running::start(CHILD, &self.path, &[("round", round)])
    }

    fn await_work(&mut self, process: &mut Running, _: &mut Random) -> Result<(), String> {
        process.await_answer()
    }

    fn kill(&mut self, process: Running, sums: &mut Sums) -> Result<bool, String> {
        let said = process.kill()?;
        for line in &said {
            let mut words = line.split(' ').skip(1).map(str::parse::<u64>);
            if let (Some(Ok(number)), Some(Ok(depth))) = (words.next(), words.next()) {
                self.last = self.last.max(number);
                sums.taken += 1;
                sums.of_changes += u64::from(depth > 0);
            }
        }
        self.check(sums)?;
        Ok(!said.is_empty())
    }

    fn finish(&mut self, _: &mut Random, sums: &mut Sums) -> Result<(), String> {
        self.check(sums)
    }
}
