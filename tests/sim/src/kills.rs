//! Kills: a process at work is killed again and again, and what it leaves is compared with what it had answered.
//!
//! One driver, [`Killing`], chooses the moments. A [`Victim`] says how its process is started, what it must have done before it
//! is killed, and what must be true of what it leaves. Each kill at work may be preceded by kills while the process opens its
//! directory, which is the recovery of the kill before.
//! When a process dies is drawn from the seed, but what it was doing then is up to the machine.

mod cells;
mod checkpoints;
mod child;
mod projector;
mod pushes;
mod server;
mod sizes;

use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use testkit::random::Random;

pub(crate) use cells::{child as cells_child, run as run_cells};
pub(crate) use checkpoints::{child as checkpoints_child, run as run_checkpoints};
pub(crate) use projector::{child as projector_child, run as run_projector};
pub(crate) use pushes::{child as pushes_child, run as run_pushes};
pub(crate) use server::run as run_server;

use crate::directories::fast_directory;

/// One start in so many is killed while it opens its directory.
const OPENING_EACH: u64 = 6;
/// One start in so many is killed while it creates its directory.
const CREATION_EACH: u64 = 2;
/// A kill of a process that opens its directory comes within this time after the start.
const OPENING_US_MAX: u64 = 30_000;
/// Half of the kills at work come within this time after the process did something.
const SOON_US_MAX: u64 = 50_000;
/// The other half come within this time.
const LATE_US_MAX: u64 = 150_000;

/// What is killed, and must leave what it should.
trait Victim {
    /// The running process.
    type Process;
    /// What is counted over all victims of a run.
    type Sums;

    /// Starts its process, which may still be opening its directory afterwards. No two rounds have the same number.
    fn start(&mut self, round: u64, random: &mut Random) -> Result<Self::Process, String>;

    /// Waits until the process has done something.
    fn await_work(&mut self, process: &mut Self::Process, random: &mut Random) -> Result<(), String>;

    /// Kills the process, and looks at what it leaves. Says whether it had done anything.
    fn kill(&mut self, process: Self::Process, sums: &mut Self::Sums) -> Result<bool, String>;

    /// Looks at everything once more, after the last kill.
    fn finish(&mut self, random: &mut Random, sums: &mut Self::Sums) -> Result<(), String>;

    /// Whether its directory holds nothing yet.
    fn is_new(&self) -> bool {
        false
    }
}

/// One run of a test: its victims are killed, and what that shows is counted.
struct Killing<S> {
    random: Random,
    starts: u64,
    /// Kills of processes that had done something.
    at_work: u64,
    /// Kills of processes that had not done anything yet.
    while_opening: u64,
    directories: u64,
    sums: S,
}

impl<S: Default> Killing<S> {
    fn new(seed: u64) -> Self {
        let random = Random::new(seed);
        Self { random, starts: 0, at_work: 0, while_opening: 0, directories: 0, sums: S::default() }
    }

    /// Kills a victim at work this many times, and now and then while it opens.
    fn kill_repeatedly(&mut self, victim: &mut impl Victim<Sums = S>, times: u64) -> Result<(), String> {
        for _ in 0..times {
            self.kill_while_opening(victim)?;
            let mut process = self.start(victim)?;
            victim.await_work(&mut process, &mut self.random)?;
            let most_us = if self.random.one_in(2) { LATE_US_MAX } else { SOON_US_MAX };
            self.sleep_up_to(most_us);
            victim.kill(process, &mut self.sums)?;
            self.at_work += 1;
        }
        self.kill_while_opening(victim)?;
        victim.finish(&mut self.random, &mut self.sums)
    }

    fn kill_while_opening(&mut self, victim: &mut impl Victim<Sums = S>) -> Result<(), String> {
        while self.random.one_in(if victim.is_new() { CREATION_EACH } else { OPENING_EACH }) {
            let process = self.start(victim)?;
            self.sleep_up_to(OPENING_US_MAX);
            let had_worked = victim.kill(process, &mut self.sums)?;
            self.while_opening += u64::from(!had_worked);
        }
        Ok(())
    }

    fn start<V: Victim<Sums = S>>(&mut self, victim: &mut V) -> Result<V::Process, String> {
        self.starts += 1;
        victim.start(self.starts, &mut self.random)
    }

    /// Kills the victim of one directory. If something is wrong with what is left, the directory is kept.
    fn in_directory<V: Victim<Sums = S>>(
        &mut self,
        mut place: TempDir,
        times: u64,
        victim_in: impl FnOnce(PathBuf, &mut Random) -> V,
    ) -> Result<(), String> {
        self.directories += 1;
        let mut victim = victim_in(place.path().join("house"), &mut self.random);
        self.kill_repeatedly(&mut victim, times).map_err(|what| {
            place.disable_cleanup(true);
            format!("{what}\n  after {self}, in {}, kept", place.path().display())
        })
    }

    /// Kills one victim after the other, each `times_each` times in a directory of its own.
    fn in_many_directories<V: Victim<Sums = S>>(
        &mut self,
        times: u64,
        times_each: u64,
        victim_in: impl Fn(PathBuf, &mut Random) -> V,
    ) -> Result<(), String> {
        while self.at_work < times {
            // On disk a write takes long and kills meet syncs; in memory there are far more flushes and new files.
            let place = if self.directories.is_multiple_of(2) { tempfile::tempdir() } else { fast_directory() };
            let times = times_each.min(times - self.at_work);
            self.in_directory(place.map_err(text)?, times, &victim_in)?;
        }
        Ok(())
    }

    fn sleep_up_to(&mut self, most_us: u64) {
        std::thread::sleep(Duration::from_micros(self.random.below(most_us)));
    }
}

impl<S> std::fmt::Display for Killing<S> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { at_work, while_opening, directories, .. } = self;
        write!(out, "{at_work} kills at work and {while_opening} while opening, directories: {directories}")
    }
}

/// Prints what a test found wrong, and how it is run again.
fn print_failure(test: &str, outcome: &Result<(), String>, arguments: &str) {
    if let Err(what) = outcome {
        println!("{test}: FAILED: {what}");
        println!("replay: cargo run --profile stress -p sim -- {test} {arguments}");
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
