//! The victim: a directory of cells, which is copied after each kill, and the copy opened.

use std::path::PathBuf;

use testkit::random::Random;

use super::CHILD;
use super::found::Found;
use super::ledger::{Ledger, Sums};
use crate::directories::{copy_directory, fast_directory};
use crate::kills::child::Running;
use crate::kills::sizes::Sizes;
use crate::kills::{self, text};

/// A directory, and what is known of it.
pub(super) struct CellsVictim {
    path: PathBuf,
    sizes: Sizes,
    ledger: Ledger,
}

impl CellsVictim {
    pub(super) fn new(path: PathBuf, random: &mut Random) -> Self {
        Self { path, sizes: Sizes::draw(random), ledger: Ledger::default() }
    }

    fn kill_and_look(&mut self, process: Running, sums: &mut Sums) -> Result<bool, String> {
        let said = process.kill()?;
        let copy = fast_directory().map_err(text)?;
        let path = copy.path().join("house");
        if self.path.exists() {
            copy_directory(&self.path, &path).map_err(text)?;
        }
        let found = Found::read(path, self.sizes, self.ledger.known())?;
        sums.kills_with_tables += u64::from(found.store_bytes > 4_096);
        let before = self.ledger.applied.map_or(0, |applied| applied[0]);
        sums.entries += found.applied[0].saturating_sub(before);
        self.ledger.settle(&said, &found, sums)?;
        Ok(!said.is_empty())
    }
}

impl kills::Victim for CellsVictim {
    type Process = Running;
    type Sums = Sums;

    fn start(&mut self, round: u64, random: &mut Random) -> Result<Running, String> {
        self.sizes.start(CHILD, &self.path, round, random)
    }

    fn await_work(&mut self, process: &mut Running, _random: &mut Random) -> Result<(), String> {
        process.await_answer()
    }

    fn kill(&mut self, process: Running, sums: &mut Sums) -> Result<bool, String> {
        self.kill_and_look(process, sums).map_err(|what| format!("{what}\n  with {:?}", self.sizes))
    }

    /// Everything was looked at after the last kill.
    fn finish(&mut self, _random: &mut Random, _sums: &mut Sums) -> Result<(), String> {
        Ok(())
    }

    fn is_new(&self) -> bool {
        self.ledger.applied.is_none_or(|applied| applied[0] == 0)
    }
}
