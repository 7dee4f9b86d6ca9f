//! The parent: starts children, kills them, and looks at copies of what they left.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use testkit::random::Random;

use super::history::Found;
use super::ledger::{Ledger, Sums};
use crate::running::{Running, fast_directory};
use crate::sizes::Sizes;

/// Directories in a run of many kills; each is killed over and over.
const DIRECTORIES: u64 = 20;

/// Kills children `times` times.
pub(super) fn run(seed: u64, times: u64, sums: &mut Sums) -> Result<(), String> {
    let mut random = Random::new(seed);
    let kills_per_directory = times.div_ceil(DIRECTORIES).max(5);
    while sums.kills < times {
        let kills = kills_per_directory.min(times - sums.kills);
        let sizes = Sizes::draw(&mut random);
        let mut victim = Victim::new(sizes, sums.directories)?;
        sums.directories += 1;
        for round in 0..kills {
            let outcome = victim.round(round, &mut random, sums);
            outcome.map_err(|what| victim.explain(&what, round))?;
        }
    }
    Ok(())
}

/// A directory, and what is known of it.
struct Victim {
    place: TempDir,
    sizes: Sizes,
    ledger: Ledger,
}

impl Victim {
    fn new(sizes: Sizes, number: u64) -> Result<Self, String> {
        // On disk a write takes long and kills meet syncs; in memory there are far more flushes and new files.
        let place = if number.is_multiple_of(2) { tempfile::tempdir() } else { fast_directory() };
        Ok(Self { place: place.map_err(text)?, sizes, ledger: Ledger::default() })
    }

    fn path(&self) -> PathBuf {
        self.place.path().join("house")
    }

    /// Keeps the directory for a look at it.
    fn explain(&mut self, what: &str, round: u64) -> String {
        self.place.disable_cleanup(true);
        let path = self.path();
        format!("{what}\n  in round {round} of {}, kept, with {:?}", path.display(), self.sizes)
    }

    fn round(&mut self, round: u64, random: &mut Random, sums: &mut Sums) -> Result<(), String> {
        let seed = random.next() >> 1;
        let running = Running::start("kill-child", &self.path(), self.sizes, round, seed)?;
        // A directory that holds nothing yet is killed while it is being made, more often than not.
        let is_new = self.ledger.applied.is_none_or(|applied| applied[0] == 0);
        let after = if random.one_in(if is_new { 2 } else { 6 }) {
            // In the middle of opening, which is the recovery of the kill before.
            Duration::from_micros(random.below(25_000))
        } else {
            running.await_answer()?;
            let most_ms = if random.one_in(4) { 150 } else { 50 };
            Duration::from_micros(random.below(most_ms * 1_000))
        };
        let ended = running.kill(after)?;
        sums.wrong += u64::from(ended.complaint().is_some());
        let said = ended.said()?;
        sums.kills += 1;
        sums.kills_while_opening += u64::from(said.is_empty());
        let copy = fast_directory().map_err(text)?;
        let path = copy.path().join("house");
        copy_directory(&self.path(), &path).map_err(text)?;
        let found = Found::read(path, self.sizes, self.ledger.known())?;
        sums.kills_with_tables += u64::from(found.store_bytes > 4_096);
        let before = self.ledger.applied.map_or(0, |applied| applied[0]);
        sums.entries += found.applied[0].saturating_sub(before);
        self.ledger.settle(&said, &found, sums)
    }
}

/// Copies what is there; nothing if the child did not get that far.
fn copy_directory(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_directory(&entry.path(), &to)?;
        } else {
            std::fs::copy(entry.path(), &to)?;
        }
    }
    Ok(())
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
