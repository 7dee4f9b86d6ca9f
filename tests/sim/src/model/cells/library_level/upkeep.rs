//! What happens around reads and writes: catalogue changes, walks, flushes, reopening, images.

use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::{Error, Limits, Retention};
use kernel::{Body, CatalogueChange};
use statehouse::{Options, Statehouse};
use testkit::random::Random;

use super::Stretch;
use super::clock::{ManualClock, STEP_US};
use crate::model::cells::names::{BRANCHES, SPACES};
use crate::model::compare::same;
use crate::model::drawn::Drawn;
use crate::model::instance::{rows_beside_feed, text};
use crate::model::reference::Expected;
use crate::model::tally::add;

/// A walk over these few cells ends long before this; if not, it does not end.
const WALK_MAX: Duration = Duration::from_secs(30);

/// Small tables and files, so that everything rolls.
pub(super) fn options(random: &mut Random, clock: &Arc<ManualClock>) -> Options {
    let mut options = Options::default()
        .clock(clock.clone())
        .buckets(*random.choose(&[1, 4, 64]))
        .replay_bytes_max(*random.choose(&[2_000, 20_000, 1 << 30]))
        // By itself it would walk at times that no seed decides.
        .retention_walk_every(Duration::from_secs(100 * 24 * 60 * 60));
    options.overlay.table_bytes_max = *random.choose(&[5_000, 50_000, 1 << 30]);
    options.journal_files.file_bytes_target = *random.choose(&[4_096, 65_536, 32 << 20]);
    options.storage.cache_bytes_max = 1 << 20;
    options
}

impl Stretch<'_> {
    pub(super) fn change_catalogue(&mut self) -> Result<(), String> {
        let place = self.place();
        let (space, branch) = (place.space, place.branch);
        let house = self.house().clone();
        let handle = house.space(&self.reference.spaces[&space].name);
        let random = &mut self.random;
        let mut walks = false;
        let (answered, change) = match random.below(12) {
            0 => {
                let name = (*random.choose(&SPACES)).to_owned();
                (house.create_space(&name).map(drop), CatalogueChange::CreateSpace { name })
            }
            1..=3 => {
                let name = (*random.choose(&BRANCHES)).to_owned();
                let answered = handle.create_branch(&name).map(drop);
                (answered, CatalogueChange::CreateBranch { space, name })
            }
            4 => {
                // The deletion begins a walk too, and may ask for one while the first is under way.
                if random.one_in(2) {
                    house.walk_retention();
                    walks = true;
                }
                let name = &self.reference.spaces[&space].branches[&branch].name;
                (handle.delete_branch(name), CatalogueChange::DeleteBranch { space, branch })
            }
            5..=8 => {
                let retention = retention(random);
                let answered = handle.set_retention(retention);
                (answered, CatalogueChange::SetRetention { space, retention })
            }
            _ => {
                let limits = limits(random);
                (house.set_limits(limits), CatalogueChange::SetLimits(limits))
            }
        };
        drop((house, handle));
        walks |= answered.is_ok() && matches!(change, CatalogueChange::DeleteBranch { .. });
        let expected = self.reference.apply(&Drawn::plain(&Body::Catalogue(change.clone())));
        let as_expected = match (&answered, &expected) {
            (Ok(()), Expected::Done(_)) => true,
            (Err(Error::Rejected(rejection)), Expected::Rejected(any_of)) => any_of.contains(rejection),
            _ => false,
        };
        if !as_expected {
            return Err(format!("{change:?}\n  answered {answered:?}\n  expected {expected:?}"));
        }
        if walks { self.await_walk() } else { Ok(()) }
    }

    /// Gives up what is due.
    pub(super) fn walk(&mut self) -> Result<(), String> {
        self.house().walk_retention();
        self.await_walk()
    }

    /// Waits until a walk has left what it should. Then reopens, because a walk may look once more before it ends,
    /// and commit numbers are known again only when it has.
    fn await_walk(&mut self) -> Result<(), String> {
        self.reference.wall_us = self.reference.wall_us.max(self.clock.now_us());
        self.reference.walk_cells();
        let began = Instant::now();
        loop {
            let rows = self.rows()?;
            if rows == self.reference.rows_of_cells() {
                break;
            }
            if began.elapsed() > WALK_MAX {
                return same(|| "rows that a walk leaves".into(), &rows, &self.reference.rows_of_cells());
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        add(&self.tally.walks, 1);
        self.close_and_open()?;
        let commit = self.house().status().map_err(text)?.commit;
        if commit < self.reference.commit {
            return Err(format!("a walk took the commit number back to {commit}"));
        }
        self.reference.commit = commit;
        Ok(())
    }

    pub(super) fn reopen(&mut self) -> Result<(), String> {
        let before = self.house().status().map_err(text)?;
        self.close_and_open()?;
        let after = self.house().status().map_err(text)?;
        let of = |status: statehouse::Status| (status.commit, status.applied_index, status.effects_hash);
        same(|| "the status after reopening".into(), &of(after), &of(before))
    }

    /// Closes the directory, or only drops it, and opens it again with other bounds.
    fn close_and_open(&mut self) -> Result<(), String> {
        self.options = options(&mut self.random, &self.clock);
        if self.random.one_in(2) {
            self.house().close().map_err(text)?;
            let refused = self.house().cells().get("a").map_err(|error| error.code());
            same(|| "a read after closing".into(), &refused, &Err("SH-2002"))?;
        }
        drop(self.open.take());
        self.open = Some(self.options.open(&self.path).map_err(text)?);
        add(&self.tally.restarts, 1);
        Ok(())
    }

    /// Makes a directory of an image, and goes on with it.
    pub(super) fn change_over(&mut self) -> Result<(), String> {
        let mut image = Vec::new();
        self.house().write_image(&mut image).map_err(text)?;
        let rows = rows_beside_feed(&image)?;
        same(|| "the number of rows in an image".into(), &rows, &self.reference.rows_of_cells())?;
        let path = self.parent.path().join(self.directories.to_string());
        self.directories += 1;
        Statehouse::restore_image(&path, &mut image.as_slice()).map_err(text)?;
        let restored = self.options.open(&path).map_err(text)?;
        let mut again = Vec::new();
        restored.write_image(&mut again).map_err(text)?;
        if image != again {
            return Err("the image of a restored directory has other bytes".into());
        }
        drop(self.open.replace(restored));
        std::fs::remove_dir_all(&self.path).map_err(text)?;
        self.path = path;
        add(&self.tally.images, 1);
        Ok(())
    }

    pub(super) fn maintain(&mut self) -> Result<(), String> {
        match self.random.below(3) {
            0 => self.house().flush().map_err(text),
            1 => self.house().settle().map_err(text),
            _ => self.house().verify_journal().map_err(text).map(drop),
        }
    }
}

fn retention(random: &mut Random) -> Retention {
    let age_us_max = match random.below(4) {
        0 => STEP_US / 2,
        1 => 500 * STEP_US + STEP_US / 2,
        _ => u64::MAX,
    };
    let versions_max = *random.choose(&[1, 2, 10, 100, u64::MAX]);
    if random.one_in(6) { Retention::NONE } else { Retention { versions_max, age_us_max } }
}

fn limits(random: &mut Random) -> Limits {
    let mut limits = Limits::default();
    limits.write_trim_rows_max = *random.choose(&[0, 1, 4, 30]);
    limits.branches_per_space_max = *random.choose(&[1, 2, 1_000]);
    limits.changes_commits_max = *random.choose(&[0, 50, 1_000_000]);
    if random.one_in(6) {
        limits.value_bytes_max = 30;
    }
    limits
}
